// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
)

// gitAddon is an add-on of a chart in a folder of a Git repository. The hub does not know the name of that chart.
func gitAddon(path string, more map[string]any) map[string]any {
	out := chartAddon(path, more)
	spec := out["helmRelease"].(map[string]any)["chart"].(map[string]any)["spec"].(map[string]any)
	spec["sourceRef"] = map[string]any{"kind": "GitRepository", "name": "git"}
	return out
}

func refAddon(name string) map[string]any {
	return map[string]any{"name": "app", "helmRelease": map[string]any{"chartRef": map[string]any{"kind": "OCIRepository", "name": name},
		"targetNamespace": "apps"}}
}

// TestReinstallAsksTheGuard: an edit that makes Flux remove what runs, to install something else in its place, waits for the removal guard,
// whatever it is an edit of.
func TestReinstallAsksTheGuard(t *testing.T) {
	const reinstall, dropped = hubv1.ReinstallReason, hubv1.DroppedReason
	chart := func(name string) map[string]any { return chartAddon(name, nil) }
	with := func(key string, value any) map[string]any { return map[string]any{key: value} }
	inPlace := with("upgrade", with("chartNameChangeStrategy", "InPlaceUpdate"))
	kustomization := func(more ...map[string]any) map[string]any { return kustomizationAddon("app", more...) }
	for name, tc := range map[string]struct {
		from, to map[string]any
		reason   string // empty if it is not asked for
		says     string
	}{
		"another chart":                {chart("old"), chart("new"), reinstall, `release "app" of chart "old"`},
		"another version":              {chart("old"), chartAddon("old", with("values", with("a", "b"))), "", ""},
		"another chart, in place":      {chart("old"), chartAddon("new", inPlace), "", ""},
		"another folder":               {gitAddon("./charts/old", nil), gitAddon("./charts/new", nil), "", ""},
		"another chartRef":             {refAddon("old"), refAddon("new"), "", ""},
		"a chart to a chartRef":        {chart("old"), refAddon("new"), "", ""},
		"a chartRef to another chart":  {refAddon("old"), chart("new"), reinstall, `release "app" of chart "chart-of-old"`},
		"a chart to manifests":         {chart("old"), manifestsAddon(), reinstall, `release "app" of chart "ours"`},
		"manifests to a chart":         {manifestsAddon(), chart("new"), reinstall, `release "app" of chart "ours"`},
		"manifests to a chartRef":      {manifestsAddon(), refAddon("new"), "", ""},
		"a chart to a Kustomization":   {chart("old"), kustomization(), dropped, ""},
		"a Kustomization to a chart":   {kustomization(), chart("new"), dropped, ""},
		"manifests to a Kustomization": {manifestsAddon(), kustomization(), dropped, ""},
		"a Kustomization to manifests": {kustomization(), manifestsAddon(), dropped, ""},
		"another folder of manifests":  {kustomization(), kustomization(with("path", "./other")), "", ""},
		"another targetNamespace":      {kustomization(), kustomization(with("targetNamespace", "other")), reinstall, `into namespace "other"`},
		"another namePrefix":           {kustomization(), kustomization(with("namePrefix", "x-")), reinstall, `with names "x-*"`},
		"another nameSuffix": {kustomization(with("nameSuffix", "-a")), kustomization(with("nameSuffix", "-b")), reinstall,
			`uninstall what it applies into the namespaces that its manifests name, with names "*-a"`},
		"a chart to a chart, and others": {chart("old"), chartAddon("new", with("releaseName", "other")), reinstall,
			`install release "other" of chart "new"`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", tc.from)...)
			m.r.Config.Chart = render.ManifestChart{URL: "http://hub", Name: "ours", Digest: "sha256:0"}
			m.settle()
			m.wantReady("app")
			before := m.object("app")
			m.next("2", tc.to)
			m.settle()
			a, after := m.addon("app"), m.object("app")
			if tc.reason == "" {
				if a.Removal != "" || a.State != hubv1.AddonReady || after.GetUID() != before.GetUID() {
					t.Errorf("it is upgraded in place, and is %+v", a)
				}
				return
			}
			if a.State != hubv1.AddonHeld || a.Reason != tc.reason || a.Removal == "" || !strings.Contains(a.Message, tc.says) {
				t.Fatalf("it is %+v", a)
			}
			if hash := hubv1.HashAnnotation; after.GetUID() != before.GetUID() || after.GetAnnotations()[hash] != before.GetAnnotations()[hash] {
				t.Error("its object was written")
			}
			m.editDelivery(testSet, func(d *hubv1.AddonDelivery) { d.Spec.Removals = []string{a.Removal} })
			m.must(m.reconcile())
			m.pause(true)
			m.settle()
			if going := m.addon("app"); tc.reason == reinstall && (going.Removal != a.Removal || going.State != hubv1.AddonPaused) {
				t.Errorf("granted, and paused before Flux had it, it is %+v", going)
			}
			m.pause(false)
			m.settle()
			if a := m.addon("app"); a.State != hubv1.AddonReady || a.Removal != "" {
				t.Errorf("granted, it is %+v", a)
			}
		})
	}
}

