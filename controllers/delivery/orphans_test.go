// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// leaving is a delivery that is being deleted, whose status has these add-ons.
func leaving(addons ...hubv1.AddonStatus) *delivery {
	at := metav1.NewTime(moment)
	a := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "d", DeletionTimestamp: &at}}
	a.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: "fleet", Name: "one"}
	a.Spec.AddonSetRef.Name = "base"
	a.Status.Addons = addons
	return &delivery{Delivery: &observed.Delivery{AddonDelivery: a, Before: a.DeepCopy()}}
}

// TestGone: a delivery is gone when it has orphans only.
func TestGone(t *testing.T) {
	orphan := hubv1.AddonStatus{Name: "a", State: hubv1.AddonOrphaned}
	for name, tc := range map[string]struct {
		delivery *delivery
		want     bool
	}{
		"Nothing":      {leaving(), true},
		"Orphans":      {leaving(orphan), true},
		"OneIsLeft":    {leaving(orphan, hubv1.AddonStatus{Name: "b", State: hubv1.AddonPaused}), false},
		"OneIsLeaving": {leaving(hubv1.AddonStatus{Name: "b", State: hubv1.AddonRemoving}), false},
	} {
		if got := gone(tc.delivery); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// goingNamespaces are the namespaces that are being deleted. A read of any other gives one that is not.
type goingNamespaces []string

func (g goingNamespaces) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("nothing is to be read but lists")
}

func (g goingNamespaces) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := &client.ListOptions{}
	o.ApplyOptions(opts)
	name, _ := o.FieldSelector.RequiresExactMatch(metav1.ObjectNameField)
	ns := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if slices.Contains(g, name) {
		ns.DeletionTimestamp = &metav1.Time{Time: moment}
	}
	list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{ns}
	return nil
}

// TestEventIsAbout: an event about an orphan lies where events can still be written, whether or not the delivery has been reached by its
// namespace's end.
func TestEventIsAbout(t *testing.T) {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}}
	for name, tc := range map[string]struct {
		going   goingNamespaces
		deleted bool
		want    string
	}{
		"AllIsWell":           {nil, false, "flux-system/d"},
		"Deleted":             {nil, true, "flux-system/d"},
		"ItsNamespaceGoes":    {goingNamespaces{"flux-system"}, true, "fleet/one"},
		"ItsNamespaceGoesYet": {goingNamespaces{"flux-system"}, false, "fleet/one"},
		"BothGo":              {goingNamespaces{"flux-system", "fleet"}, false, "/flux-system"},
	} {
		d := leaving()
		if !tc.deleted {
			d.DeletionTimestamp = nil
		}
		obj := (&Reconciler{Live: tc.going}).about(t.Context(), passOf(&observed.Cluster{Registration: reg}), d.AddonDelivery, d.Namespace)
		if got := obj.GetNamespace() + "/" + obj.GetName(); got != tc.want {
			t.Errorf("%s: about %s, want %s", name, got, tc.want)
		}
	}
}

