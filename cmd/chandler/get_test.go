// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
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

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// listedHub is an API server that lists objects as a real one does: by namespace, label and name, and page by page.
type listedHub struct {
	mu      sync.Mutex
	objects []unstructured.Unstructured
	// asked are the queries, and most is how many objects one answer had at the most.
	asked []string
	most  int
	// patches are what was written.
	patches []string
	// watched are the events that whoever watches gets.
	watched []string
}

var hubKinds = map[string]string{"clusterregistrations": "ClusterRegistration", "addonsets": "AddonSet", "addondeliveries": "AddonDelivery",
	"teams": "Team"}

// newListedHub has the objects of testdata/get/hub.yaml, and is kubectl's current context.
func newListedHub(t *testing.T) *listedHub {
	t.Helper()
	raw, err := os.ReadFile("testdata/get/hub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h := &listedHub{}
	for _, text := range strings.Split(string(raw), "\n---\n") {
		h.add(t, text)
	}
	serveHub(t, h)
	saved := now
	now = func() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }
	t.Cleanup(func() { now = saved })
	return h
}

// serveHub makes an API server kubectl's current context.
func serveHub(t *testing.T, h http.Handler) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "config")
	text := "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: '" + server.URL + "'}}], contexts: [{name: c, context: {cluster: c}}]}"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
}

func (h *listedHub) add(t *testing.T, text string) {
	t.Helper()
	u := unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 5, 30, 12, 0, 0, 0, time.UTC)))
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "chandler", Operation: "Update"}})
	h.objects = append(h.objects, u)
}

func (h *listedHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	if r.Method == http.MethodPatch {
		body, _ := io.ReadAll(r.Body)
		h.patches = append(h.patches, r.URL.Path+" "+r.URL.Query().Get("fieldManager")+" "+string(body))
		_ = json.NewEncoder(w).Encode(h.objects[0].Object)
		return
	}
	if h.asked = append(h.asked, r.URL.Path+"?"+r.URL.RawQuery); r.URL.Query().Get("watch") != "" {
		for _, e := range h.watched {
			fmt.Fprintln(w, e)
		}
		h.watched = []string{`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired"}}`}
		return
	}
	h.list(w, r, rest, namespace)
}

func (h *listedHub) list(w http.ResponseWriter, r *http.Request, resource, namespace string) {
	q := r.URL.Query()
	byLabel, _ := labels.Parse(q.Get("labelSelector"))
	byField, _ := fields.ParseSelector(q.Get("fieldSelector"))
	var found []map[string]any
	for i := range h.objects {
		u := &h.objects[i]
		if u.GetKind() == hubKinds[resource] && (namespace == "" || u.GetNamespace() == namespace) && byLabel.Matches(labels.Set(u.GetLabels())) &&
			byField.Matches(fields.Set{"metadata.name": u.GetName()}) {
			found = append(found, u.Object)
		}
	}
	list := metav1.ListMeta{ResourceVersion: "7"}
	from, _ := strconv.Atoi(q.Get("continue"))
	found = found[from:]
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && len(found) > limit {
		found, list.Continue = found[:limit], strconv.Itoa(from+limit)
	}
	h.most = max(h.most, len(found))
	kind, version := hubKinds[resource]+"List", "chandler.dev/v1alpha1"
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": version, "kind": kind, "metadata": list, "items": append([]map[string]any{}, found...)})
}

// runBoth runs the command line, and returns what it prints on both.
func runBoth(args ...string) (out, errs string, err error) {
	cmd := newCommand(made)
	var o, e strings.Builder
	cmd.SetArgs(args)
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	err = cmd.Execute()
	return o.String(), e.String(), err
}

// TestGet: what `chandler get` prints of a hub.
func TestGet(t *testing.T) {
	newListedHub(t)
	for name, args := range map[string]string{
		"clusters":           "clusters",
		"clusters-wide":      "clusters -A -o wide",
		"clusters-namespace": "clusters -n fleet",
		"clusters-failed":    "clusters --failed --no-headers",
		"clusters-labels":    "clusters -l tier=prod -o name",
		"clusters-none":      "clusters -n nowhere",
		"clusters-names":     "clusters fleet/berlin edge1 other",
		"clusters-missing":   "clusters edge1 -n fleet",
		"cluster-yaml":       "cluster fleet/new -o yaml",
		"clusters-yaml":      "clusters -l tier=prod -o yaml",
		"clusters-json":      "clusters berlin new -o json",
		"sets":               "sets",
		"sets-wide":          "sets -o wide",
		"sets-failed":        "sets --failed",
		"addons":             "addons",
		"addons-cluster":     "addons edge1 -o wide",
		"addons-labels":      "addons --selector tier=prod --addon web",
		"addons-failed":      "addons --failed",
		"addons-name":        "addons stores/edge1 -o name",
		"addons-json":        "addons edge1 --addon dns -o json",
		"addons-yaml":        "addons berlin --addon web -o yaml",
		"addons-none":        "addons new",
		"addons-missing":     "addons other",
		"wrong-output":       "clusters -o xml",
		"wrong-namespace":    "clusters -A -n fleet",
		"wrong-label":        "clusters -l a=b=c",
		"wrong-name":         "clusters a/b/c",
		"wrong-watch":        "clusters -w -o json",
		"wrong-kind":         "nodes",
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, err := runBoth(append([]string{"get"}, strings.Fields(args)...)...)
			text := "$ chandler get " + args + "\n" + out
			if errs != "" {
				text += "--- stderr\n" + errs
			}
			if err != nil {
				text += fmt.Sprintf("--- ends with: %v\n", err)
			}
			golden(t, "get/"+name+".txt", text)
		})
	}
}