// TestNoReinstallOfWhatLeaves: the hub does not reinstall before a removal, whoever turns the removal guard off: another set may be about
// to go on with the release as it is.
func TestNoReinstallOfWhatLeaves(t *testing.T) {
	for name, tc := range map[string]struct {
		leave func(*fixture)
		want  hubv1.AddonState
	}{
		"ItStays":     {func(*fixture) {}, hubv1.AddonReady},
		"NotSelected": {(*fixture).deselect, hubv1.AddonHeld},
		"ItsSetIsGoing": {func(m *fixture) {
			m.editSet(func(s *hubv1.AddonSet) { s.Finalizers = []string{hubv1.Finalizer} })
			m.deleteObject(find(m, "flux-system", testSet, &hubv1.AddonSet{}))
		}, hubv1.AddonHeld},
	} {
		t.Run(name, func(t *testing.T) {
			m := newDeliveredFixture(t, chartAddon("old", nil))
			m.next("2", chartAddon("new", nil))
			m.settle()
			tc.leave(m)
			m.editSet(func(s *hubv1.AddonSet) { s.Spec.RemovalGuard = &hubv1.RemovalGuard{Mode: hubv1.RemovalGuardOff} })
			m.settle()
			if a := m.addon("app"); a.State != tc.want {
				t.Errorf("it is %+v", a)
			}
		})
	}
}