// TestDeliveryWaitsUntilOrphansAreListed: a delivery stays until registration and set list its orphans, which outlive it, and no longer
// than a minute. After a pause of the hub, that minute begins when the hub does.
func TestDeliveryWaitsUntilOrphansAreListed(t *testing.T) {
	since := metav1.NewTime(moment)
	d := leaving(hubv1.AddonStatus{Name: "a", State: hubv1.AddonOrphaned, Since: &since})
	list, _ := teardown.Orphans(nil, []hubv1.AddonDelivery{*d.AddonDelivery}, nil)
	reg := func(orphans []hubv1.Orphan) *hubv1.ClusterRegistration {
		return &hubv1.ClusterRegistration{Status: hubv1.ClusterRegistrationStatus{Orphans: orphans}}
	}
	set := func(orphans []hubv1.Orphan) *hubv1.AddonSet {
		return &hubv1.AddonSet{Status: hubv1.AddonSetStatus{Orphans: orphans}}
	}
	goingReg, goingSet := reg(nil), set(nil)
	goingReg.DeletionTimestamp, goingSet.DeletionTimestamp = &since, &since
	before, came := moment.Add(-time.Hour), moment.Add(time.Hour)
	for name, tc := range map[string]struct {
		reg   *hubv1.ClusterRegistration
		set   *hubv1.AddonSet
		began time.Time     // when the hub began to work, if it knows that
		now   time.Duration // when it looks, after the add-on was orphaned
		want  bool
	}{
		"BothList":                  {reg(list), set(list), before, 0, true},
		"SetDoesNot":                {reg(list), set(nil), before, 0, false},
		"RegistrationDoesNot":       {reg(nil), set(list), before, 0, false},
		"RegistrationGoes":          {goingReg, set(list), before, 0, true},
		"SetGoes":                   {reg(list), goingSet, before, 0, true},
		"BothGo":                    {goingReg, goingSet, before, 0, true},
		"NeitherIsThere":            {nil, nil, before, 0, true},
		"OnlyASetIsThere":           {nil, set(nil), before, 0, false},
		"NotYetAMinute":             {reg(nil), set(nil), before, 59 * time.Second, false},
		"AMinute":                   {reg(nil), set(nil), before, 61 * time.Second, true},
		"TheHubHasJustBegun":        {reg(nil), set(nil), came, time.Hour + time.Second, false},
		"TheHubHasBegunAndBothList": {reg(list), set(list), came, time.Hour + time.Second, true},
		"TheHubBeganAMinuteAgo":     {reg(nil), set(nil), came, time.Hour + 61*time.Second, true},
		"TheHubDoesNotKnow":         {reg(nil), set(nil), time.Time{}, time.Hour, true},
	} {
		d.Set = tc.set
		c := passOf(&observed.Cluster{Registration: tc.reg, Now: moment.Add(tc.now), Began: tc.began})
		if got := c.told(d); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestOriginLost: what leaves since the Secret of its cluster did not come back is orphaned when the guard has let its delivery go, and is
// listed.
func TestOriginLost(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"), kustomizationAddon("git"))
	m.unregister(hubv1.OriginLostReason, "the Secret is gone")
	m.settle()
	if len(m.objects()) != 2 || len(m.released)+len(m.uninstalled) > 0 {
		t.Fatalf("what the guard holds: orphaned %v, uninstalled %v", m.released, m.uninstalled)
	}
	m.withdraw(testSet)
	m.settle()
	got := m.orphans()
	if len(m.objects()) > 0 || len(m.released) != 2 || len(got) != 2 || !strings.Contains(got[0].Message, "the Secret is gone") {
		t.Errorf("orphaned %v, uninstalled %v, orphans %+v", m.released, m.uninstalled, got)
	}
}

// TestOvertakenIsTold: what Flux has applied in part, and not in whole, Flux never notes if it is to apply something else then. An event
// tells of that.
func TestOvertakenIsTold(t *testing.T) {
	marked := plan.Observed{AppliedAs: "a", Mark: "1 a"}
	never := kustomizev1.KustomizationStatus{History: fluxmeta.History{{TotalReconciliations: 1}}}
	failed := func(of, succeeded int64) kustomizev1.KustomizationStatus {
		return kustomizev1.KustomizationStatus{ObservedGeneration: succeeded, LastAppliedRevision: "main@sha1:0", Conditions: []metav1.Condition{
			{Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "ReconciliationFailed", ObservedGeneration: of}}}
	}
	stalled := failed(3, 3)
	stalled.Conditions[0].Reason = fluxmeta.InvalidCELExpressionReason
	for name, tc := range map[string]struct {
		there   plan.Observed
		version string
		live    *kustomizev1.KustomizationStatus
		to      string
		want    bool
	}{
		"it failed with the folder before":                {marked, "main@sha1:0", new(failed(2, 1)), "./c", true},
		"it has stalled, and may have failed before that": {marked, "main@sha1:0", &stalled, "./c", true},
		"it goes back":                          {marked, "main@sha1:0", new(failed(2, 1)), "./a", true},
		"the folder stays":                      {marked, "main@sha1:0", new(failed(2, 1)), "./b", false},
		"Flux has not come to that":             {marked, "main@sha1:0", new(failed(1, 1)), "./c", false},
		"it has succeeded, as the cache lags":   {marked, "main@sha1:0", new(failed(3, 2)), "./c", false},
		"it has never succeeded":                {plan.Observed{}, "", &never, "./c", true},
		"it has never been tried":               {plan.Observed{}, "", &kustomizev1.KustomizationStatus{}, "./c", false},
		"it has succeeded":                      {plan.Observed{}, "main@sha1:0", &never, "./c", false},
		"it is gone, and nothing is made of it": {marked, "main@sha1:0", nil, "./c", false},
	} {
		t.Run(name, func(t *testing.T) {
			m, d := newFixture(t), leaving()
			c := passOf(&observed.Cluster{Key: testCluster, Now: m.clock.Now(), Objects: map[plan.Key]*observed.Object{}}, d)
			k := plan.Key{Kind: fluxspec.KustomizationKind, Namespace: "flux-system", Name: "one-app"}
			tc.there.Key, tc.there.Addon, tc.there.Folder = k, "app", plan.FolderOf("./b")
			if tc.live != nil {
				m.must(m.api.Create(t.Context(), &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name},
					Status: *tc.live}))
			}
			w := &assembly.Wanted{Object: flux.Object{Addon: "app", Kind: k.Kind, Path: tc.to}}
			m.must(m.r.tellOvertaken(t.Context(), c, d, w, &observed.Object{Observed: tc.there, State: fluxstate.State{Version: tc.version}}))
			if got := m.orphanEvents(); len(got) > 0 != tc.want ||
				tc.want && (!strings.Contains(got[0], `"app"`) || !strings.Contains(got[0], testCluster.String())) {
				t.Errorf("told: %v", got)
			}
		})
	}
}

