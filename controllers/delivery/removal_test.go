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
	inPlace := map[string]any{"upgrade": map[string]any{"chartNameChangeStrategy": "InPlaceUpdate"}}
	kustomization := func() map[string]any { return kustomizationAddon("app") }
	named := func(field, value string) map[string]any {
		a := kustomization()
		a["kustomization"].(map[string]any)[field] = value
		return a
	}
	for name, tc := range map[string]struct {
		from, to map[string]any
		reason   string // empty if it is not asked for
		says     string
	}{
		"another chart":           {chartAddon("old", nil), chartAddon("new", nil), hubv1.ReinstallReason, `release "app" of chart "old"`},
		"another version":         {chartAddon("old", nil), chartAddon("old", map[string]any{"values": map[string]any{"a": "b"}}), "", ""},
		"another chart, in place": {chartAddon("old", nil), chartAddon("new", inPlace), "", ""},
		"another folder":          {gitAddon("./charts/old", nil), gitAddon("./charts/new", nil), "", ""},
		"another chartRef":        {refAddon("old"), refAddon("new"), "", ""},
		"a chart to a chartRef":   {chartAddon("old", nil), refAddon("new"), "", ""},
		"a chartRef to another chart": {refAddon("old"), chartAddon("new", nil), hubv1.ReinstallReason,
			`release "app" of chart "chart-of-old"`},
		"a chart to manifests":         {chartAddon("old", nil), manifestsAddon(), hubv1.ReinstallReason, `release "app" of chart "ours"`},
		"manifests to a chart":         {manifestsAddon(), chartAddon("new", nil), hubv1.ReinstallReason, `release "app" of chart "ours"`},
		"manifests to a chartRef":      {manifestsAddon(), refAddon("new"), "", ""},
		"a chart to a Kustomization":   {chartAddon("old", nil), kustomization(), hubv1.DroppedReason, ""},
		"a Kustomization to a chart":   {kustomization(), chartAddon("new", nil), hubv1.DroppedReason, ""},
		"manifests to a Kustomization": {manifestsAddon(), kustomization(), hubv1.DroppedReason, ""},
		"a Kustomization to manifests": {kustomization(), manifestsAddon(), hubv1.DroppedReason, ""},
		"another folder of manifests":  {kustomization(), named("path", "./other"), "", ""},
		"another targetNamespace":      {kustomization(), named("targetNamespace", "other"), hubv1.ReinstallReason, `into namespace "other"`},
		"another namePrefix":           {kustomization(), named("namePrefix", "x-"), hubv1.ReinstallReason, `with names "x-*"`},
		"another nameSuffix": {named("nameSuffix", "-a"), named("nameSuffix", "-b"), hubv1.ReinstallReason,
			`uninstall what it applies into the namespaces that its manifests name, with names "*-a"`},
		"a chart to a chart, and others": {chartAddon("old", nil), chartAddon("new", map[string]any{"releaseName": "other"}),
			hubv1.ReinstallReason, `install release "other" of chart "new"`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", tc.from)...)
			m.r.Config.Chart = render.ManifestChart{URL: "http://hub", Name: "ours", Digest: "sha256:0"}
			m.settle()
			before := m.object("app")
			if before == nil || m.addon("app").State != hubv1.AddonReady {
				t.Fatalf("it does not arrive: %+v", m.delivery(testSet).Status)
			}
			m.must(m.api.Create(t.Context(), addonsOf(testSet, "2", tc.to)[1]))
			m.roll(testSet, "2")
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
			if after.GetUID() != before.GetUID() || after.GetAnnotations()[hubv1.HashAnnotation] != before.GetAnnotations()[hubv1.HashAnnotation] {
				t.Error("its object was written")
			}
			m.editDelivery(testSet, func(d *hubv1.AddonDelivery) { d.Spec.Removals = []string{a.Removal} })
			m.must(m.reconcile())
			m.pause(true)
			m.settle()
			if going := m.addon("app"); tc.reason == hubv1.ReinstallReason && (going.Removal != a.Removal || going.State != hubv1.AddonPaused) {
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
		leave func(*hubv1.AddonSet)
		want  hubv1.AddonState
	}{
		"ItStays": {func(*hubv1.AddonSet) {}, hubv1.AddonReady},
		"NotSelected": {func(s *hubv1.AddonSet) {
			s.Spec.SelectAll, s.Spec.ClusterSelector = false, &metav1.LabelSelector{MatchLabels: map[string]string{"no": "where"}}
		}, hubv1.AddonHeld},
		"ItsSetIsGoing": {func(s *hubv1.AddonSet) { s.Finalizers = []string{hubv1.AddonSetFinalizer} }, hubv1.AddonHeld},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", chartAddon("old", nil))...)
			m.settle()
			m.must(m.api.Create(t.Context(), addonsOf(testSet, "2", chartAddon("new", nil))[1]))
			m.roll(testSet, "2")
			m.settle()
			set := &hubv1.AddonSet{}
			edit(m, "flux-system", testSet, set, func(s *hubv1.AddonSet) {
				s.Spec.RemovalGuard = &hubv1.RemovalGuard{Mode: hubv1.RemovalGuardOff}
				tc.leave(s)
			})
			if len(set.Finalizers) > 0 {
				m.deleteObject(set)
			}
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
	label := func(value string) func(m *fixture) {
		return func(m *fixture) {
			m.editRegistration(func(r *hubv1.ClusterRegistration) {
				r.Labels = map[string]string{"tier": value}
			})
		}
	}
	overridden := func(m *fixture) {
		m.editRegistration(func(r *hubv1.ClusterRegistration) {
			r.Spec.Overrides = []hubv1.Override{{Name: "app", Exclude: true}}
		})
	}
	conditional := map[string]any{"when": "<< cluster.labels['tier'] == 'gold' >>", "optional": true}
	for name, tc := range map[string]struct {
		addon map[string]any
		drop  func(m *fixture)
		stays bool
	}{
		"a label that when reads": {chartAddon("app", nil), label("silver"), true},
		"of plain manifests":      {manifestsAddon(), label("silver"), true},
		"an override":             {chartAddon("app", nil), overridden, false},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range conditional {
				tc.addon[k] = v
			}
			m := newServedFixture(t, addonsOf(testSet, "1", tc.addon)...)
			m.r.Config.DeselectionDelay = 5 * time.Minute
			m.quietly(func() { label("gold")(m) })
			m.settle()
			before := m.object("app")
			if before == nil {
				t.Fatalf("it does not arrive: %+v", m.delivery(testSet).Status)
			}
			m.quietly(func() { tc.drop(m) })
			m.settle()
			if !tc.stays {
				if m.addon("app").State != hubv1.AddonHeld { // the guard is asked
					t.Errorf("nothing happens: %+v", m.addon("app"))
				}
				return
			}
			if a := m.addon("app"); a.State == hubv1.AddonHeld {
				t.Fatalf("the guard is asked at once: %+v", a)
			}
			label("gold")(m)
			m.settle()
			if a, after := m.addon("app"), m.object("app"); a.State != hubv1.AddonReady || after.GetUID() != before.GetUID() {
				t.Errorf("the label is back, and it is %+v", a)
			}
			m.quietly(func() { tc.drop(m) })
			m.settle()
			m.clock.SetTime(m.clock.Now().Add(5 * time.Minute))
			m.settle()
			if m.addon("app").State != hubv1.AddonHeld {
				t.Errorf("the label is gone for good, and it is %+v", m.addon("app"))
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
