// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestMetadata: labels and annotations of people's own come from the set as it is now, whatever the delivery's revision. They come, change and
// go without another revision, and the add-on stays Ready all the time.
func TestMetadata(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
	m.settle()
	set := func(own *hubv1.OwnMetadata, addon *hubv1.OwnMetadata) {
		t.Helper()
		edit(m, "flux-system", testSet, &hubv1.AddonSet{}, func(s *hubv1.AddonSet) { s.Spec.Metadata, s.Spec.Addons[0].Metadata = own, addon })
		m.settle()
	}
	holds := func(label, annotation, message string) {
		t.Helper()
		o := m.object(testCluster, "app")
		if got := o.GetLabels()["team"]; got != label {
			t.Errorf("label team is %q, want %q", got, label)
		}
		if got := o.GetAnnotations()["event.toolkit.fluxcd.io/team"]; got != annotation {
			t.Errorf("the annotation is %q, want %q", got, annotation)
		}
		d := m.delivery(testCluster, testSet)
		if d.Spec.RevisionName != revisionOf(testSet, "1") || d.Status.Addons[0].State != hubv1.AddonReady {
			t.Errorf("revision %s, %s: %s", d.Spec.RevisionName, d.Status.Addons[0].State, d.Status.Addons[0].Message)
		}
		if got := status.Find(d, hubv1.ReadyCondition).Message; strings.Contains(got, "left out here") != (message != "") || !strings.Contains(got, message) {
			t.Errorf("Ready says %q, want %q in it", got, message)
		}
		before := m.writes
		if m.settle(); m.writes != before {
			t.Errorf("%d writes for nothing", m.writes-before)
		}
	}
	set(&hubv1.OwnMetadata{Labels: map[string]string{"team": "payments"},
		Annotations: map[string]string{"event.toolkit.fluxcd.io/team": "<< cluster.name >> is of payments"}}, nil)
	holds("payments", "one is of payments", "")
	set(&hubv1.OwnMetadata{Labels: map[string]string{"team": "payments"}}, &hubv1.OwnMetadata{Labels: map[string]string{"team": "shop"}})
	holds("shop", "", "")
	m.restart()
	holds("shop", "", "")
	set(&hubv1.OwnMetadata{Labels: map[string]string{"team": "<< vars.later >>", "sharding.fluxcd.io/key": "a"}}, nil) // as in a set that does not compile
	holds("", "", "metadata.labels[team]: ")
	if o := m.object(testCluster, "app"); o.GetLabels()["sharding.fluxcd.io/key"] != "" {
		t.Error("it is steered to a shard")
	}
	set(nil, nil)
	holds("", "", "")
}

// TestMetadataOfAFrozenObject: what another version of the hub has made stays as it is, with its labels.
func TestMetadataOfAFrozenObject(t *testing.T) {
	m := newFrozenFixture(t)
	edit(m, "flux-system", testSet, &hubv1.AddonSet{}, func(s *hubv1.AddonSet) {
		s.Spec.Metadata = &hubv1.OwnMetadata{Labels: map[string]string{"team": "payments"}}
	})
	m.settle()
	m.frozen("app", "git")
	if got := m.object(testCluster, "app").GetLabels()["team"]; got != "" {
		t.Errorf("label team is %q", got)
	}
}

// TestMetadataWakesTheClusters: what the set says of labels and annotations is no part of what else a delivery reads of it.
func TestMetadataWakesTheClusters(t *testing.T) {
	a, b := &hubv1.AddonSet{}, &hubv1.AddonSet{}
	a.Spec.Addons = []hubv1.Addon{{Name: "x"}}
	b.Spec.Addons = []hubv1.Addon{{Name: "x", Metadata: &hubv1.OwnMetadata{Labels: map[string]string{"team": "a"}}}}
	if !setChanges().Update(event.UpdateEvent{ObjectOld: a, ObjectNew: b}) {
		t.Error("nobody looks when the labels of an add-on change")
	}
	if b = a.DeepCopy(); setChanges().Update(event.UpdateEvent{ObjectOld: a, ObjectNew: b}) {
		t.Error("all look, and nothing has changed")
	}
}