// TestRemovalByALabelWaits: a label by which expressions and overlays of the set decide may come back, like a label by which a set selects,
// so the guard is asked after the same delay. An override of this cluster alone counts at once.
func TestRemovalByALabelWaits(t *testing.T) {
	label := func(value string) func(*hubv1.ClusterRegistration) {
		return func(r *hubv1.ClusterRegistration) { r.Labels = map[string]string{"tier": value} }
	}
	for name, tc := range map[string]struct {
		addon map[string]any
		drop  func(*hubv1.ClusterRegistration)
		waits bool
	}{
		"a label that when reads": {chartAddon("app", nil), label("silver"), true},
		"of plain manifests":      {manifestsAddon(), label("silver"), true},
		"an override": {chartAddon("app", nil), func(r *hubv1.ClusterRegistration) {
			r.Spec.Overrides = []hubv1.Override{{Name: "app", Exclude: true}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.addon["when"], tc.addon["optional"] = "<< cluster.labels['tier'] == 'gold' >>", true
			m := newServedFixture(t, addonsOf(testSet, "1", tc.addon)...)
			m.r.Config.DeselectionDelay = 5 * time.Minute
			after := func(change func(*hubv1.ClusterRegistration)) hubv1.AddonStatus {
				m.editRegistration(change)
				m.settle()
				return m.addon("app")
			}
			if a := after(label("gold")); a.State != hubv1.AddonReady {
				t.Fatalf("it does not arrive: %+v", a)
			}
			before := m.object("app")
			if a := after(tc.drop); (a.State != hubv1.AddonHeld) != tc.waits {
				t.Fatalf("the guard waits: %t; it is %+v", !tc.waits, a)
			}
			if !tc.waits {
				return
			}
			if a := after(label("gold")); a.State != hubv1.AddonReady || m.object("app").GetUID() != before.GetUID() {
				t.Errorf("the label is back, and it is %+v", a)
			}
			after(tc.drop)
			m.clock.SetTime(m.clock.Now().Add(5 * time.Minute))
			if a := after(tc.drop); a.State != hubv1.AddonHeld {
				t.Errorf("the label is gone for good, and it is %+v", a)
			}
		})
	}
}

// TestRemovalComesDue: a removal was not due when the hub made the plan, and is due when the work is done. The hub looks again. No event
// would wake it: the work wrote the status alone.
func TestRemovalComesDue(t *testing.T) {
	k := plan.Key{Kind: "HelmRelease", Namespace: "flux-system", Name: "tenant1-a"}
	d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base-tenant1",
		DeletionTimestamp: &metav1.Time{Time: moment}}}
	reg := &hubv1.ClusterRegistration{Status: hubv1.ClusterRegistrationStatus{
		Conditions: []metav1.Condition{{Type: hubv1.ReachableCondition, Status: metav1.ConditionTrue}},
	}}
	c := passOf(&observed.Cluster{
		Now: moment.Add(400 * time.Millisecond), Registration: reg,
		Objects: map[plan.Key]*observed.Object{k: {Delivery: d.Name, Observed: plan.Observed{Key: k, Addon: "a"}}},
	}, &delivery{Delivery: &observed.Delivery{AddonDelivery: d.DeepCopy(), Before: d, Leaving: true}})
	r := &Reconciler{
		Clock: clocktesting.NewFakePassiveClock(moment.Add(600 * time.Millisecond)), Recorder: events.NewFakeRecorder(10),
		Config: &hubconfig.Config{RemovalDelay: 500 * time.Millisecond},
		Client: interceptor.NewClient(nil, interceptor.Funcs{
			SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
				return nil
			},
		}),
	}
	steps := c.Steps(r.Config)
	if len(steps) != 1 || steps[0].Verb != plan.Hold {
		t.Fatalf("the plan is %+v, want the removal held", steps)
	}
	if again, err := r.finish(t.Context(), c, steps, nil); err != nil || again <= 0 || again > 100*time.Millisecond {
		t.Errorf("looks again after %s (%v), want at most 100ms", again, err)
	}
}

// TestServiceAccountThatGoesWithItsSet: a user has made a ServiceAccount, and removes it along with the set. The hub makes it again for
// Flux, which without one removes nothing.
func TestServiceAccountThatGoesWithItsSet(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "deployer"}}
	there := func(m *fixture) bool {
		err := m.api.Get(t.Context(), client.ObjectKeyFromObject(account), &corev1.ServiceAccount{})
		m.must(client.IgnoreNotFound(err))
		return err == nil
	}
	for name, late := range map[string]bool{"Before": false, "InTheMiddle": true} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(t, append(addonsOf(testSet, "1", kustomizationAddon("git", map[string]any{"serviceAccountName": "deployer"})),
				registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, testSet, "1"), account.DeepCopy())...)
			m.settle()
			m.withdraw(testSet)
			if late {
				m.must(m.reconcile()) // Flux has been told to uninstall, and has not begun
				if o := m.object("git"); o == nil || o.GetDeletionTimestamp() == nil {
					t.Fatalf("it is not being uninstalled: %v", o)
				}
			}
			m.deleteObject(account.DeepCopy())
			m.must(m.reconcile())
			if !there(m) {
				t.Error("Flux would orphan what it is to remove: its ServiceAccount is not on the hub")
			}
			m.settle()
			if len(m.uninstalled) != 1 || m.delivery(testSet) != nil {
				t.Errorf("uninstalled: %v", m.uninstalled)
			}
		})
	}
}
