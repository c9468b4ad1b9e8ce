// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// learn has the cluster tell how many nodes it has.
func (m *fixture) learn(nodes int32) {
	edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(reg *hubv1.ClusterRegistration) { reg.Status.Nodes = &nodes })
}

// sized is an add-on whose values rest on how many nodes there are.
func sized(name string) map[string]any {
	return releaseAddon(name, map[string]any{"values": map[string]any{"replicas": "<< cluster.nodes > 3 ? 3 : 1 >>"}})
}

// An add-on whose values rest on what nobody knows of the cluster waits, and says for what. What depends on it waits, what does not goes
// on, and so does another set. When the fact is known, all of it goes on by itself.
func TestFactUnknown(t *testing.T) {
	after := releaseAddon("after")
	after["dependsOn"] = []any{map[string]any{"name": "sized"}}
	objects := append(addonsOf(testSet, "1", releaseAddon("app"), sized("sized"), after), addonsOf("more", "1", releaseAddon("falco"))...)
	m := newServedFixture(t, append(objects, deliveredTo(testCluster, "more", "1"))...)
	m.settle()
	if m.object(testCluster, "sized") != nil || m.object(testCluster, "after") != nil {
		t.Error("it is made all the same")
	}
	a := m.says(testSet, "sized")
	if a.State != hubv1.AddonWaitingForCluster || a.Reason != hubv1.FactUnknownReason || !strings.Contains(a.Message, "cluster.nodes is not known: ") {
		t.Errorf("it says %+v", a)
	}
	if b := m.says(testSet, "after"); !strings.Contains(b.Message, `waits for add-on "sized"`) {
		t.Errorf("what depends on it says %+v", b)
	}
	if m.says(testSet, "app").State != hubv1.AddonReady || m.says("more", "falco").State != hubv1.AddonReady {
		t.Errorf("the others: %+v, %+v", m.says(testSet, "app"), m.says("more", "falco"))
	}
	d := m.delivery(testCluster, testSet)
	if c := status.Find(d, hubv1.ReadyCondition); status.IsTrue(d, hubv1.ReadyCondition) || status.IsTrue(d, hubv1.StalledCondition) || !strings.Contains(c.Message, "cluster.nodes") {
		t.Errorf("the delivery says %+v", d.Status.Conditions)
	}
	if d.Status.ObservedRevision == d.Spec.RevisionName {
		t.Error("the revision counts as written")
	}
	before := m.writes
	m.settle()
	if m.writes != before {
		t.Errorf("%d writes while it waits", m.writes-before)
	}
	m.learn(5)
	m.settle()
	for _, name := range []string{"sized", "after", "app"} {
		if m.says(testSet, name).State != hubv1.AddonReady {
			t.Errorf("when it is known, %s says %+v", name, m.says(testSet, name))
		}
	}
}

// What runs stays as it is while a fact is not known that was known before, or that an edit asks for.
func TestFactUnknownAgain(t *testing.T) {
	for name, forget := range map[string]func(*fixture){
		"Forgotten": func(m *fixture) {
			edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(reg *hubv1.ClusterRegistration) { reg.Status.Nodes = nil })
		},
		"Edited": func(m *fixture) {
			edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(reg *hubv1.ClusterRegistration) { reg.Status.Nodes = nil })
			version := releaseAddon("sized", map[string]any{"values": map[string]any{"replicas": 7, "uid": "<< cluster.uid + string(cluster.nodes) >>"}})
			m.quietly(func() { m.must(m.api.Create(m.t.Context(), addonsOf(testSet, "2", version)[1])) })
			edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(testSet, "2") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", sized("sized"))...)
			m.learn(5)
			m.settle()
			generation := m.object(testCluster, "sized").GetGeneration()
			forget(m)
			m.settle()
			o, a := m.object(testCluster, "sized"), m.says(testSet, "sized")
			if o == nil || o.GetGeneration() != generation || len(m.uninstalled)+len(m.released) > 0 {
				t.Errorf("it does not stay as it is: %v, uninstalled %v, orphaned %v", o, m.uninstalled, m.released)
			}
			if a.State != hubv1.AddonWaitingForCluster || a.Reason != hubv1.FactUnknownReason {
				t.Errorf("it says %+v", a)
			}
			m.learn(5)
			m.settle()
			if d := m.delivery(testCluster, testSet); m.says(testSet, "sized").State != hubv1.AddonReady || d.Status.ObservedRevision != d.Spec.RevisionName {
				t.Errorf("when it is known: %+v, revision %s", m.says(testSet, "sized"), d.Status.ObservedRevision)
			}
		})
	}
}
