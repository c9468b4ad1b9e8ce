// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/cli/exit"
)

// smallHub is an API server that keeps objects: it lists them in pages of two, watches, and takes merge patches.
type smallHub struct {
	t       *testing.T
	mu      sync.Mutex
	objects []*unstructured.Unstructured
	// asked are the requests, but for discovery. stale has it say once that a page is too old. patched is called after each patch.
	asked []string
	stale bool
	// forbidden is the end of a path that nobody may read.
	forbidden string
	// may says which paths somebody may read; nil for all.
	may     func(path string) bool
	patched func(u *unstructured.Unstructured)
	// told are the events that a watch of one name gets.
	told []string
	// events are what watches get; an empty one ends the watch.
	events chan string
}

// smallKinds are the kinds that it has.
var smallKinds = map[string][]metav1.APIResource{
	"v1": {{Name: "events", Kind: "Event", Namespaced: true}, {Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "secrets", Kind: "Secret", Namespaced: true}, {Name: "namespaces", Kind: "Namespace"}},
	"chandler.dev/v1alpha1": {{Name: "addonsets", Kind: "AddonSet", Namespaced: true}, {Name: "addondeliveries", Kind: "AddonDelivery", Namespaced: true},
		{Name: "clusterregistrations", Kind: "ClusterRegistration", Namespaced: true}, {Name: "teams", Kind: "Team", Namespaced: true}},
	"helm.toolkit.fluxcd.io/v2":      {{Name: "helmreleases", Kind: "HelmRelease", Namespaced: true}},
	"kustomize.toolkit.fluxcd.io/v1": {{Name: "kustomizations", Kind: "Kustomization", Namespaced: true}},
	"source.toolkit.fluxcd.io/v1": {{Name: "gitrepositories", Kind: "GitRepository", Namespaced: true}, {Name: "helmrepositories", Kind: "HelmRepository", Namespaced: true},
		{Name: "ocirepositories", Kind: "OCIRepository", Namespaced: true}, {Name: "helmcharts", Kind: "HelmChart", Namespaced: true}, {Name: "buckets", Kind: "Bucket", Namespaced: true}},
	"apps/v1": {{Name: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true}},
}

func newSmallHub(t *testing.T, objects string) *smallHub {
	t.Helper()
	h := &smallHub{t: t, events: make(chan string, 10)}
	for i, doc := range strings.Split(objects, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetUID("uid-" + u.GetUID())
		u.SetResourceVersion(strconv.Itoa(i + 1))
		h.objects = append(h.objects, u)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	config := filepath.Join(t.TempDir(), "config")
	text := "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: '" + server.URL + "'}}], contexts: [{name: c, context: {cluster: c, namespace: fleet}}]}"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
	return h
}

func (h *smallHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	w.Header().Set("Content-Type", "application/json")
	if h.discovers(w, r) {
		h.mu.Unlock()
		return
	}
	h.asked = append(h.asked, r.Method+" "+r.URL.String())
	if h.forbidden != "" && strings.HasSuffix(r.URL.Path, h.forbidden) || h.may != nil && !h.may(r.URL.Path) {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
		h.mu.Unlock()
		return
	}
	gv, rest := "", strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if gv, rest = rest[1], rest[2:]; strings.HasPrefix(r.URL.Path, "/apis/") {
		gv, rest = gv+"/"+rest[0], rest[1:]
	}
	namespace := ""
	if len(rest) > 2 && rest[0] == "namespaces" {
		namespace, rest = rest[1], rest[2:]
	}
	at := slices.IndexFunc(smallKinds[gv], func(k metav1.APIResource) bool { return k.Name == rest[0] })
	if at < 0 {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		h.mu.Unlock()
		return
	}
	kind := smallKinds[gv][at].Kind
	if r.URL.Query().Get("watch") != "" {
		h.mu.Unlock()
		h.watches(w, r)
		return
	}
	defer h.mu.Unlock()
	var of []*unstructured.Unstructured
	for _, u := range h.objects {
		if u.GetAPIVersion() == gv && u.GetKind() == kind && (namespace == "" || u.GetNamespace() == namespace) {
			of = append(of, u)
		}
	}
	if len(rest) == 1 {
		h.lists(w, r, gv, kind, of)
		return
	}
	one := slices.IndexFunc(of, func(u *unstructured.Unstructured) bool { return u.GetName() == rest[1] })
	switch {
	case one < 0:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodPatch:
		h.patches(w, r, of[one])
	default:
		_ = json.NewEncoder(w).Encode(of[one].Object)
	}
}

func (h *smallHub) discovers(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/"), "/apis/")
	switch kinds, ok := smallKinds[path]; {
	case r.URL.Path == "/api":
		_ = json.NewEncoder(w).Encode(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
		for gv := range smallKinds {
			if name, version, ok := strings.Cut(gv, "/"); ok {
				v := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
				list.Groups = append(list.Groups, metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	case ok:
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: path, APIResources: kinds})
	default:
		return false
	}
	return true
}

func (h *smallHub) lists(w http.ResponseWriter, r *http.Request, gv, kind string, of []*unstructured.Unstructured) {
	q := r.URL.Query()
	selector, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		h.t.Error(err)
	}
	field, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		h.t.Error(err)
	}
	token := q.Get("continue")
	if h.stale && token != "" {
		h.stale = false
		w.WriteHeader(http.StatusGone)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonExpired, Code: http.StatusGone, ListMeta: metav1.ListMeta{Continue: token + "again"}})
		return
	}
	start, _ := strconv.Atoi(strings.TrimSuffix(token, "again"))
	items, meta := []any{}, map[string]any{"resourceVersion": "100"}
	for i, u := range of {
		about := fields.Set{"metadata.name": u.GetName(), "metadata.namespace": u.GetNamespace()}
		for _, key := range []string{"kind", "name", "namespace", "uid"} {
			about["involvedObject."+key], _, _ = unstructured.NestedString(u.Object, "involvedObject", key)
		}
		if i < start || !selector.Matches(labels.Set(u.GetLabels())) || !field.Matches(about) {
			continue
		}
		if len(items) == 2 && q.Get("limit") != "" {
			meta["continue"] = strconv.Itoa(i)
			break
		}
		items = append(items, u.Object)
	}
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		gv, kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": gv, "kind": kind + "List", "metadata": meta, "items": items})
}

