// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestHeldRemovalIsTold: a delivery on which the removal guard of its set holds something says so, with the command that approves it, for
// as long.
func TestHeldRemovalIsTold(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	says := func() string {
		m.settle()
		if c := status.Find(m.delivery(testSet), hubv1.RemovalsHeldCondition); c != nil {
			return c.Message
		}
		return ""
	}
	m.editSet(func(s *hubv1.AddonSet) { s.Status.HeldRemovals = &hubv1.HeldRemovals{Count: 4, Hash: "0123abcd"} })
	if got := says(); got != "" {
		t.Errorf("nothing is held here, and it says %s", got)
	}
	m.deselect()
	want := "kubectl annotate addonset -n flux-system base --overwrite chandler.dev/approve-removal=" +
		"$(kubectl get addonset -n flux-system base -o jsonpath='{.status.heldRemovals.hash}')"
	if got := says(); !strings.Contains(got, want) {
		t.Errorf("it says %q, want %s", got, want)
	}
	if c := status.Find(m.delivery(testSet), hubv1.ReadyCondition); !strings.Contains(c.Message, "see condition RemovalsHeld") {
		t.Errorf("Ready says %s", c.Message)
	}
	m.editSet(func(s *hubv1.AddonSet) { s.Status.HeldRemovals = &hubv1.HeldRemovals{Count: 5, Hash: "4567abcd"} })
	m.wantNoWrites() // because another cluster joins
	m.editSet(func(s *hubv1.AddonSet) {
		s.Spec.SelectAll, s.Spec.ClusterSelector, s.Status.HeldRemovals = true, nil, nil
	})
	if got := says(); got != "" {
		t.Errorf("nothing is held any more, and it says %s", got)
	}
}

// TestDeselectedIsTold: a delivery of a set that does not select the cluster any more says until when that can be taken back. The removal
// guard holds nothing here before.
func TestDeselectedIsTold(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	before := status.Find(m.delivery(testSet), hubv1.ReadyCondition).Message
	wantReady := func(more string, held bool) {
		t.Helper()
		m.settle()
		d := m.delivery(testSet)
		c := status.Find(d, hubv1.ReadyCondition)
		if c.Message != before+more || c.Status != metav1.ConditionTrue || (status.Find(d, hubv1.RemovalsHeldCondition) != nil) != held {
			t.Errorf("it says %s %q, want %q; held: %t", c.Status, c.Message, before+more, !held)
		}
	}
	after := metav1.NewTime(m.clock.Now().Add(5 * time.Minute).Truncate(time.Second))
	m.deselect()
	m.editSet(func(s *hubv1.AddonSet) { s.Status.HeldRemovals = &hubv1.HeldRemovals{Count: 4, Hash: "0123abcd"} })
	m.editDelivery(testSet, func(d *hubv1.AddonDelivery) { d.Spec.WithdrawAfter = &after })
	const deselected = "; AddonSet flux-system/base does not select the cluster any more; "
	wantReady(deselected+"it leaves after "+after.UTC().Format(time.RFC3339)+", unless it is selected again", false)
	m.clock.SetTime(m.clock.Now().Add(6 * time.Minute))
	wantReady(deselected+"a removal is held: see condition RemovalsHeld", true)
	m.editDelivery(testSet, func(d *hubv1.AddonDelivery) { d.Spec.WithdrawAfter = nil })
	m.editSet(func(s *hubv1.AddonSet) { s.Spec.SelectAll, s.Spec.ClusterSelector = true, nil })
	wantReady("", false)
}

