// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/shard"
	"github.com/chandler-hub/chandler/internal/status"
)

// newFrozenFixture is a fixture with a set on a cluster, delivered by a hub of the epoch before.
func newFrozenFixture(t *testing.T) *fixture {
	t.Helper()
	m := newDeliveredFixture(t, releaseAddon("app"), kustomizationAddon("git"))
	m.older(find(m, "flux-system", revisionOf(testSet, "1"), &appsv1.ControllerRevision{}))
	m.restart()
	m.settle()
	return m
}

// older has a hub of the epoch before have made a revision, and have delivered that.
func (m *fixture) older(revision client.Object) {
	m.t.Helper()
	older := identity.OfEpoch(revision.GetName(), render.Epoch-1)
	revision.SetResourceVersion("")
	revision.SetName(older)
	m.create(revision)
	m.editDelivery(testSet, func(d *hubv1.AddonDelivery) {
		d.Spec.RevisionName, d.Status.ReadyRevision, d.Status.ObservedRevision = older, older, older
	})
}

// frozen wants the delivery Ready, because frozen, with these add-ons.
func (m *fixture) frozen(addons ...string) {
	m.t.Helper()
	d := m.delivery(testSet)
	if c := status.Find(d, hubv1.ReadyCondition); c.Reason != hubv1.FrozenReason || c.Status != "True" {
		m.t.Errorf("it is %s, %s: %s", c.Status, c.Reason, c.Message)
	}
	if want := fmt.Sprintf("%[1]d/%[1]d", len(addons)); d.Status.AddonCounts.Summary != want || len(m.objects()) != len(addons) {
		m.t.Errorf("it has %s of %s, and %d objects", d.Status.AddonCounts.Summary, want, len(m.objects()))
	}
}

// TestFrozen: what another version of the hub has made stays as it is, also its labels.
func TestFrozen(t *testing.T) {
	m := newFrozenFixture(t)
	edit(m, "flux-system", m.object("app").GetName(), &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) {
		o.Annotations[hubv1.HashAnnotation] = "older" // another renderer's
	})
	m.editSet(func(s *hubv1.AddonSet) {
		s.Spec.Metadata = &hubv1.OwnMetadata{Labels: map[string]string{"team": "payments"}}
	})
	before := m.writes
	m.settle()
	m.frozen("app", "git")
	if n := m.writes - before; n > 1 {
		t.Errorf("%d writes, want none but the status", n)
	}
	if m.object("app").GetAnnotations()[hubv1.HashAnnotation] != "older" || m.object("git").GetLabels()["team"] != "" {
		t.Errorf("what another version made was written: %v", m.objects())
	}
}

// TestFrozenWithoutItsObjects: this hub makes what is missing of what another version has made. A delivery without its add-ons is not Ready
// before.
func TestFrozenWithoutItsObjects(t *testing.T) {
	for name, missing := range map[string][]string{"One": {"git"}, "All": {"app", "git"}} {
		t.Run(name, func(t *testing.T) {
			m := newFrozenFixture(t)
			edit(m, "flux-system", m.object("app").GetName(), &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) {
				o.Annotations[hubv1.HashAnnotation] = "older"
			})
			for _, addon := range missing {
				if name == "All" {
					m.strip(m.object(addon))
				} else { // Flux has to finalize it
					m.deleteObject(m.object(addon))
				}
			}
			if name == "All" {
				m.restart()
			}
			if m.must(m.reconcile()); status.IsTrue(m.delivery(testSet), hubv1.ReadyCondition) {
				t.Errorf("it is Ready with %s", m.delivery(testSet).Status.AddonCounts.Summary)
			}
			m.settle()
			m.frozen("app", "git")
			if kept := m.object("app").GetAnnotations()[hubv1.HashAnnotation] == "older"; kept != (name == "One") {
				t.Errorf("what another renderer made is kept: %t", kept)
			}
		})
	}
}

// TestFrozenWithoutRevision: the hub can make nothing, and an empty cluster is not Ready.
func TestFrozenWithoutRevision(t *testing.T) {
	m := newFrozenFixture(t)
	m.deleteObject(find(m, "flux-system", m.delivery(testSet).Spec.RevisionName, &appsv1.ControllerRevision{}))
	m.settle()
	m.frozen("app", "git")
	for _, o := range m.objects() {
		m.deleteObject(o)
	}
	m.settle()
	if d := m.delivery(testSet); status.IsTrue(d, hubv1.ReadyCondition) {
		t.Errorf("it is Ready with %s", d.Status.AddonCounts.Summary)
	}
}

// TestFrozenBeforeItWasReady: a cluster over which the hub was upgraded before the cluster was Ready comes to be Ready on that revision:
// its set waits for that. A cluster that has another revision's content does not.
func TestFrozenBeforeItWasReady(t *testing.T) {
	for _, other := range []bool{false, true} {
		m := newFrozenFixture(t)
		want := m.delivery(testSet).Spec.RevisionName
		m.editDelivery(testSet, func(d *hubv1.AddonDelivery) {
			d.Status.ReadyRevision = ""
			if other {
				d.Status.ObservedRevision, want = "base-0-e1", ""
			}
		})
		m.settle()
		if got := m.delivery(testSet).Status.ReadyRevision; got != want {
			t.Errorf("other content %t: it is Ready on %q, want %q", other, got, want)
		}
	}
}