// watches sends what comes through events; an empty text ends the watch.
func (h *smallHub) watches(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	if about := r.URL.Query().Get("fieldSelector"); about != "" {
		h.tells(w, r, strings.TrimPrefix(about, "involvedObject.name="))
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-h.events:
			if e == "" {
				return
			}
			fmt.Fprintln(w, e)
			w.(http.Flusher).Flush()
		}
	}
}

// tells sends what is told of objects of a name.
func (h *smallHub) tells(w http.ResponseWriter, r *http.Request, name string) {
	for sent := 0; r.Context().Err() == nil; time.Sleep(10 * time.Millisecond) {
		h.mu.Lock()
		told := h.told[sent:]
		h.mu.Unlock()
		sent += len(told)
		for _, e := range told {
			if strings.Contains(e, `"name":"`+name+`"},`) {
				fmt.Fprintln(w, e)
			}
		}
		w.(http.Flusher).Flush()
	}
}

func (h *smallHub) patches(w http.ResponseWriter, r *http.Request, u *unstructured.Unstructured) {
	body, _ := io.ReadAll(r.Body)
	if got := r.Header.Get("Content-Type"); got != "application/merge-patch+json" {
		h.t.Errorf("the patch is a %s", got)
	}
	h.asked[len(h.asked)-1] = fmt.Sprintf("PATCH %s %s %s", u.GetName(), r.URL.Query().Get("fieldManager"), body)
	before, _ := json.Marshal(u.Object)
	after, err := jsonpatch.MergePatch(before, body)
	if err != nil {
		h.t.Error(err)
	}
	u.Object = nil
	if err := json.Unmarshal(after, &u.Object); err != nil {
		h.t.Error(err)
	}
	if h.patched != nil {
		h.patched(u)
	}
	_ = json.NewEncoder(w).Encode(u.Object)
}

// lines returns the requests that hold a text.
func (h *smallHub) lines(text string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, line := range h.asked {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}

// runSmall runs the command line, and returns what it prints on both streams, and its exit code.
func runSmall(t *testing.T, args string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := newCommand(made)
	var out, errs strings.Builder
	cmd.SetArgs(strings.Fields(args))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetIn(strings.NewReader(""))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		code = exit.Uncertain
		var e *exit.Error
		if errors.As(err, &e) {
			code = e.Code
		}
		errs.WriteString(err.Error())
	}
	return out.String(), errs.String(), code
}

// smallFleet are the objects of testdata/live.
func smallFleet(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "live", "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// TestNamesAreCompleted: of clusters, and where both may stand, of sets too.
func TestNamesAreCompleted(t *testing.T) {
	h := newSmallHub(t, smallFleet(t))
	for _, u := range h.objects {
		if u.GetKind() == "AddonSet" && u.GetName() == "base" {
			status, _, _ := unstructured.NestedMap(u.Object, "status", "rollout")
			status["waves"] = []any{map[string]any{"name": "rest"}, map[string]any{"name": "canary"}}
			if err := unstructured.SetNestedMap(u.Object, status, "status", "rollout"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for args, want := range map[string]string{
		"reconcile":             "edge1 edge2 edge3 elsewhere",
		"reconcile fleet/edge1": "cert-manager policies",
		"events":                "edge1 edge2 edge3 elsewhere base logs",
		"events set":            "base logs",
		"events cluster":        "edge1 edge2 edge3 elsewhere",
		"pause set":             "base logs",
		"resume cluster":        "edge1 edge2 edge3 elsewhere",
		"events edge3":          "cert-manager policies",
		"events cluster edge3":  "cert-manager policies",
		"explain edge1 x":       "",
		"rollout approve":       "base logs",
		"rollout approve base":  "canary rest",
		"rollout approve logs":  "",
		"unregister":            "edge1 edge2 edge3 elsewhere",
		"register":              "",
		"create set":            "",
	} {
		out, err := run(append(append([]string{"__complete"}, strings.Fields(args)...), "")...)
		var got []string
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, ":") {
				break
			}
			name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, name)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, and it completes\n%s", args, err, out)
		}
	}
}