// half has Flux fail in the middle of applying a Kustomization for the first time.
func (m *fixture) half(addon string, change func(*kustomizev1.Kustomization)) {
	o := m.object(addon)
	edit(m, o.GetNamespace(), o.GetName(), &kustomizev1.Kustomization{}, func(k *kustomizev1.Kustomization) {
		k.Generation = 1
		k.Finalizers = []string{fluxFinalizer}
		k.Status = kustomizev1.KustomizationStatus{LastAttemptedRevision: "main@sha1:1"}
		apimeta.SetStatusCondition(&k.Status.Conditions, metav1.Condition{
			Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "ReconciliationFailed", ObservedGeneration: 1,
			Message: "Deployment/apps/web dry-run failed (Invalid)\nNamespace/apps created\n",
		})
		k.Status.History = fluxmeta.History{{Digest: "d", TotalReconciliations: 1, LastReconciledStatus: "ReconciliationFailed"}}
		change(k)
	})
}

// TestAppliedInPart: Flux notes what it has applied when it has applied all of it. Flux leaves what it has applied in part without a word.
// The hub lists that as an orphan.
func TestAppliedInPart(t *testing.T) {
	same := func(*kustomizev1.Kustomization) {}
	for name, tc := range map[string]struct {
		change func(*kustomizev1.Kustomization)
		orphan string // what its message holds; empty for none
	}{
		"Failed":     {same, "Namespace/apps"},
		"TriesAgain": {func(k *kustomizev1.Kustomization) { k.Status.Conditions[0].Status = metav1.ConditionUnknown }, "in part"},
		"NoWay": {func(k *kustomizev1.Kustomization) {
			k.Status.Conditions[0].Message = `dry-run failed: Get "https://192.0.2.7:6443/api": dial tcp: i/o timeout`
		}, ""},
		"NeverBuilt": {func(k *kustomizev1.Kustomization) {
			k.Status.Conditions[0].Reason, k.Status.History = "BuildFailed", nil
		}, ""},
		"AppliedOnce": {func(k *kustomizev1.Kustomization) {
			k.Status.LastAppliedRevision = "main@sha1:0"
			k.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "_apps__Namespace"}}}
		}, ""},
		"NotHealthy": {func(k *kustomizev1.Kustomization) {
			k.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "_apps__Namespace"}}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", kustomizationAddon("git"))...)
			m.must(m.reconcile())
			m.half("git", tc.change)
			m.settle()
			if tc.orphan != "" && name == "TriesAgain" {
				m.half("git", tc.change) // the Flux of this test has made it Ready
			}
			m.withdraw(testSet)
			m.settle()
			got := m.orphans()
			if m.delivery(testSet) != nil || len(m.objects()) > 0 {
				t.Fatalf("left: %v", m.objects())
			}
			switch {
			case tc.orphan == "" && (len(got) > 0 || len(m.uninstalled) != 1):
				t.Errorf("orphans %+v; uninstalled %v", got, m.uninstalled)
			case tc.orphan != "" && (len(got) != 1 || !strings.Contains(got[0].Message, tc.orphan) || len(m.told) != 1 || len(m.uninstalled) > 0):
				t.Errorf("orphans %+v; events %q; uninstalled %v", got, m.told, m.uninstalled)
			}
		})
	}
}

