// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/rollout"
	"github.com/chandler-hub/chandler/internal/must"
)

// rollingHub is an API server with one set.
type rollingHub struct {
	t   *testing.T
	set []byte
	// patch is called with each patch before it is applied; it returns the code to answer with, or 0 to apply it.
	patch   func(body string) int
	patches []string
}

const (
	waiting = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: base, namespace: flux-system, uid: base, generation: 1, resourceVersion: "7"}
spec:
  selectAll: true
  addons: [{name: web, manifests: {objects: []}}]
  rollout: {waves: [{name: canary, size: 1, approval: Manual}]}
status:
  observedGeneration: 1
  revision: base-2222222222-e3
  rollout:
    revision: base-2222222222-e3
    phase: WaitingForApproval
    wave: canary
    completedRevision: base-1111111111-e3
    waitingFor: an approval of wave canary
    waves: [{name: canary, total: 1, done: 1, running: 0, failed: 0, skipped: 0}, {name: rest, total: 2, done: 0, running: 0, failed: 0, skipped: 0}]`
	rollingSets = "/apis/chandler.dev/v1alpha1/addonsets"
	rollingSet  = "/apis/chandler.dev/v1alpha1/namespaces/flux-system/addonsets/base"
)

func newRollingHub(t *testing.T, set string) *rollingHub {
	t.Helper()
	raw := must.Get(yaml.YAMLToJSON([]byte(set))).Or(t)
	h := &rollingHub{t: t, set: raw}
	clitest.ServeHub(t, h)
	return h
}

func (h *rollingHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	list := func(apiVersion, kind string, items ...json.RawMessage) {
		answer(map[string]any{"apiVersion": apiVersion, "kind": kind + "List", "items": append([]json.RawMessage{}, items...)})
	}
	group := func(name, version string) metav1.APIGroup {
		v := metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version}
		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
	}
	resources := func(gv string, kinds ...string) {
		out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: gv}
		for i := 0; i < len(kinds); i += 2 {
			out.APIResources = append(out.APIResources, metav1.APIResource{Name: kinds[i], Kind: kinds[i+1], Namespaced: true})
		}
		answer(out)
	}
	switch path := r.URL.Path; {
	case path == "/api":
		answer(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "/apis":
		answer(metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{group("apps", "v1"), group("chandler.dev", "v1alpha1")}})
	case path == "/api/v1":
		resources("v1", "configmaps", "ConfigMap")
	case path == "/apis/apps/v1":
		resources("apps/v1", "controllerrevisions", "ControllerRevision")
	case path == "/apis/chandler.dev/v1alpha1":
		resources("chandler.dev/v1alpha1", "addonsets", "AddonSet", "addondeliveries", "AddonDelivery", "clusterregistrations", "ClusterRegistration", "teams", "Team")
	case r.Method == http.MethodPatch && path == rollingSet:
		h.servePatch(w, r)
	case path == rollingSets, path == strings.TrimSuffix(rollingSet, "/base"):
		list("chandler.dev/v1alpha1", "AddonSet", h.set)
	case strings.HasSuffix(path, "/addondeliveries"):
		list("chandler.dev/v1alpha1", "AddonDelivery")
	case strings.HasSuffix(path, "/clusterregistrations"):
		list("chandler.dev/v1alpha1", "ClusterRegistration")
	case strings.HasSuffix(path, "/controllerrevisions"):
		list("apps/v1", "ControllerRevision")
	default:
		clitest.Refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func (h *rollingHub) servePatch(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if got := r.Header.Get("Content-Type") + " " + r.URL.Query().Get("fieldManager"); got != "application/merge-patch+json chandler-rollout" {
		h.t.Errorf("the patch is a %s", got)
	}
	h.patches = append(h.patches, string(body))
	if h.patch != nil {
		switch code := h.patch(string(body)); code {
		case http.StatusConflict:
			clitest.Refuse(w, code, metav1.StatusReasonConflict)
			return
		case http.StatusForbidden:
			clitest.Refuse(w, code, metav1.StatusReasonForbidden)
			return
		}
	}
	after, err := jsonpatch.MergePatch(h.set, body)
	if err != nil {
		h.t.Error(err)
	}
	h.set = after
	_, _ = w.Write(after)
}

// change replaces a text in the set.
func (h *rollingHub) change(old, recent string) {
	h.set = []byte(strings.ReplaceAll(string(h.set), old, recent))
}

// run runs `chandler rollout`.
func run(args ...string) (string, error) {
	out, _, err := clitest.Run([]*cobra.Command{rollout.New(clitest.At(time.Time{}), nil)}, append([]string{"rollout"}, args...)...)
	return out, err
}

// TestRolloutOrder: an order is one patch, and says what follows.
func TestRolloutOrder(t *testing.T) {
	h := newRollingHub(t, waiting)
	out, err := run("approve", "flux-system/base", "--revision", "base-2222222222-e3")
	if want := "AddonSet flux-system/base: wave canary is approved for revision base-2222222222-e3; wave rest begins\n"; err != nil || out != want {
		t.Errorf("it says %q and ends with %v, want %q", out, err, want)
	}
	if len(h.patches) != 1 || !strings.Contains(string(h.set), `"chandler.dev/approve":"base-2222222222-e3/canary"`) {
		t.Errorf("%q made of the set %s", h.patches, h.set)
	}
	if out, err = run("approve", "base"); err != nil || len(h.patches) != 1 || !strings.Contains(out, "is approved already") {
		t.Errorf("the second time it says %q, ends with %v, and writes %q", out, err, h.patches)
	}
	if _, err = run("approve", "base", "-n", "other"); err == nil || !strings.Contains(err.Error(), "addonset") && !strings.Contains(err.Error(), "AddonSet") {
		t.Errorf("in another namespace it ends with %v", err)
	}
}

// TestRolloutOrderIsNotForAnotherRevision: whoever is late changes nothing; a change of the set that is not about the rollout is no
// hindrance.
func TestRolloutOrderIsNotForAnotherRevision(t *testing.T) {
	h := newRollingHub(t, waiting)
	h.patch = func(string) int {
		if len(h.patches) > 1 {
			return 0
		}
		h.change(`"resourceVersion":"7"`, `"resourceVersion":"8"`)
		return http.StatusConflict
	}
	if _, err := run("approve", "base"); err != nil || len(h.patches) != 2 || !strings.Contains(h.patches[1], `"resourceVersion":"8"`) {
		t.Errorf("it wrote %q and ended with %v", h.patches, err)
	}

	h = newRollingHub(t, waiting)
	h.patch = func(string) int {
		h.change("base-2222222222-e3", "base-3333333333-e3")
		return http.StatusConflict
	}
	_, err := run("approve", "base")
	if err == nil || len(h.patches) != 1 || !strings.Contains(err.Error(), "nothing is changed") {
		t.Errorf("it wrote %q and ended with %v", h.patches, err)
	}

	h = newRollingHub(t, waiting)
	h.patch = func(string) int { return http.StatusForbidden }
	if _, err := run("approve", "base"); err == nil || !strings.Contains(err.Error(), "you may not patch AddonSet flux-system/base") {
		t.Error(err)
	}
}

// TestRolloutReads: the commands that read, on a live hub.
func TestRolloutReads(t *testing.T) {
	h := newRollingHub(t, waiting)
	for args, want := range map[string]string{
		"status base":                "To go on:      chandler rollout approve base -n flux-system --revision base-2222222222-e3\n",
		"status base --per-cluster":  "The set selects no cluster.\n",
		"history base":               "The set has no revision yet.\n",
		"plan base":                  "The set selects no cluster.\n",
		"status base -n flux-system": "canary   1       1      0         0        0         present\n",
	} {
		out, err := run(strings.Fields(args)...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s ends with %v, and there is no %q in:\n%s", args, err, want, out)
		}
	}
	if len(h.patches) > 0 {
		t.Errorf("they wrote %q", h.patches)
	}
}

// TestRolloutWaits: it waits for the end, and ends with an error if that is a bad one.
func TestRolloutWaits(t *testing.T) {
	h := newRollingHub(t, waiting)
	if _, err := run("status", "base", "--watch", "--timeout", "50ms"); err == nil || !strings.HasPrefix(err.Error(), exit.ErrTimeout.Error()) {
		t.Errorf("when the time is over: %v", err)
	}
	if _, err := run("status", "base", "--timeout", "50ms"); err == nil {
		t.Error("it takes --timeout without --wait")
	}
	h.change("WaitingForApproval", "Failed")
	if _, err := run("status", "base", "--watch"); err == nil || !strings.Contains(err.Error(), "Failed") {
		t.Errorf("when it has failed: %v", err)
	}
	h.change("Failed", "Complete")
	if out, err := run("status", "base", "--watch", "--timeout", "1m"); err != nil || !strings.Contains(out, "Phase:         Complete\n") {
		t.Errorf("when it is complete: %v\n%s", err, out)
	}
}

// TestRolloutPlanOfFiles: what the command says of a fleet in files.
func TestRolloutPlanOfFiles(t *testing.T) {
	in := filepath.Join("testdata", "fleet.yaml")
	for name, args := range map[string][]string{"plan": nil, "plan-one": {"web"}} {
		out, err := run(append([]string{"plan", "-f", in}, args...)...)
		if err != nil {
			t.Error(err)
		}
		clitest.Golden(t, name+".txt", out)
	}
	if _, err := run("plan", "-f", in, "nowhere"); err == nil {
		t.Error("it finds a set that is not there")
	}
	if _, err := run("plan"); err == nil || !strings.Contains(err.Error(), "chandler rollout plan SET") {
		t.Errorf("without a set and a file: %v", err)
	}
}
