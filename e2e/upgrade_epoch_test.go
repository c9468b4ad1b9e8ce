// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// epochSet has two add-ons that say no interval, so that the hub's default is in their objects.
const epochSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: %s, namespace: flux-system}
spec:
  selectAll: true
  sources:
    - {name: charts, kind: HelmRepository, spec: {url: %s, interval: 1m}}
    - {name: fleet, kind: GitRepository, spec: {url: %s, interval: 1m, ref: {branch: main}}}
  addons:
    - name: %[1]s
      helmRelease: {chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: %[4]s}}
    - name: %[1]s-git
      kustomization: {path: ./base, targetNamespace: %[1]s, sourceRef: {name: fleet}, postBuild: {substitute: {color: %[4]s}}}
      dependsOn: [{name: %[1]s}]
`

// TestEpoch takes a fleet from one release of the hub to the next, which makes other objects of the same sets: that is a revision, which is
// rolled out like any other. A set that is paused stays as it is.
func TestEpoch(t *testing.T) {
	beside(t)
	ctx := t.Context()
	next := nextRelease(t)
	c := workload(t, "workload-a")
	h := startHub(t, hubOptions{name: "hub-epoch", flux: &localfleet.FluxOptions{}})
	charts, git := serve(t)
	_, err := git.Commit("fleet", map[string]string{"base/configmap.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-git}\ndata:\n  color: ${color}\n"})
	check(t, err)
	s := register(t, h.Client, "fleet", "one", c, nil)
	set := func(name, color string) {
		t.Helper()
		apply(t, h.Client, fmt.Sprintf(epochSet, name, charts.URL(), git.URL("fleet"), color))
	}
	has := func(name, color string) error {
		return errors.Join(wantData(ctx, c, name, name, "color", color), wantData(ctx, c, name, "from-git", "color", color))
	}
	ready := func(name string) error {
		return errors.Join(
			condition(ctx, h.Client, addonSet("flux-system", name), hubv1.ReadyCondition, metav1.ConditionTrue, ""),
			condition(ctx, h.Client, registration("fleet", "one"), hubv1.ReadyCondition, metav1.ConditionTrue, ""))
	}
	for _, name := range []string{"ep-rolled", "ep-resting"} {
		set(name, "blue")
	}
	for _, name := range []string{"ep-rolled", "ep-resting"} {
		soon(t, name+" arrives", func() error { return errors.Join(has(name, "blue"), ready(name)) })
	}
	pause := func(value string) {
		t.Helper()
		check(t, h.Client.Patch(ctx, addonSet("flux-system", "ep-resting"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"pause":`+value+`}}`))))
	}
	pause(`{"reason":"a freeze"}`)
	soon(t, "the hub has nothing left to write", func() error { return h.quiet(0) })
	check(t, h.intervals(t, "ep-rolled", 10*time.Minute, 10*time.Minute))
	check(t, h.intervals(t, "ep-resting", 10*time.Minute, 10*time.Minute))

	h.stop()
	upgraded := time.Now()
	h.process, err = h.StartHub(ctx, next, h.args...)
	check(t, err)
	// A label that it copies, and a cluster's edit, which Flux undoes: the new hub is at work, and all of the old one's works on.
	check(t, h.Client.Patch(ctx, s, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"release":"next"}}}`))))
	soon(t, "the new hub follows", func() error {
		reg := registration("fleet", "one")
		if err := h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg); err != nil || reg.Labels["release"] != "next" {
			return fmt.Errorf("release is %q (%v)", reg.Labels["release"], err)
		}
		return nil
	})
	soon(t, "the set moves by itself", func() error {
		return errors.Join(h.intervals(t, "ep-rolled", 11*time.Minute, 11*time.Minute), has("ep-rolled", "blue"), ready("ep-rolled"))
	})
	soon(t, "the new hub has nothing left to write", func() error { return h.quiet(5 * time.Second) })
	check(t, has("ep-resting", "blue"))
	check(t, h.intervals(t, "ep-resting", 10*time.Minute, 10*time.Minute))
	for _, w := range h.fluxWrites(t, upgraded) {
		if strings.Contains(w, "ep-resting") {
			t.Errorf("the set is paused, and the new hub wrote: %s", w)
		}
	}
	doctorFinds(t, h.KubeconfigFile(), "EpochOfHub")

	// What is missing of what the old hub made is made by the new one, and the rest stays.
	lost := &kustomizev1.KustomizationList{}
	check(t, h.Client.List(ctx, lost, client.MatchingLabels{hubv1.AddonSetLabel: "ep-resting"}))
	check(t, h.Client.Delete(ctx, &lost.Items[0]))
	soon(t, "what somebody has deleted is made again", func() error {
		return errors.Join(h.intervals(t, "ep-resting", 10*time.Minute, 11*time.Minute), has("ep-resting", "blue"))
	})
	pause("null")
	soon(t, "the paused set moves when its pause is over", func() error {
		return errors.Join(h.intervals(t, "ep-resting", 11*time.Minute, 11*time.Minute), has("ep-resting", "blue"), ready("ep-resting"))
	})

	for _, name := range []string{"ep-rolled", "ep-resting"} {
		check(t, h.Client.Delete(ctx, addonSet("flux-system", name)))
	}
	// Also what it did not make itself.
	soon(t, "the new hub uninstalls both", func() error {
		var left error
		for _, name := range []string{"ep-rolled", "ep-resting"} {
			left = errors.Join(left, wantNoConfigMap(ctx, c, name, name), wantNoConfigMap(ctx, c, name, "from-git"), wantGone(ctx, h.Client, addonSet("flux-system", name)))
		}
		return left
	})
}

// nextRelease builds a hub from this checkout as the next release might be: it has another default, and so a higher epoch. The
// compiler reads the two files that differ from elsewhere; nothing in the hub knows of that.
func nextRelease(t *testing.T) string {
	t.Helper()
	root, err := parts.Root()
	check(t, err)
	dir := t.TempDir()
	replaced := map[string]string{}
	for file, edit := range map[string][2]string{
		"internal/render/render.go":     {fmt.Sprintf("const Epoch = %d\n", render.Epoch), fmt.Sprintf("const Epoch = %d\n", render.Epoch+1)},
		"internal/fluxspec/defaults.go": {`d.set("10m", "interval")`, `d.set("11m", "interval")`},
	} {
		path := filepath.Join(root, filepath.FromSlash(file))
		raw, err := os.ReadFile(path)
		check(t, err)
		if n := strings.Count(string(raw), edit[0]); n != 1 {
			t.Fatalf("%s has %q %d times", file, edit[0], n)
		}
		replaced[path] = filepath.Join(dir, filepath.Base(file))
		check(t, os.WriteFile(replaced[path], []byte(strings.Replace(string(raw), edit[0], edit[1], 1)), 0o600))
	}
	raw, err := json.Marshal(map[string]any{"Replace": replaced})
	check(t, err)
	overlay, binary := filepath.Join(dir, "overlay.json"), filepath.Join(workDir, "hub-next")
	check(t, os.WriteFile(overlay, raw, 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", binary, "./cmd/hub")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the next release: %v\n%s", err, out)
	}
	return binary
}

// intervals returns an error unless the Flux objects of a set's add-ons have an interval.
func (h *hub) intervals(t *testing.T, set string, release, kustomization time.Duration) error {
	t.Helper()
	releases, kustomizations := &helmv2.HelmReleaseList{}, &kustomizev1.KustomizationList{}
	mine := client.MatchingLabels{hubv1.AddonSetLabel: set}
	check(t, h.Client.List(t.Context(), releases, mine))
	check(t, h.Client.List(t.Context(), kustomizations, mine))
	if len(releases.Items) != 1 || len(kustomizations.Items) != 1 {
		return fmt.Errorf("%s has %d HelmReleases and %d Kustomizations", set, len(releases.Items), len(kustomizations.Items))
	}
	got, want := [2]time.Duration{releases.Items[0].Spec.Interval.Duration, kustomizations.Items[0].Spec.Interval.Duration}, [2]time.Duration{release, kustomization}
	if got != want {
		return fmt.Errorf("%s has the intervals %s, want %s", set, got, want)
	}
	return nil
}

// fluxWrites returns what the hub wrote of Flux's objects, and of what they use, since a time.
func (h *hub) fluxWrites(t *testing.T, since time.Time) []string {
	t.Helper()
	events, err := h.Writes(localfleet.HubUserAgent, since)
	check(t, err)
	events = slices.DeleteFunc(events, func(e auditv1.Event) bool {
		return !strings.HasSuffix(e.ObjectRef.APIGroup, ".toolkit.fluxcd.io") && e.ObjectRef.Resource != "secrets"
	})
	out := make([]string, 0, len(events))
	for _, e := range events {
		out = append(out, write(e))
	}
	return out
}
