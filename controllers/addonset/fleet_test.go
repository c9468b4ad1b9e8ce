// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
)

var fleetTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// on is how the set stands on one cluster.
type on struct {
	// reason of the delivery's Ready; none: there is no delivery.
	reason string
	phase  status.Phase
	addons []hubv1.AddonStatus
	// outdated is true if it has been Ready on an older revision only, or never.
	outdated, offline, leaving bool
}

func addonIs(name string, state hubv1.AddonState, message string) hubv1.AddonStatus {
	return hubv1.AddonStatus{Name: name, State: state, Message: message}
}

func (o on) delivery(cluster string) hubv1.AddonDelivery {
	d := hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: identity.Delivery("base", types.NamespacedName{Namespace: "fleet", Name: cluster}), UID: "u"}}
	d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: "fleet", Name: cluster}
	d.Spec.AddonSetRef.Name, d.Spec.RevisionName = "base", "base-2-e1"
	d.Status.Addons = o.addons
	d.Status.AddonCounts = &hubv1.ObjectCounts{}
	for _, a := range o.addons {
		if a.State == hubv1.AddonFailed {
			d.Status.AddonCounts.Failed++
		}
	}
	d.Status.ReadyRevision = "base-2-e1"
	if o.outdated {
		d.Status.ReadyRevision = "base-1-e1"
	}
	status.Summarize(&d, status.Summary{Phase: o.phase, Reason: o.reason}, fleetTime)
	if o.leaving {
		d.Spec.Withdrawal = d.UID
		d.DeletionTimestamp = &metav1.Time{Time: fleetTime}
	}
	return d
}

// TestSetSays: what READY, CLUSTERS, UPDATED, FAILED and MESSAGE of a set say of its clusters.
func TestSetSays(t *testing.T) {
	ready := on{reason: hubv1.AddonsReadyReason, phase: status.Done, addons: []hubv1.AddonStatus{addonIs("hello", hubv1.AddonReady, "")}}
	failing := on{reason: hubv1.AddonsFailedReason, phase: status.Broken, outdated: true, addons: []hubv1.AddonStatus{addonIs("hello", hubv1.AddonFailed, "UpgradeFailed: timeout")}}
	lost := on{reason: hubv1.AddonsLostReason, phase: status.Broken, addons: []hubv1.AddonStatus{addonIs("hello", hubv1.AddonLostTo, "AddonSet a/b delivers it")}}
	partly := on{reason: hubv1.AddonsLostReason, phase: status.Done, addons: []hubv1.AddonStatus{addonIs("hello", hubv1.AddonLostTo, "AddonSet a/b delivers it"), addonIs("more", hubv1.AddonReady, "")}}
	paused := on{reason: hubv1.PausedReason, phase: status.Done, addons: []hubv1.AddonStatus{addonIs("hello", hubv1.AddonPaused, "")}}
	suspended := on{reason: hubv1.SuspendedReason, phase: status.Done, addons: []hubv1.AddonStatus{addonIs("hello", hubv1.AddonSuspended, "")}}
	with := func(o on, change func(*on)) on {
		change(&o)
		return o
	}
	for name, tc := range map[string]struct {
		fleet             map[string]on
		ready             metav1.ConditionStatus
		reason, says      string
		clusters, updated string
		failed            int32
		rollout           string
	}{
		"AllReady": {map[string]on{"w1": ready, "w2": ready}, "True", "Succeeded", "delivered to 2/2 clusters", "2/2", "2/2", 0, "Complete"},
		"OnItsWay": {map[string]on{"w1": ready, "w2": {outdated: true, reason: hubv1.ProgressingReason, phase: status.Working}}, "False", "Progressing", "1/2 clusters have been Ready on this revision; not yet: w2", "1/2", "1/2", 0, "Progressing"},
		"AFailingUpgrade": {map[string]on{"w1": ready, "w2": failing, "w3": {outdated: true, reason: hubv1.ProgressingReason, phase: status.Working}},
			"False", "AddonsFailed", "1/3 clusters have been Ready on this revision; failed: w2 (hello: UpgradeFailed: timeout); not yet: w3", "1/3", "1/3", 1, "Progressing"},
		"FailedSince": {map[string]on{"w1": ready, "w2": with(failing, func(o *on) { o.outdated = false })},
			"True", "Succeeded", "delivered to 2/2 clusters; failed since: w2 (hello: UpgradeFailed: timeout)", "1/2", "2/2", 1, "Complete"},
		"LostEverywhere": {map[string]on{"w1": lost, "w2": lost, "w3": lost},
			"False", "AddonsLost", "nothing of this set is delivered anywhere; delivered by other sets: hello (AddonSet a/b delivers it) on 3 clusters", "0/3", "0/3", 0, "Complete"},
		"LostOnOne": {map[string]on{"w1": ready, "w2": lost},
			"True", "AddonsLost", "delivered to 1/2 clusters; delivered by other sets: hello (AddonSet a/b delivers it) on 1 cluster", "1/2", "1/2", 0, "Complete"},
		"LostInPart": {map[string]on{"w1": partly, "w2": partly},
			"True", "AddonsLost", "delivered to 2/2 clusters; delivered by other sets: hello (AddonSet a/b delivers it) on 2 clusters", "2/2", "2/2", 0, "Complete"},
		"OnePaused": {map[string]on{"w1": ready, "w2": paused}, "True", "Succeeded", "delivered to 2/2 clusters; 1 paused or suspended", "2/2", "2/2", 0, "Complete"},
		"OnePausedBefore": {map[string]on{"w1": ready, "w2": with(paused, func(o *on) { o.outdated, o.phase = true, status.Working })},
			"True", "Succeeded", "delivered to 1/2 clusters; 1 paused or suspended", "1/2", "1/2", 0, "Complete"},
		"OneSuspended": {map[string]on{"w1": ready, "w2": suspended}, "True", "Succeeded", "delivered to 2/2 clusters; 1 paused or suspended, `flux suspend`: w2/hello", "2/2", "2/2", 0, "Complete"},
		"OneOffline":   {map[string]on{"w1": ready, "w2": with(failing, func(o *on) { o.offline = true })}, "True", "Succeeded", "delivered to 1/2 clusters; 1 offline", "1/2", "1/2", 1, "Complete"},
		"OneLeaving":   {map[string]on{"w1": ready, "w2": with(ready, func(o *on) { o.leaving = true })}, "True", "Succeeded", "delivered to 1/1 clusters; being withdrawn from 1 cluster", "1/1", "1/1", 0, "Complete"},
	} {
		t.Run(name, func(t *testing.T) {
			set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}, Spec: hubv1.AddonSetSpec{SelectAll: true}}
			set.Status.Revision = "base-2-e1"
			selector := must.Get(match.New(match.Reach{Namespace: set.Namespace, Platform: true}, &set.Spec)).Or(t)
			r := &Reconciler{Config: &hubconfig.Config{}, Clock: clocktesting.NewFakePassiveClock(fleetTime), Client: lists(tc.fleet)}
			f, _, err := r.observe(t.Context(), set, match.Aim{Reach: selector.Reach(), Selector: selector})
			if err != nil {
				t.Fatal(err)
			}
			must.Get(r.roll(t.Context(), set, f, &revised{})).Or(t)
			f.Summarize(set, nil, fleetTime)
			c := status.Find(set, hubv1.ReadyCondition)
			if c.Status != tc.ready || c.Reason != tc.reason || c.Message != tc.says {
				t.Errorf("got  %s %s: %s\nwant %s %s: %s", c.Status, c.Reason, c.Message, tc.ready, tc.reason, tc.says)
			}
			if n := set.Status.Clusters; n.ReadySummary != tc.clusters || n.UpdatedSummary != tc.updated || n.Failed != tc.failed || string(set.Status.Rollout.Phase) != tc.rollout {
				t.Errorf("CLUSTERS %s UPDATED %s FAILED %d ROLLOUT %s, want %s %s %d %s", n.ReadySummary, n.UpdatedSummary, n.Failed, set.Status.Rollout.Phase, tc.clusters, tc.updated, tc.failed, tc.rollout)
			}
		})
	}
}