// TestFrozenDropped: what the revision does not have is on its way out, as if the hub had not been upgraded meanwhile. It goes when that is
// granted.
func TestFrozenDropped(t *testing.T) {
	m := newFrozenFixture(t)
	m.older(addonsOf(testSet, "2", releaseAddon("app"))[1])
	m.settle()
	for _, a := range m.delivery(testSet).Status.Addons {
		if leaves := a.State == hubv1.AddonHeld && a.Removal != ""; leaves != (a.Name == "git") {
			t.Errorf("%s is %s: %s", a.Name, a.State, a.Message)
		}
	}
	granted := guard.Dropped(string(m.object("git").GetUID()))
	m.editDelivery(testSet, func(d *hubv1.AddonDelivery) { d.Spec.Removals = []string{granted} })
	m.settle()
	m.frozen("app")
}

// TestFrozenAnotherForm: what Flux still uninstalls, since the revision has the add-on in another form, is leaving, as if the hub had not
// been upgraded meanwhile. Its grant is in use, and the new form waits for that.
func TestFrozenAnotherForm(t *testing.T) {
	m := newFrozenFixture(t)
	granted := guard.Dropped(string(m.object("app").GetUID()))
	m.older(addonsOf(testSet, "2", kustomizationAddon("app"), kustomizationAddon("git"))[1])
	m.editDelivery(testSet, func(d *hubv1.AddonDelivery) { d.Spec.Removals, d.Status.ReadyRevision = []string{granted}, "" })
	m.deleteObject(m.object("app"))
	m.busy = true
	m.settle()
	if a := m.firstAddon(); a.State != hubv1.AddonRemoving || a.Removal != granted || len(m.objects()) != 2 {
		t.Errorf("%s is %s of grant %q: %s; there are %d objects", a.Name, a.State, a.Removal, a.Message, len(m.objects()))
	}
	m.busy = false
	m.settle()
	m.frozen("app", "git")
	if kind := m.firstAddon().Kind; kind != "Kustomization" {
		t.Errorf("it is a %s", kind)
	}
}

// TestFrozenRebuilt: another cluster is behind the registration. What Flux remembers of the old one goes, and the new one gets all of it.
func TestFrozenRebuilt(t *testing.T) {
	m := newFrozenFixture(t)
	m.editRegistration(func(r *hubv1.ClusterRegistration) { r.Status.ClusterUID = types.UID("c2") })
	m.settle()
	m.frozen("app", "git")
	if o := m.object("app"); o == nil || o.GetAnnotations()[hubv1.ClusterUIDAnnotation] != "c2" || len(m.uninstalled) > 0 {
		t.Errorf("the object is %v; uninstalled: %v", o, m.uninstalled)
	}
}

// TestFrozenLeaves: a frozen delivery is uninstalled as any other.
func TestFrozenLeaves(t *testing.T) {
	m := newFrozenFixture(t)
	m.withdraw(testSet)
	m.settle()
	if m.delivery(testSet) != nil || len(m.objects()) > 0 || len(m.uninstalled) != 2 {
		t.Errorf("left: %v; uninstalled: %v", m.objects(), m.uninstalled)
	}
}

// TestPausedIsNotFrozen: what a pause holds back has not been written, and does not count as written when the hub is upgraded meanwhile.
func TestPausedIsNotFrozen(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	m.pause(true)
	m.settle()
	m.next("2", releaseAddon("app", map[string]any{"releaseName": "again"}))
	m.settle()
	if got := m.delivery(testSet).Status.ObservedRevision; got != revisionOf(testSet, "1") {
		t.Errorf("it has written %s, and the cluster is paused", got)
	}
}

// TestFluxShard: when the cluster's shard of Flux is another one, all of its objects get it, also those that stay as they are, wait or go:
// the controllers of the former shard may be gone. Nothing else of them changes, and that costs one write.
func TestFluxShard(t *testing.T) {
	frozen := func(m *fixture) {
		edit(m, "flux-system", m.object("app").GetName(), &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) {
			o.Annotations[hubv1.HashAnnotation] = "older"
		})
	}
	for name, before := range map[string]func(*fixture){
		"Wanted":  func(*fixture) {},
		"Frozen":  frozen,
		"Paused":  func(m *fixture) { m.pause(true) },
		"Held":    func(m *fixture) { m.deselect() },
		"Deleted": func(m *fixture) { m.deleteObject(m.object("app")) },
		"Leaves":  func(m *fixture) { m.withdraw(testSet); m.must(m.reconcile()) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newFrozenFixture(t)
			if name != "Frozen" {
				m = newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
				m.settle()
			}
			before(m)
			spec := m.release("app").Spec.DeepCopy()
			for _, shards := range [][]string{{"a"}, {"b"}, {}} {
				m.r.Config.FluxShards = shards
				for range 3 {
					m.must(m.reconcile())
				}
				o := m.release("app")
				if got, want := o.Labels[shard.Label], shard.Of("one", shards); got != want {
					t.Errorf("it is on shard %q, want %q", got, want)
				}
				if name == "Frozen" && o.Annotations[hubv1.HashAnnotation] != "older" || o.Spec.ReleaseName != spec.ReleaseName {
					t.Errorf("it was written: %+v", o)
				}
				writes := m.writes
				m.must(m.reconcile())
				if m.writes != writes {
					t.Errorf("%d writes for nothing", m.writes-writes)
				}
			}
		})
	}
}
