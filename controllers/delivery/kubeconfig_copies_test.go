// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/delivery/planned"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// kubeconfig returns the copy of the cluster's kubeconfig in the platform's namespace, nil if it does not exist.
func (m *fixture) kubeconfig() *corev1.Secret { return m.kubeconfigIn("flux-system") }

func (m *fixture) kubeconfigIn(namespace string) *corev1.Secret {
	return find(m, namespace, identity.KubeconfigCopy("hub", testCluster), &corev1.Secret{})
}

// rotate gives the cluster a kubeconfig with another token, as its provider and the registration controller do.
func (m *fixture) rotate(token string) {
	config, err := kubeconfig.Parse(testKubeconfig(token), kubeconfig.Rules{AllowMissingCA: true})
	m.must(err)
	edit(m, testCluster.Namespace, testCluster.Name, &corev1.Secret{}, func(s *corev1.Secret) { s.Data["value"] = testKubeconfig(token) })
	m.editRegistration(func(reg *hubv1.ClusterRegistration) {
		reg.Status.Credential.Fingerprint, reg.Status.Credential.TargetFingerprint = config.Fingerprint(), config.TargetFingerprint()
	})
}

// TestKubeconfigCopyThatIsBeingDeleted: a kubeconfig copy that a user deletes stays under its finalizer while Flux needs it, and gets the
// new credentials after a rotation. When nothing needs the copy any more, it goes.
func TestKubeconfigCopyThatIsBeingDeleted(t *testing.T) {
	const theirs = "example.org/theirs"
	for name, tc := range map[string]struct{ finalizers, left []string }{
		"Deleted":         {[]string{hubv1.Finalizer}, nil},
		"HeldByAUserToo":  {[]string{hubv1.Finalizer, theirs}, []string{theirs}},
		"HeldByAUserOnly": {[]string{theirs}, []string{theirs}}, // the API server would refuse to have the hub's finalizer back
	} {
		t.Run(name, func(t *testing.T) {
			m := newDeliveredFixture(t, releaseAddon("app"))
			edit(m, "flux-system", m.kubeconfig().Name, &corev1.Secret{}, func(s *corev1.Secret) { s.Finalizers = tc.finalizers })
			m.deleteObject(m.kubeconfig())
			m.settle()
			m.rotate("t1")
			m.settle()
			got := m.kubeconfig()
			if got == nil || !bytes.Contains(got.Data[flux.KubeconfigKey], []byte("t1")) || len(got.Finalizers) != len(tc.finalizers) {
				t.Fatalf("after the rotation the copy is %v", got)
			}
			if len(m.uninstalled)+len(m.released) > 0 {
				t.Errorf("uninstalled %v, orphaned %v", m.uninstalled, m.released)
			}
			m.wantNoWrites()
			if name == "HeldByAUserOnly" {
				m.strip(got)
				if m.settle(); m.kubeconfig() == nil || m.kubeconfig().DeletionTimestamp != nil {
					t.Errorf("it is not made again: %v", m.kubeconfig())
				}
				return
			}
			m.withdraw(testSet)
			m.settle()
			if got := m.kubeconfig(); m.delivery(testSet) != nil || len(m.uninstalled) != 1 || got != nil && len(got.Finalizers) != len(tc.left) {
				t.Errorf("uninstalled %v; the copy is %v", m.uninstalled, got)
			}
		})
	}
}

// TestKubeconfigCopyOfAReplacedCluster: what was made for the cluster before goes, also of a set that has no delivery any more. The last
// delivery waits for that, and takes the copy along.
func TestKubeconfigCopyOfAReplacedCluster(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), delivered("extra", releaseAddon("logs"))...)...)
	m.settle()
	appHas := func(finalizers ...string) {
		m.quietly(func() {
			o := m.object("app")
			o.SetFinalizers(finalizers)
			m.must(m.api.Update(t.Context(), o))
		})
	}
	m.vanish()
	m.editRegistration(func(r *hubv1.ClusterRegistration) { r.Status.ClusterUID = "c2" })
	m.withdraw("extra")
	m.must(m.reconcile())
	appHas("slow") // Flux has much to do
	m.settle()
	if m.object("logs") != nil || m.delivery("extra") == nil || m.kubeconfig() == nil {
		t.Fatalf("before the last object is gone: %v", m.objects())
	}
	appHas()
	m.settle()
	if m.delivery("extra") != nil || m.kubeconfig() != nil {
		t.Error("the copy has been left")
	}
}