// lists returns a client that lists the deliveries and registrations of a fleet, and takes every write.
func lists(fleet map[string]on) client.WithWatch {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			obj.SetName(key.Name)
			return nil
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			for name, o := range fleet {
				switch l := list.(type) {
				case *hubv1.AddonDeliveryList:
					l.Items = append(l.Items, o.delivery(name))
				case *hubv1.ClusterRegistrationList:
					reg := hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}}
					if !o.offline {
						status.Set(&reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason, "", fleetTime)
					}
					l.Items = append(l.Items, reg)
				}
			}
			return nil
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return nil },
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return nil
		},
	})
}

// TestSetBeingDeleted: it has clusters to leave, and none to be Ready on.
func TestSetBeingDeleted(t *testing.T) {
	ready := on{reason: hubv1.AddonsReadyReason, phase: status.Done, addons: []hubv1.AddonStatus{addonIs("hello", hubv1.AddonReady, "")}, leaving: true}
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", DeletionTimestamp: &metav1.Time{Time: fleetTime}}}
	set.Status.Rollout = &hubv1.RolloutStatus{Phase: hubv1.RolloutDone}
	set.Status.Clusters = &hubv1.ClusterCounts{Matched: 3, Ready: 2, ReadySummary: "2/3", UpdatedSummary: "2/3"}
	r := &Reconciler{Config: &hubconfig.Config{}, Clock: clocktesting.NewFakePassiveClock(fleetTime), Recorder: events.NewFakeRecorder(10), Client: lists(nil), Live: lists(nil)}
	must.Do(t, r.retire(t.Context(), set, []hubv1.AddonDelivery{ready.delivery("w1")}))
	if c := status.Find(set, hubv1.ReadyCondition); c.Message != "being withdrawn from 1 cluster: w1" {
		t.Errorf("it says %q", c.Message)
	}
	if n := set.Status.Clusters; n.ReadySummary != "" || n.UpdatedSummary != "" || n.Leaving != 1 || set.Status.Rollout.Phase != hubv1.RolloutWithdrawing {
		t.Errorf("it counts %+v, ROLLOUT %s", n, set.Status.Rollout.Phase)
	}
}