// TestRefusedOverridesAreTold: whatever a cluster's owner writes wrongly, before the add-on came or after, the add-on is delivered, is
// Ready, and follows its set to a new revision. The delivery says what is refused, and forgets that when the owner takes it back.
func TestRefusedOverridesAreTold(t *testing.T) {
	override := func(o hubv1.Override) func(*hubv1.ClusterRegistration) {
		return func(reg *hubv1.ClusterRegistration) { reg.Spec.Overrides = []hubv1.Override{o} }
	}
	evil := hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(`{"chartRef":{"name":"evil"}}`)}}
	for name, tc := range map[string]struct {
		change func(*hubv1.ClusterRegistration)
		says   string
	}{
		"Exclude": {override(hubv1.Override{Name: "app", Exclude: true}),
			`add-on "app": override exclude: the set does not let a cluster leave this add-on out`},
		"Chart": {override(hubv1.Override{Name: "app", AddonBody: evil}),
			"is for the set to decide; no override may change it"},
		"Variable": {func(reg *hubv1.ClusterRegistration) {
			reg.Spec.Variables = map[string]apiextensionsv1.JSON{"replicas": {Raw: []byte(`"three"`)}}
		}, `the cluster's variable "replicas" is ignored here`},
	} {
		t.Run(name, func(t *testing.T) {
			app := releaseAddon("app", map[string]any{"values": map[string]any{"replicas": "<< has(vars.replicas) ? vars.replicas + 1 : 2 >>"}})
			m := newServedFixture(t, addonsOf(testSet, "1", app)...)
			m.editRegistration(tc.change)
			m.settle()
			d := m.delivery(testSet)
			ready, c := status.Find(d, hubv1.ReadyCondition), status.Find(d, hubv1.OverridesRefusedCondition)
			if m.object("app") == nil || ready.Status != metav1.ConditionTrue || d.Status.AddonCounts.Summary != "1/1" {
				t.Fatalf("the add-on is kept away: %+v", d.Status)
			}
			if c == nil || c.Status != metav1.ConditionTrue || c.Reason != hubv1.OverrideRefusedReason || !strings.Contains(c.Message, tc.says) {
				t.Errorf("the delivery says %+v, want %s", c, tc.says)
			}
			if !strings.Contains(ready.Message, "see condition OverridesRefused") {
				t.Errorf("Ready says %q", ready.Message)
			}
			m.wantNoWrites()
			m.next("2", app, releaseAddon("more"))
			m.settle()
			if d = m.delivery(testSet); d.Status.ReadyRevision != revisionOf(testSet, "2") || m.object("more") == nil {
				t.Errorf("the cluster stays on revision %s", d.Status.ReadyRevision)
			}
			m.editRegistration(func(reg *hubv1.ClusterRegistration) { reg.Spec.Overrides, reg.Spec.Variables = nil, nil })
			m.settle()
			if d = m.delivery(testSet); status.Find(d, hubv1.OverridesRefusedCondition) != nil || !status.IsTrue(d, hubv1.ReadyCondition) {
				t.Errorf("the delivery still tells of what was taken back: %+v", d.Status.Conditions)
			}
		})
	}
}

// TestMissingSourceIsMadeAgain: a user has deleted a source that clusters share, and the cluster that was woken by that had no use for it.
// A cluster whose Flux misses the source makes it again.
func TestMissingSourceIsMadeAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		gone  client.Object
		flux  func(*helmv2.HelmRelease)
		again bool
	}{
		"the chart of a set":             {&sourcev1.HelmChart{}, func(*helmv2.HelmRelease) {}, true},
		"the hub's chart":                {&sourcev1.OCIRepository{}, func(*helmv2.HelmRelease) {}, true},
		"and Flux leaves it alone":       {&sourcev1.OCIRepository{}, func(o *helmv2.HelmRelease) { o.Spec.Suspend = true }, false},
		"and Flux has not looked for it": {&sourcev1.OCIRepository{}, func(o *helmv2.HelmRelease) { o.Status.Conditions = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			addon, list := manifestsAddon(), client.ObjectList(&sourcev1.OCIRepositoryList{})
			if _, ok := tc.gone.(*sourcev1.HelmChart); ok {
				addon, list = chartAddon("app", nil), &sourcev1.HelmChartList{}
			}
			m := newDeliveredFixture(t, addon)
			m.must(m.api.DeleteAllOf(t.Context(), tc.gone, client.InNamespace("flux-system")))
			m.fluxSays("ArtifactFailed", "could not get Source object", tc.flux)
			m.must(m.reconcile())
			m.must(m.api.List(t.Context(), list))
			if got := apimeta.LenList(list) == 1; got != tc.again {
				t.Errorf("there are %d", apimeta.LenList(list))
			}
		})
	}
}

// fluxSays has Flux say why the HelmRelease of add-on app is not Ready.
func (m *fixture) fluxSays(reason, message string, more func(*helmv2.HelmRelease)) {
	m.t.Helper()
	o := m.release("app")
	apimeta.SetStatusCondition(&o.Status.Conditions, readyCondition(metav1.ConditionFalse, reason, message, o.Generation))
	more(o)
	m.must(m.api.Update(m.t.Context(), o))
}

// TestMissingSourceIsTold: a delivery says that a source does not exist which the hub does not make, and this is no progress. A source that
// the hub makes again is not missing.
func TestMissingSourceIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		addon   map[string]any
		source  string
		missing bool
	}{
		"a user's":  {releaseAddon("app"), "OCIRepository", true},
		"the hub's": {chartAddon("app", nil), "HelmChart", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newDeliveredFixture(t, tc.addon)
			m.must(m.api.DeleteAllOf(t.Context(), &sourcev1.HelmChart{}, client.InNamespace("flux-system")))
			m.fluxSays("ArtifactFailed", fmt.Sprintf("could not get Source object: %s.source.toolkit.fluxcd.io %q not found",
				tc.source, m.release("app").Spec.ChartRef.Name), func(*helmv2.HelmRelease) {})
			m.must(m.reconcile())
			d := m.delivery(testSet)
			if got := status.Reason(d, hubv1.ReadyCondition) == hubv1.SourceNotFoundReason; got != tc.missing {
				t.Errorf("%+v", d.Status.Conditions)
			}
		})
	}
}