// TestKubeconfigCopyThatIsNotWritten: the cluster was replaced, and the API server does not take the copy with the new kubeconfig. Nothing is
// made for the new cluster until it does: Flux would log in to the former one.
func TestKubeconfigCopyThatIsNotWritten(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	m.editRegistration(func(r *hubv1.ClusterRegistration) { r.Status.ClusterUID = "c2" })
	m.rotate("t1")
	m.failing = func(what string) (error, bool) {
		if what == "apply Secret" {
			return apierrors.NewInternalError(errors.New("out of order")), false
		}
		return nil, false
	}
	m.settle()
	if o := m.object("app"); o != nil || len(m.released) != 1 {
		t.Errorf("orphaned %v; while the copy is of the former cluster: %v", m.released, o)
	}
	m.failing = nil
	m.settle()
	m.wantReady("app")
}

// TestKubeconfigCopyGoesOnce: the kubeconfig copy goes with the last object that Flux works on. The hub does not make it again for an
// object that has gone and that the cache still has.
func TestKubeconfigCopyGoesOnce(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	m.withdraw(testSet)
	seen, err := m.r.reader().Gather(t.Context(), testCluster)
	m.must(err)
	c := newCluster(planned.Begin(seen))
	m.deleteObject(m.object("app"))
	m.flux()
	m.strip(m.kubeconfig())
	m.must(m.r.keeper().Kubeconfigs(t.Context(), c.Cluster))
	if m.kubeconfig() != nil {
		t.Error("the copy is made again")
	}
}

// TestKubeconfigCopyChangesWake: the controller looks at a kubeconfig copy that a user edits or deletes, and at no other Secret.
func TestKubeconfigCopyChangesWake(t *testing.T) {
	deleted := func(o *metav1.PartialObjectMetadata) { o.DeletionTimestamp = &metav1.Time{Time: moment} }
	for name, tc := range map[string]struct {
		change func(*metav1.PartialObjectMetadata)
		want   bool
	}{
		"Same":    {func(*metav1.PartialObjectMetadata) {}, false},
		"Edited":  {func(o *metav1.PartialObjectMetadata) { o.Annotations = nil }, true},
		"Deleted": {deleted, true},
		"NoCopy":  {func(o *metav1.PartialObjectMetadata) { o.Labels = nil; deleted(o) }, false},
	} {
		before := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{hubv1.CopyLabel: "true"}, Annotations: map[string]string{hubv1.FingerprintAnnotation: "a"},
		}}
		after := before.DeepCopy()
		tc.change(after)
		if got := copyChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
			t.Errorf("%s: it is looked at: %t", name, got)
		}
	}
}

// TestKubeconfigCopyWithoutARegistration: a kubeconfig copy goes as well if its cluster has no registration and no delivery any more,
// unless a Flux object uses it.
func TestKubeconfigCopyWithoutARegistration(t *testing.T) {
	for name, objectStays := range map[string]bool{"NothingIsLeft": false, "AFluxObjectIsLeft": true} {
		t.Run(name, func(t *testing.T) {
			m := newDeliveredFixture(t, releaseAddon("app"))
			gone := []client.Object{m.delivery(testSet), find(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{})}
			if !objectStays {
				gone = append(gone, m.objects()...)
			}
			for _, o := range gone {
				m.strip(o)
			}
			m.must(m.reconcile())
			if got := m.kubeconfig(); (got != nil) != objectStays {
				t.Errorf("the copy is there: %t", got != nil)
			}
		})
	}
}

