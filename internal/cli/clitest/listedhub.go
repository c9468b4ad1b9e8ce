// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// ListedHub is an API server that lists objects as a real one does: by namespace, label and name, and page by page.
type ListedHub struct {
	mu      sync.Mutex
	Objects []unstructured.Unstructured
	// Asked are the queries, and Most is how many objects one answer had at the most.
	Asked []string
	Most  int
	// Patches are what was written.
	Patches []string
	// Watched are the events that a watch gets.
	Watched []string
}

var hubKinds = map[string]string{"clusterregistrations": "ClusterRegistration", "addonsets": "AddonSet", "addondeliveries": "AddonDelivery",
	"teams": "Team"}

// NewListedHub has the objects of testdata/hub.yaml, and is kubectl's current context.
func NewListedHub(t *testing.T) *ListedHub {
	t.Helper()
	h := &ListedHub{}
	for _, text := range strings.Split(listedObjects, "\n---\n") {
		h.Add(t, text)
	}
	ServeHub(t, h)
	return h
}

// ServeHub makes an API server kubectl's current context.
func ServeHub(t *testing.T, h http.Handler) {
	t.Helper()
	serve(t, h, "")
}

// serve makes an API server kubectl's current context, in a namespace.
func serve(t *testing.T, h http.Handler, namespace string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	config := filepath.Join(t.TempDir(), "config")
	if namespace != "" {
		namespace = ", namespace: " + namespace
	}
	Write(t, config, "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: '"+server.URL+"'}}], "+
		"contexts: [{name: c, context: {cluster: c"+namespace+"}}]}")
	t.Setenv("KUBECONFIG", config)
}

// Add adds an object.
func (h *ListedHub) Add(t *testing.T, text string) {
	t.Helper()
	u := unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 5, 30, 12, 0, 0, 0, time.UTC)))
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "chandler", Operation: "Update"}})
	h.Objects = append(h.Objects, u)
}

func (h *ListedHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	v := metav1.GroupVersionForDiscovery{GroupVersion: "chandler.dev/v1alpha1", Version: "v1alpha1"}
	switch r.URL.Path {
	case "/api":
		answer(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		return
	case "/apis":
		group := metav1.APIGroup{Name: "chandler.dev", Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
		answer(metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{group}})
		return
	case "/apis/chandler.dev/v1alpha1":
		out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: v.GroupVersion}
		for resource, kind := range hubKinds {
			out.APIResources = append(out.APIResources, metav1.APIResource{Name: resource, Kind: kind, Namespaced: true})
		}
		answer(out)
		return
	}
	rest, ours := strings.CutPrefix(r.URL.Path, "/apis/chandler.dev/v1alpha1/")
	namespace := ""
	if in, ok := strings.CutPrefix(rest, "namespaces/"); ok {
		namespace, rest, _ = strings.Cut(in, "/")
	}
	resource, _, _ := strings.Cut(rest, "/")
	if !ours || hubKinds[resource] == "" {
		Refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	if r.Method == http.MethodPatch {
		body, _ := io.ReadAll(r.Body)
		h.Patches = append(h.Patches, r.URL.Path+" "+r.URL.Query().Get("fieldManager")+" "+string(body))
		_ = json.NewEncoder(w).Encode(h.Objects[0].Object)
		return
	}
	if h.Asked = append(h.Asked, r.URL.Path+"?"+r.URL.RawQuery); r.URL.Query().Get("watch") != "" {
		for _, e := range h.Watched {
			fmt.Fprintln(w, e)
		}
		h.Watched = []string{`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired"}}`}
		return
	}
	h.list(w, r, rest, namespace)
}

func (h *ListedHub) list(w http.ResponseWriter, r *http.Request, resource, namespace string) {
	q := r.URL.Query()
	byLabel, _ := labels.Parse(q.Get("labelSelector"))
	byField, _ := fields.ParseSelector(q.Get("fieldSelector"))
	var found []map[string]any
	for i := range h.Objects {
		u := &h.Objects[i]
		if u.GetKind() == hubKinds[resource] && (namespace == "" || u.GetNamespace() == namespace) &&
			byLabel.Matches(labels.Set(u.GetLabels())) && byField.Matches(fields.Set{"metadata.name": u.GetName()}) {
			found = append(found, u.Object)
		}
	}
	list := metav1.ListMeta{ResourceVersion: "7"}
	from, _ := strconv.Atoi(q.Get("continue"))
	found = found[from:]
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && len(found) > limit {
		found, list.Continue = found[:limit], strconv.Itoa(from+limit)
	}
	h.Most = max(h.Most, len(found))
	kind, version := hubKinds[resource]+"List", "chandler.dev/v1alpha1"
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	items := append([]map[string]any{}, found...)
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": version, "kind": kind, "metadata": list, "items": items})
}

//go:embed testdata/hub.yaml
var listedObjects string

// Refuse answers as an API server does that refuses a request.
func Refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure",
		Reason: reason, Code: int32(code), Message: "refused here"})
}
