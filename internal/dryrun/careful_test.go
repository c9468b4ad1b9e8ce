// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/dryrun"
	"github.com/chandler-hub/chandler/internal/must"
)

// extension: an API server of an extension that does not say that it knows dryRun would write, and is not asked. Nothing that the client
// is told to do is done.
func (s *apiServer) extension(t *testing.T) {
	admin, c := s.admin, s.connect(t, "")
	var mu sync.Mutex
	var writes []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/apis/extension.example.org/v1":
			_, _ = fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "extension.example.org/v1", "resources": `+
				`[{"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["get", "patch", "create"]}]}`)
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
		default:
			mu.Lock()
			writes = append(writes, r.Method+" "+r.URL.Path)
			mu.Unlock()
			_, _ = fmt.Fprint(w, `{"kind": "Thing", "apiVersion": "extension.example.org/v1", "metadata": {"name": "a", "namespace": "default", "resourceVersion": "1"}}`)
		}
	}))
	t.Cleanup(server.Close)
	at := must.Get(url.Parse(server.URL)).Or(t)
	text := strings.NewReplacer("$HOST", at.Hostname(), "$PORT", at.Port()).Replace(`
{apiVersion: v1, kind: Service, metadata: {name: extension, namespace: default}, spec: {type: ExternalName, externalName: localhost}}
---
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.extension.example.org}, spec: {group: extension.example.org, version: v1, insecureSkipTLSVerify: true, groupPriorityMinimum: 1000, versionPriority: 10, service: {name: extension, namespace: default, port: $PORT}}}
`)
	for _, u := range objects(t, text) {
		must.Do(t, admin.Create(t.Context(), u))
	}
	thing := objects(t, "{apiVersion: extension.example.org/v1, kind: Thing, metadata: {name: a, namespace: default}}")
	var got []diff.TriedObject
	for range 100 { // the extension is served a little later
		got, _ = dryrun.Run(t.Context(), []dryrun.Part{{Client: c, Manager: dryrun.KustomizeManager, Wanted: thing}}, dryrun.Limits{})
		if len(got) == 1 && !strings.Contains(got[0].Reason, "the cluster has no Thing") && !strings.Contains(got[0].Reason, "currently unable") {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if len(got) != 1 || got[0].Outcome != diff.TriedUnknown || !strings.Contains(got[0].Reason, "does not say in its OpenAPI that it knows dryRun, and could write") {
		t.Errorf("it says %+v", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(writes) > 0 {
		t.Errorf("the extension was asked to write: %q", writes)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "default"}}}
	if err := c.Create(t.Context(), u.DeepCopy()); err != nil {
		t.Error(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(u), u); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a write is done: %v", err)
	}
}