// TestRefusedChartIsTold: a chart that Flux could not fetch is a failure after a while, in Flux's words. So is a chart of a user's source,
// of which no event tells.
func TestRefusedChartIsTold(t *testing.T) {
	refused := readyCondition(metav1.ConditionFalse, "InvalidChartReference", "no 'app' chart with version matching '9.9.9' found", 0)
	for name, tc := range map[string]struct {
		addon  map[string]any
		refuse func(m *fixture)
	}{
		"a set's chart": {chartAddon("app", nil), func(m *fixture) {
			charts := &sourcev1.HelmChartList{}
			m.must(m.api.List(t.Context(), charts))
			refused.ObservedGeneration = charts.Items[0].Generation
			charts.Items[0].Status.Conditions = []metav1.Condition{refused}
			m.must(m.api.Update(t.Context(), &charts.Items[0]))
		}},
		"a user's": {releaseAddon("app"), func(m *fixture) {
			source := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: m.release("app").Spec.ChartRef.Name}}
			source.Status.Conditions = []metav1.Condition{refused}
			m.create(source)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newDeliveredFixture(t, tc.addon)
			tc.refuse(m)
			m.fluxSays("SourceNotReady", "it is not ready", func(*helmv2.HelmRelease) {})
			m.must(m.reconcile())
			if a := m.firstAddon(); a.State != hubv1.AddonProgressing {
				t.Errorf("at once: %+v", a)
			}
			m.clock.SetTime(m.clock.Now().Add(fluxstate.SourceGrace))
			m.must(m.reconcile())
			if a := m.firstAddon(); a.State != hubv1.AddonFailed || a.Reason != "InvalidChartReference" || !strings.Contains(a.Message, "9.9.9") {
				t.Errorf("after a while: %+v", a)
			}
		})
	}
}

// TestOwnMetadata: labels and annotations of people's own come from the set as it is now, whatever the delivery's revision. They come,
// change and go without another revision, and the add-on stays Ready all the time.
func TestOwnMetadata(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	set := func(own, addon *hubv1.OwnMetadata) {
		t.Helper()
		m.editSet(func(s *hubv1.AddonSet) { s.Spec.Metadata, s.Spec.Addons[0].Metadata = own, addon })
		m.settle()
	}
	labels := func(team string) *hubv1.OwnMetadata {
		return &hubv1.OwnMetadata{Labels: map[string]string{"team": team}}
	}
	holds := func(label, annotation, message string) {
		t.Helper()
		o, d := m.object("app"), m.delivery(testSet)
		if l, a := o.GetLabels()["team"], o.GetAnnotations()["event.toolkit.fluxcd.io/team"]; l != label || a != annotation {
			t.Errorf("label team is %q, want %q; the annotation is %q, want %q", l, label, a, annotation)
		}
		if a := d.Status.Addons[0]; d.Spec.RevisionName != revisionOf(testSet, "1") || a.State != hubv1.AddonReady {
			t.Errorf("revision %s, %s: %s", d.Spec.RevisionName, a.State, a.Message)
		}
		got := status.Find(d, hubv1.ReadyCondition).Message
		if strings.Contains(got, "left out here") != (message != "") || !strings.Contains(got, message) {
			t.Errorf("Ready says %q, want %q in it", got, message)
		}
		m.wantNoWrites()
	}
	annotated := labels("payments")
	annotated.Annotations = map[string]string{"event.toolkit.fluxcd.io/team": "<< cluster.name >> is of payments"}
	set(annotated, nil)
	holds("payments", "one is of payments", "")
	set(labels("payments"), labels("shop"))
	holds("shop", "", "")
	m.restart()
	holds("shop", "", "")
	wrong := labels("<< vars.later >>") // as in a set that does not compile
	wrong.Labels["sharding.fluxcd.io/key"] = "a"
	set(wrong, nil)
	holds("", "", "metadata.labels[team]: ")
	if o := m.object("app"); o.GetLabels()["sharding.fluxcd.io/key"] != "" {
		t.Error("it is steered to a shard")
	}
	set(nil, nil)
	holds("", "", "")
}

// TestOwnMetadataWakes: the cluster is looked at when labels of an add-on of its set change.
func TestOwnMetadataWakes(t *testing.T) {
	a, b := &hubv1.AddonSet{}, &hubv1.AddonSet{}
	a.Spec.Addons = []hubv1.Addon{{Name: "x"}}
	b.Spec.Addons = []hubv1.Addon{{Name: "x", Metadata: &hubv1.OwnMetadata{Labels: map[string]string{"team": "a"}}}}
	if !setChanges().Update(event.UpdateEvent{ObjectOld: a, ObjectNew: b}) {
		t.Error("no cluster is looked at when the labels of an add-on change")
	}
	if b = a.DeepCopy(); setChanges().Update(event.UpdateEvent{ObjectOld: a, ObjectNew: b}) {
		t.Error("all look, and nothing has changed")
	}
}