// TestKubeconfigCopyWithoutADelivery: a kubeconfig copy goes from a namespace in which no delivery is left, also if there is one in another
// namespace. A Team's copy stays beside others: the tokens controller, which has made it, decides.
func TestKubeconfigCopyWithoutADelivery(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	for namespace, kind := range map[string]string{testCluster.Namespace: "true", teamNamespace: identity.TeamCopy} {
		left := m.kubeconfig()
		left.Namespace, left.UID, left.ResourceVersion, left.Labels[hubv1.CopyLabel] = namespace, "", "", kind
		m.create(left)
	}
	m.settle()
	if got := m.secrets(); !slices.Equal(got, []string{"flux-system", teamNamespace}) {
		t.Errorf("there are copies in %v", got)
	}
}

// TestKubeconfigCopyIsKeptForOthers: the last delivery of a namespace takes the kubeconfig copy with it, also if all of them go at once.
func TestKubeconfigCopyIsKeptForOthers(t *testing.T) {
	at := func(namespace string, leaving bool, addons ...string) *delivery {
		d := &delivery{Delivery: &observed.Delivery{AddonDelivery: &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}}}
		if leaving {
			d.DeletionTimestamp, d.Leaving = &metav1.Time{}, true
		}
		for _, a := range addons {
			d.Status.Addons = append(d.Status.Addons, hubv1.AddonStatus{Name: a})
		}
		return d
	}
	orphaned := func(d *delivery) *delivery {
		for i := range d.Status.Addons {
			d.Status.Addons[i].State = hubv1.AddonOrphaned
		}
		return d
	}
	for name, tc := range map[string]struct {
		others []*delivery
		want   bool
	}{
		"Alone":                         {nil, true},
		"OtherStays":                    {[]*delivery{at("a", false, "x")}, false},
		"OtherStaysWithNothingYet":      {[]*delivery{at("a", false)}, false},
		"OtherLeavesAndHasSomething":    {[]*delivery{at("a", true, "x")}, false},
		"OtherIsDoneToo":                {[]*delivery{at("a", true)}, true},
		"OtherIsDoneAndAThirdIsNot":     {[]*delivery{at("a", true), at("a", true, "x")}, false},
		"OtherHasOrphansOnly":           {[]*delivery{orphaned(at("a", true, "x"))}, true},
		"OtherHasOrphansAndMore":        {[]*delivery{orphaned(at("a", true, "x")), at("a", true, "y")}, false},
		"OtherStaysWithOrphansOnly":     {[]*delivery{orphaned(at("a", false, "x"))}, false},
		"OtherIsInAnotherNamespaceOnly": {[]*delivery{at("b", false, "x")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := at("a", true)
			c := passOf(&observed.Cluster{}, append([]*delivery{d}, tc.others...)...)
			if got := c.lastOut(d); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestKubeconfigCopyWhoseNameIsTaken: a tenant has a Secret with the name of the kubeconfig copy in his namespace. What the platform waits
// for on the cluster happens at its time. The tenant's delivery says what it waits for, and goes on when that Secret is gone.
func TestKubeconfigCopyWhoseNameIsTaken(t *testing.T) {
	taken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: identity.KubeconfigCopy("hub", testCluster)}}
	m := newServedFixture(t, append(append(addonsOf(testSet, "1", releaseAddon("app")), tenantSet("mine", releaseAddon("his"))...), taken)...)
	wantTenants := func(state hubv1.AddonState, says string) {
		t.Helper()
		a := m.deliveryIn(testCluster.Namespace, "mine").Status.Addons
		if len(a) != 1 || a[0].State != state || !strings.Contains(a[0].Message, says) {
			t.Errorf("his delivery says %+v", a)
		}
	}
	m.settle()
	wantTenants(hubv1.AddonWaitingForCluster, taken.Name)
	m.r.expectations.Forget(testCluster)
	if after := m.again(); after != observed.RetryFailed {
		t.Errorf("it looks for his Secret after %s", after)
	}
	m.withdraw(testSet)
	m.clock.SetTime(m.delivery(testSet).DeletionTimestamp.Add(time.Second))
	m.r.expectations.Forget(testCluster)
	if after := m.again(); after != m.r.Config.RemovalDelay-time.Second {
		t.Errorf("the platform's removal is looked at after %s", after)
	}
	m.deleteObject(taken)
	m.settle()
	wantTenants(hubv1.AddonReady, "")
}