// TestGetReadsPages: a fleet is read page by page, and one cluster without the others.
func TestGetReadsPages(t *testing.T) {
	h := newListedHub(t)
	const clusters = 1200
	for i := range clusters {
		h.add(t, fmt.Sprintf(`{apiVersion: chandler.dev/v1alpha1, kind: AddonDelivery, metadata: {name: d%d, namespace: flux-system, labels: {chandler.dev/cluster: c%d}},
  spec: {registrationRef: {namespace: fleet, name: c%d}, addonSetRef: {name: base}}, status: {addons: [{name: web, state: Ready}]}}`, i, i, i))
	}
	out, _, err := runBoth("get", "addons", "--no-headers")
	if lines := strings.Count(out, "\n"); err != nil || lines != clusters+4 || h.most != 500 {
		t.Errorf("it prints %d lines, reads %d objects at once, and ends with %v", lines, h.most, err)
	}
	if out, _, err = runBoth("get", "addons", "--no-headers", "-o", "json"); err != nil || !json.Valid([]byte(out)) {
		t.Errorf("as JSON it ends with %v", err)
	}
	h.asked, h.most = nil, 0
	if out, _, err = runBoth("get", "addons", "c7", "--no-headers"); err != nil || !strings.HasPrefix(out, "fleet/c7") || h.most != 1 || len(h.asked) != 1 {
		t.Errorf("of one cluster it prints %q, reads %d objects by %q, and ends with %v", out, h.most, h.asked, err)
	}
}

// TestGetWatch: a line is printed when it says something else, and when its object is gone; when the API server has forgotten, everything
// is read again.
func TestGetWatch(t *testing.T) {
	h := newListedHub(t)
	event := func(typ, change string, i int) string {
		u := h.objects[i].DeepCopy()
		u.SetResourceVersion("8")
		if change != "" {
			if err := unstructured.SetNestedField(u.Object, change, "status", "kubernetesVersion"); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := json.Marshal(map[string]any{"type": typ, "object": u.Object})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	h.watched = []string{event("MODIFIED", "", 0), event("MODIFIED", "v1.37.0", 0), event("BOOKMARK", "", 0), event("DELETED", "", 2)}
	cmd := newCommand(made)
	out := &lines{}
	cmd.SetArgs([]string{"get", "clusters", "-n", "fleet", "-w"})
	cmd.SetOut(out)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	const printed = 7 // the heading, two clusters, what the watch brings of both, and both once more after the second list
	for until := time.Now().Add(20 * time.Second); strings.Count(out.String(), "\n") < printed && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	golden(t, "get/watch.txt", out.String())
}

// lines is written by a command, and read by a test.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestPause: the pause of a cluster is one patch of its registration.
func TestPause(t *testing.T) {
	h := newListedHub(t)
	out, err := run("pause", "cluster", "berlin", "--until", "12h", "--reason", "freeze")
	if want := "ClusterRegistration fleet/berlin: paused; nothing is made, changed or removed there until 2026-06-02T00:00:00Z. What runs stays\n"; err != nil || out != want {
		t.Errorf("it says %q, and ends with %v", out, err)
	}
	want := []string{`/apis/chandler.dev/v1alpha1/namespaces/fleet/clusterregistrations/berlin chandler-rollout {"spec":{"pause":{"reason":"freeze","until":"2026-06-02T00:00:00Z"}}}`}
	if !slices.Equal(h.patches, want) {
		t.Errorf("it writes %q", h.patches)
	}
	if _, err = run("resume", "cluster", "berlin"); err == nil || !strings.Contains(err.Error(), "it is not paused") {
		t.Errorf("resume ends with %v", err)
	}
	if out, err = run("pause", "cluster", "berlin"); err != nil || !strings.HasSuffix(h.patches[1], `{"spec":{"pause":{"reason":null,"until":null}}}`) ||
		!strings.Contains(out, "until you resume it: chandler resume cluster berlin -n fleet") {
		t.Errorf("without a reason it says %q, ends with %v, and has written %q", out, err, h.patches)
	}
	if out, err = run("resume", "cluster", "edge1", "-n", "stores"); err != nil || len(h.patches) != 3 || !strings.HasSuffix(h.patches[2], `{"spec":{"pause":null}}`) {
		t.Errorf("resume says %q, ends with %v, and has written %q", out, err, h.patches)
	}
}

// TestRemovalsList: the sets whose guard holds something.
func TestRemovalsList(t *testing.T) {
	h := newListedHub(t)
	if out, errs, err := runBoth("removals", "list"); err != nil || out != "" || errs != "No held removals found.\n" {
		t.Errorf("it says %q and %q, and ends with %v", out, errs, err)
	}
	held := map[string]any{"count": int64(12), "hash": "0123456789abcdef", "since": "2026-06-01T09:00:00Z", "sample": []any{"fleet/berlin (web)"}}
	if err := unstructured.SetNestedField(h.objects[3].Object, held, "status", "heldRemovals"); err != nil {
		t.Fatal(err)
	}
	out, err := run("removals", "list")
	golden(t, "get/removals.txt", out)
	if err != nil {
		t.Error(err)
	}
}

// TestEveryCommandHasAnExample: also those that are only there for the ones below them.
func TestEveryCommandHasAnExample(t *testing.T) {
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		if cmd.HasParent() && !strings.Contains(cmd.Example, "  "+cmd.CommandPath()) {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	look(newCommand(made))
}
