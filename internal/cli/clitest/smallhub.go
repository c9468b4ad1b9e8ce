// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
)

// SmallHub is an API server that keeps objects: it lists them in pages of two, watches, and takes merge patches.
type SmallHub struct {
	t       *testing.T
	Mu      sync.Mutex
	Objects []*unstructured.Unstructured
	// asked are the requests, but for discovery. stale has it say once that a page is too old. Patched is called after each patch.
	asked []string
	stale bool
	// Forbidden is the end of a path that nobody may read.
	Forbidden string
	// May says which paths somebody may read; nil for all.
	May     func(path string) bool
	Patched func(u *unstructured.Unstructured)
	// Told are the events that a watch of one name gets.
	Told []string
	// Events are what watches get; an empty one ends the watch.
	Events chan string
}

// smallKinds are the kinds that it has.
var smallKinds = map[string][]metav1.APIResource{
	"v1": {namespaced("events", "Event"), namespaced("configmaps", "ConfigMap"), namespaced("secrets", "Secret"),
		{Name: "namespaces", Kind: "Namespace"}},
	"chandler.dev/v1alpha1": {namespaced("addonsets", "AddonSet"), namespaced("addondeliveries", "AddonDelivery"),
		namespaced("clusterregistrations", "ClusterRegistration"), namespaced("teams", "Team")},
	"helm.toolkit.fluxcd.io/v2":      {namespaced("helmreleases", "HelmRelease")},
	"kustomize.toolkit.fluxcd.io/v1": {namespaced("kustomizations", "Kustomization")},
	"source.toolkit.fluxcd.io/v1": {namespaced("gitrepositories", "GitRepository"), namespaced("helmrepositories", "HelmRepository"),
		namespaced("ocirepositories", "OCIRepository"), namespaced("helmcharts", "HelmChart"), namespaced("buckets", "Bucket")},
	"apps/v1": {namespaced("controllerrevisions", "ControllerRevision"), namespaced("deployments", "Deployment")},
}

// namespaced is a kind whose objects are in namespaces.
func namespaced(name, kind string) metav1.APIResource {
	return metav1.APIResource{Name: name, Kind: kind, Namespaced: true}
}

// NewSmallHub makes a hub with some objects kubectl's current context, in namespace fleet.
func NewSmallHub(t *testing.T, objects string) *SmallHub {
	t.Helper()
	h := &SmallHub{t: t, Events: make(chan string, 10)}
	for i, doc := range strings.Split(objects, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetUID("uid-" + u.GetUID())
		u.SetResourceVersion(strconv.Itoa(i + 1))
		h.Objects = append(h.Objects, u)
	}
	serve(t, h, "fleet")
	return h
}

func (h *SmallHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.Mu.Lock()
	w.Header().Set("Content-Type", "application/json")
	if h.discovers(w, r) {
		h.Mu.Unlock()
		return
	}
	h.asked = append(h.asked, r.Method+" "+r.URL.String())
	if h.Forbidden != "" && strings.HasSuffix(r.URL.Path, h.Forbidden) || h.May != nil && !h.May(r.URL.Path) {
		Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
		h.Mu.Unlock()
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
		Refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		h.Mu.Unlock()
		return
	}
	kind := smallKinds[gv][at].Kind
	if r.URL.Query().Get("watch") != "" {
		h.Mu.Unlock()
		h.watches(w, r)
		return
	}
	defer h.Mu.Unlock()
	of := h.having(gv, kind, namespace)
	if len(rest) == 1 {
		h.lists(w, r, gv, kind, of)
		return
	}
	one := slices.IndexFunc(of, func(u *unstructured.Unstructured) bool { return u.GetName() == rest[1] })
	switch {
	case one < 0:
		Refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodPatch:
		h.patches(w, r, of[one])
	default:
		_ = json.NewEncoder(w).Encode(of[one].Object)
	}
}

// having returns the objects of a kind in a namespace, or in all.
func (h *SmallHub) having(gv, kind, namespace string) (of []*unstructured.Unstructured) {
	for _, u := range h.Objects {
		if u.GetAPIVersion() == gv && u.GetKind() == kind && (namespace == "" || u.GetNamespace() == namespace) {
			of = append(of, u)
		}
	}
	return of
}

func (h *SmallHub) discovers(w http.ResponseWriter, r *http.Request) bool {
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
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: path}
		list.APIResources = kinds
		_ = json.NewEncoder(w).Encode(list)
	default:
		return false
	}
	return true
}

func (h *SmallHub) lists(w http.ResponseWriter, r *http.Request, gv, kind string, of []*unstructured.Unstructured) {
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
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure",
			Reason: metav1.StatusReasonExpired, Code: http.StatusGone, ListMeta: metav1.ListMeta{Continue: token + "again"}})
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
func (h *SmallHub) watches(w http.ResponseWriter, r *http.Request) {
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
		case e := <-h.Events:
			if e == "" {
				return
			}
			fmt.Fprintln(w, e)
			w.(http.Flusher).Flush()
		}
	}
}

// tells sends what is told of objects of a name.
func (h *SmallHub) tells(w http.ResponseWriter, r *http.Request, name string) {
	for sent := 0; r.Context().Err() == nil; time.Sleep(10 * time.Millisecond) {
		h.Mu.Lock()
		told := h.Told[sent:]
		h.Mu.Unlock()
		sent += len(told)
		for _, e := range told {
			if strings.Contains(e, `"name":"`+name+`"},`) {
				fmt.Fprintln(w, e)
			}
		}
		w.(http.Flusher).Flush()
	}
}

func (h *SmallHub) patches(w http.ResponseWriter, r *http.Request, u *unstructured.Unstructured) {
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
	if h.Patched != nil {
		h.Patched(u)
	}
	_ = json.NewEncoder(w).Encode(u.Object)
}

// Lines returns the requests that hold a text.
func (h *SmallHub) Lines(text string) []string {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	var out []string
	for _, line := range h.asked {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}

//go:embed testdata/fleet.yaml
var smallFleet string

// SmallFleet are the objects of testdata/fleet.yaml.
func SmallFleet() string { return strings.TrimSpace(smallFleet) }
