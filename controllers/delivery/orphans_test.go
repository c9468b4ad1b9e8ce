// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/teardown"
)

var moment = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func leaving(addons ...hubv1.AddonStatus) *delivery {
	at := metav1.NewTime(moment)
	a := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "d", DeletionTimestamp: &at}}
	a.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: "fleet", Name: "one"}
	a.Spec.AddonSetRef.Name = "base"
	a.Status.Addons = addons
	return &delivery{Delivery: &observed.Delivery{AddonDelivery: a, Before: a.DeepCopy()}}
}

func TestGone(t *testing.T) {
	orphan := hubv1.AddonStatus{Name: "a", State: hubv1.AddonOrphaned}
	for name, tc := range map[string]struct {
		addons []hubv1.AddonStatus
		want   bool
	}{
		"Nothing":      {want: true},
		"Orphans":      {addons: []hubv1.AddonStatus{orphan}, want: true},
		"OneIsLeft":    {addons: []hubv1.AddonStatus{orphan, {Name: "b", State: hubv1.AddonPaused}}},
		"OneIsLeaving": {addons: []hubv1.AddonStatus{{Name: "b", State: hubv1.AddonRemoving}}},
	} {
		if got := gone(leaving(tc.addons...)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// goingNamespaces are the namespaces that are being deleted; a read of any other gives one that is not.
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

// An event about what is left lies where events can still be written, whether or not the delivery has been reached by its namespace's end.
func TestAbout(t *testing.T) {
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

// A delivery stays until its orphans are written down where they outlive it, and no longer than a minute.
func TestTold(t *testing.T) {
	since := metav1.NewTime(moment)
	d := leaving(hubv1.AddonStatus{Name: "a", State: hubv1.AddonOrphaned, Since: &since})
	list, _ := teardown.Orphans(nil, []hubv1.AddonDelivery{*d.AddonDelivery}, nil)
	reg := func(orphans []hubv1.Orphan, deleting bool) *hubv1.ClusterRegistration {
		r := &hubv1.ClusterRegistration{Status: hubv1.ClusterRegistrationStatus{Orphans: orphans}}
		if deleting {
			r.DeletionTimestamp = &since
		}
		return r
	}
	set := func(orphans []hubv1.Orphan, deleting bool) *hubv1.AddonSet {
		s := &hubv1.AddonSet{Status: hubv1.AddonSetStatus{Orphans: orphans}}
		if deleting {
			s.DeletionTimestamp = &since
		}
		return s
	}
	for name, tc := range map[string]struct {
		reg   *hubv1.ClusterRegistration
		set   *hubv1.AddonSet
		after time.Duration
		want  bool
	}{
		"BothKnow":        {reg(list, false), set(list, false), 0, true},
		"SetDoesNot":      {reg(list, false), set(nil, false), 0, false},
		"ClusterDoesNot":  {reg(nil, false), set(list, false), 0, false},
		"ClusterGoes":     {reg(nil, true), set(list, false), 0, true},
		"SetGoes":         {reg(list, false), set(nil, true), 0, true},
		"NeitherIsThere":  {nil, nil, 0, true},
		"BothGo":          {reg(nil, true), set(nil, true), 0, true},
		"NothingHangs":    {reg(nil, false), set(nil, false), time.Minute + time.Second, true},
		"NotYetAMinute":   {reg(nil, false), set(nil, false), time.Minute - time.Second, false},
		"OnlyASetIsThere": {nil, set(nil, false), 0, false},
	} {
		d.Set = tc.set
		if got := passOf(&observed.Cluster{Registration: tc.reg, Now: moment.Add(tc.after)}).told(d); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// waits for that until both say it, and no longer than if the hub had been there.
func TestAnOrphanOfOldIsStillToBeRecorded(t *testing.T) {
	then := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	came := then.Add(time.Hour)
	for name, tc := range map[string]struct {
		began, now time.Time
		recorded   bool
		want       bool
	}{
		"ItHasJustBegun":         {came, came.Add(time.Second), false, false},
		"AndItIsRecorded":        {came, came.Add(time.Second), true, true},
		"NobodyRecordsIt":        {came, came.Add(time.Minute + time.Second), false, true},
		"ItWasThereAllTheTime":   {then.Add(-time.Hour), then.Add(time.Minute + time.Second), false, true},
		"ItIsFromAMomentAgo":     {then.Add(-time.Hour), then.Add(time.Second), false, false},
		"NothingIsKnownOfItself": {time.Time{}, came, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &delivery{Delivery: &observed.Delivery{AddonDelivery: &hubv1.AddonDelivery{}, Set: &hubv1.AddonSet{}}}
			d.Namespace, d.Name = "flux-system", "base"
			d.Status.Addons = []hubv1.AddonStatus{{Name: "hello", State: hubv1.AddonOrphaned, Since: new(metav1.NewTime(then))}}
			c := passOf(&observed.Cluster{Registration: &hubv1.ClusterRegistration{}, Now: tc.now, Began: tc.began})
			if tc.recorded {
				list := []hubv1.Orphan{teardown.OrphanOf(d.AddonDelivery, d.Status.Addons[0])}
				d.Set.Status.Orphans, c.Registration.Status.Orphans = list, list
			}
			if got := c.told(d); got != tc.want {
				t.Errorf("told: %t", got)
			}
		})
	}
}