// TestWaitsForTheFirstTry: the hub does not delete a Kustomization in the middle of Flux's first try, and waits for its end. Flux would
// remove what it has applied if all goes well, and leave that if not.
func TestWaitsForTheFirstTry(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", kustomizationAddon("git"))...)
	m.must(m.reconcile())
	m.half("git", func(k *kustomizev1.Kustomization) {
		k.Status.Conditions[0].Status, k.Status.History = metav1.ConditionUnknown, nil
	})
	m.withdraw(testSet)
	m.clock.SetTime(m.clock.Now().Add(time.Minute))
	for range 3 {
		m.must(m.reconcile())
	}
	if o := m.object("git"); o == nil || o.GetDeletionTimestamp() != nil {
		t.Fatal("it is deleted in the middle of Flux's first try")
	}
	m.half("git", func(*kustomizev1.Kustomization) {})
	m.settle()
	if got := m.orphans(); len(got) != 1 || m.delivery(testSet) != nil {
		t.Errorf("orphans: %+v", got)
	}
}

// TestOrphanSaysWhatFluxHasBegun: a worker of Flux that had begun to uninstall when the cluster stopped answering may go on after the
// object is orphaned.
func TestOrphanSaysWhatFluxHasBegun(t *testing.T) {
	k := plan.Key{Kind: fluxspec.KustomizationKind, Namespace: "flux-system", Name: "one"}
	for _, begun := range []bool{false, true} {
		m, o := newFixture(t), &observed.Object{Observed: plan.Observed{Key: k, Deleting: begun}}
		c := passOf(&observed.Cluster{Objects: map[plan.Key]*observed.Object{k: o}})
		got, err := m.r.left(t.Context(), c, plan.Step{Key: k, Verb: plan.Orphan, Reason: "the cluster is gone"})
		if err != nil || strings.Contains(got, "Flux had begun to uninstall it") != begun {
			t.Errorf("got %q, %v; want it to say what Flux has begun: %t", got, err, begun)
		}
	}
}

// TestFinalizerOfAnOrphan: an orphan does not wait for a worker of Flux that hangs. What is uninstalled does, and what is handed over: Flux
// may be in the middle of an upgrade.
func TestFinalizerOfAnOrphan(t *testing.T) {
	const theirs = "example.org/theirs"
	for name, tc := range map[string]struct {
		verb    plan.Verb
		since   time.Duration // since its deletion
		more    []string      // finalizers, besides Flux's
		another bool          // an object of that name that was made later
		left    []string
		again   time.Duration
	}{
		"Stuck":       {verb: plan.Orphan, since: time.Minute},
		"JustDeleted": {verb: plan.Orphan, since: 3 * time.Second, left: []string{fluxFinalizer}, again: 7 * time.Second},
		"AUsersToo":   {verb: plan.Orphan, since: time.Minute, more: []string{theirs}, left: []string{theirs}},
		"Uninstall":   {verb: plan.Uninstall, since: time.Hour, left: []string{fluxFinalizer}},
		"HandOver":    {verb: plan.HandOver, since: time.Hour, left: []string{fluxFinalizer}},
		"AnotherOne":  {verb: plan.Orphan, since: time.Minute, another: true, left: []string{fluxFinalizer}},
	} {
		for _, kind := range []string{fluxspec.HelmReleaseKind, fluxspec.KustomizationKind} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				k := plan.Key{Kind: kind, Namespace: "flux-system", Name: "one"}
				deleted := metav1.NewTime(moment.Add(-tc.since))
				obj := observed.NewObject(k)
				obj.SetUID("this")
				obj.SetFinalizers(append(tc.more, fluxFinalizer))
				obj.SetDeletionTimestamp(&deleted)
				m := newFixture(t, obj)
				m.clock.SetTime(moment)
				known := &observed.Object{UID: "this", Deleted: deleted.Time, Observed: plan.Observed{Key: k}}
				if tc.another {
					known.UID = "before"
				}
				c := passOf(&observed.Cluster{Objects: map[plan.Key]*observed.Object{k: known}})
				m.must(m.r.unfinalize(t.Context(), c, plan.Step{Key: k, Verb: tc.verb}))
				var left []string
				if o := reread(m, obj); o != nil {
					left = o.GetFinalizers()
				}
				if !slices.Equal(left, tc.left) || c.Again != tc.again {
					t.Errorf("finalizers %v, want %v; looks again after %s, want %s", left, tc.left, c.Again, tc.again)
				}
			})
		}
	}
}
