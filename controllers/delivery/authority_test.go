// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
)

// secrets are the namespaces that hold a Secret which the hub made.
func (m *fixture) secrets() []string {
	list := &corev1.SecretList{}
	m.must(m.api.List(m.t.Context(), list))
	var out []string
	for _, s := range list.Items {
		if s.Name != testCluster.Name {
			out = append(out, s.Namespace)
		}
	}
	return out
}

// forged is a delivery that somebody writes in a namespace of his own.
func forged(namespace, set string, change func(*hubv1.AddonDelivery)) *hubv1.AddonDelivery {
	d := deliveredTo(testCluster, set, "1")
	d.Namespace, d.UID, d.Spec.RevisionName = namespace, "forged", "whatever-e2"
	if change != nil {
		change(d)
	}
	return d
}

// TestForgedDelivery: a user who may create AddonDeliveries gets no kubeconfig by one that the set's controller would not have made, nothing of it
// comes to the cluster, and nobody else's add-ons leave.
func TestForgedDelivery(t *testing.T) {
	mine := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "mine", UID: "uid-mine"}}
	mine.Spec.SelectAll = true
	elsewhere := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "elsewhere", UID: "uid-elsewhere"}}
	elsewhere.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}
	for name, tc := range map[string]struct {
		delivery *hubv1.AddonDelivery
		reason   string
	}{
		"WithoutASet":    {forged("tenant", "base", nil), hubv1.OutOfReachReason},
		"OfASetOfHisOwn": {forged("tenant", "mine", nil), hubv1.OutOfReachReason},
		"WithTheUIDOfThat": {forged("tenant", "mine", func(d *hubv1.AddonDelivery) {
			d.Spec.AddonSetRef.UID = "uid-mine"
		}), hubv1.OutOfReachReason},
		"UnderAnotherName":     {forged("flux-system", "base", func(d *hubv1.AddonDelivery) { d.Name = "forged" }), hubv1.NotFromAddonSetReason},
		"OfNoSetOfThePlatform": {forged("flux-system", "gone", nil), hubv1.AddonSetNotFoundReason},
		"OfASetThatDoesNotSelect": {forged("flux-system", "elsewhere", func(d *hubv1.AddonDelivery) {
			d.Spec.AddonSetRef.UID = "uid-elsewhere"
		}), hubv1.NotSelectedReason},
		"OfASetThatDoesNotSelectNorClaim": {forged("flux-system", "elsewhere", func(d *hubv1.AddonDelivery) {
			d.Spec.AddonSetRef.UID = ""
		}), hubv1.NotFromAddonSetReason},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), mine.DeepCopy(), elsewhere.DeepCopy(),
				registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), tc.delivery.DeepCopy())...)
			key := client.ObjectKeyFromObject(tc.delivery)
			m.settle()
			d := &hubv1.AddonDelivery{}
			m.must(m.api.Get(t.Context(), key, d))
			if got := m.secrets(); len(got) > 0 {
				t.Errorf("kubeconfigs lie in %v", got)
			}
			if c := status.Find(d, hubv1.ReadyCondition); c == nil || c.Status != metav1.ConditionFalse || c.Reason != tc.reason || c.Message == "" {
				t.Errorf("it says %+v", c)
			}
			if len(m.objects()) > 0 {
				t.Errorf("objects were made: %v", m.objects())
			}
			writes := m.writes
			if m.settle(); m.writes != writes {
				t.Errorf("%d writes for nothing", m.writes-writes)
			}
			m.quietly(func() { m.must(m.api.Create(t.Context(), deliveredTo(testCluster, testSet, "1"))) })
			m.settle()
			if got := m.secrets(); !slices.Equal(got, []string{"flux-system"}) || m.object(testCluster, "app") == nil {
				t.Errorf("the real delivery does not arrive beside it: kubeconfigs in %v", got)
			}
			m.quietly(func() { m.must(m.api.Delete(t.Context(), d)) })
			m.settle()
			if err := m.api.Get(t.Context(), key, d); err == nil && tc.reason != hubv1.NotSelectedReason && !strings.Contains(name, "NorClaim") { // those the set's controller withdraws
				t.Error("deleted, and does not go")
			}
			m.withdraw(testCluster, testSet)
			m.settle()
			if m.delivery(testCluster, testSet) != nil || len(m.objects()) > 0 || len(m.secrets()) > 0 {
				t.Errorf("the real delivery does not go beside it: %v, kubeconfigs in %v", m.objects(), m.secrets())
			}
		})
	}
}

// TestForgedObjects: Flux objects with the hub's labels in a namespace out of reach are nobody's business.
func TestForgedObjects(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
	m.settle()
	real := m.object(testCluster, "app")
	o := real.DeepCopyObject().(client.Object)
	o.SetNamespace("tenant")
	o.SetUID("forged")
	o.SetResourceVersion("")
	o.SetFinalizers(nil)
	a := o.GetAnnotations()
	a[hubv1.ClusterUIDAnnotation] = "another"
	o.SetAnnotations(a)
	m.quietly(func() { m.must(m.api.Create(t.Context(), o)) })
	m.withdraw(testCluster, testSet)
	m.settle()
	if left := m.objects(); len(left) != 1 || left[0].GetNamespace() != "tenant" || m.delivery(testCluster, testSet) != nil || len(m.secrets()) > 0 {
		t.Errorf("left: %v, kubeconfigs in %v", left, m.secrets())
	}
}

// outside is a controller with a delivery of a set that does not reach the cluster, with a HelmRelease of it that has another set's add-on, and with a
// copy that holds some kubeconfig.
func outside(t *testing.T, token string, change func(*hubv1.AddonDelivery, *helmv2.HelmRelease)) *fixture {
	t.Helper()
	mine := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "mine", UID: "uid-mine"}}
	mine.Spec.SelectAll = true
	d := forged("tenant", "mine", func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID = "uid-mine" })
	reg := registered(testCluster, "c1")
	labels := map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", testCluster), hubv1.AddonLabel: "app", hubv1.AddonSetLabel: "mine", hubv1.CopyLabel: "true"}
	hr := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "tenant", Name: identity.FluxObject("hub", testCluster, "app"), UID: "outside", Labels: labels, Annotations: map[string]string{hubv1.DeliveryAnnotation: d.Name}, Finalizers: []string{fluxFinalizer},
	}}
	hr.Spec.ChartRef = &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "mine"}
	hr.Spec.ReleaseName, hr.Spec.TargetNamespace, hr.Spec.StorageNamespace = "app", "app", "app"
	copied := &corev1.Secret{Data: map[string][]byte{render.KubeconfigKey: testKubeconfig(token)}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "tenant", Name: identity.KubeconfigCopy("hub", testCluster), Labels: labels, Annotations: map[string]string{hubv1.FingerprintAnnotation: reg.Status.Credential.Fingerprint},
	}}
	change(d, hr)
	m := newFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), mine, reg, kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, testSet, "1"), d, hr, copied)...)
	m.settle()
	return m
}

// of returns the Flux object that a namespace has for the cluster.
func (m *fixture) of(namespace string) client.Object {
	for _, o := range m.objects() {
		if o.GetNamespace() == namespace {
			return o
		}
	}
	return nil
}

func withdrawn(d *hubv1.AddonDelivery, _ *helmv2.HelmRelease) {
	d.Spec.Withdrawal, d.DeletionTimestamp = d.UID, &metav1.Time{Time: time.Now()}
}

// TestOutsideIsInNobodysWay: whoever writes deliveries and Flux objects in a namespace of his own can have it look as if a set of his had delivered
// to any cluster. Nothing waits for them, whatever becomes of them.
func TestOutsideIsInNobodysWay(t *testing.T) {
	hangs := func(hr *helmv2.HelmRelease) {
		hr.Finalizers, hr.DeletionTimestamp = []string{"tenant/holds"}, &metav1.Time{Time: time.Now()}
	}
	for name, change := range map[string]func(*hubv1.AddonDelivery, *helmv2.HelmRelease){
		"Stays":     func(*hubv1.AddonDelivery, *helmv2.HelmRelease) {},
		"Hangs":     func(_ *hubv1.AddonDelivery, hr *helmv2.HelmRelease) { hangs(hr) },
		"Withdrawn": withdrawn,
		"WithdrawnAndHangs": func(d *hubv1.AddonDelivery, hr *helmv2.HelmRelease) {
			withdrawn(d, hr)
			hangs(hr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := outside(t, "another", change)
			if m.of("flux-system") == nil {
				t.Fatalf("the add-on does not come: %+v", m.delivery(testCluster, testSet).Status.Addons)
			}
			if o := m.of("tenant"); o == nil || o.(*helmv2.HelmRelease).Spec.Suspend {
				t.Errorf("what is not the hub's was touched: %v", o)
			}
			m.withdraw(testCluster, testSet)
			m.settle()
			if m.of("flux-system") != nil || len(m.uninstalled) != 1 || len(m.orphans(testCluster)) > 0 {
				t.Errorf("the add-on does not leave: uninstalled %v, orphaned %v, orphans %v", m.uninstalled, m.released, m.orphans(testCluster))
			}
		})
	}
}

// TestOutsideWithTheKubeconfig: the namespace was a platform namespace, and Flux is at work from there. It stays so until it is withdrawn, and
// nobody else comes to what it has before.
func TestOutsideWithTheKubeconfig(t *testing.T) {
	m := outside(t, "t0", withdrawn)
	if m.of("tenant") != nil || len(m.uninstalled)+len(m.released) != 1 || m.of("flux-system") == nil {
		t.Errorf("uninstalled %v, orphaned %v; what was to come: %v", m.uninstalled, m.released, m.of("flux-system"))
	}
}

// TestForgedRevision: a revision counts only if the set's controller made it.
func TestForgedRevision(t *testing.T) {
	for name, forge := range map[string]func(*appsv1.ControllerRevision){
		"OfNobody":               func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil },
		"OfAnotherSetOfThatName": func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "another" },
		"WithContentThatIsNotItsOwn": func(r *appsv1.ControllerRevision) {
			r.Data.Raw = []byte(strings.ReplaceAll(string(r.Data.Raw), "chart", "evil"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := addonsOf(testSet, "1", releaseAddon("app"))
			forge(objects[1].(*appsv1.ControllerRevision))
			m := newServedFixture(t, objects...)
			m.settle()
			if len(m.objects()) > 0 || status.IsTrue(m.delivery(testCluster, testSet), hubv1.ReadyCondition) {
				t.Errorf("it was delivered: %v", m.objects())
			}
		})
	}
}

// TestDeliveryDeletedByHand: nothing leaves the cluster, and when the delivery is made again Flux does not notice; also if the hub has
// started again in between.
func TestDeliveryDeletedByHand(t *testing.T) {
	for name, restart := range map[string]bool{"AtOnce": false, "AfterARestart": true} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(t, append(addonsOf("a-first", "1", releaseAddon("app"), kustomizationAddon("git")), registered(testCluster, "c1"),
				kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, "a-first", "1"))...)
			m.settle()
			before := map[string]types.UID{}
			for _, o := range m.objects() {
				before[o.GetName()] = o.GetUID()
			}
			m.delete(testCluster, "a-first")
			m.settle()
			if d := m.delivery(testCluster, "a-first"); d != nil {
				t.Fatalf("it does not go: %+v", d)
			}
			if restart {
				m.restart()
			}
			again := deliveredTo(testCluster, "a-first", "1")
			again.UID = "again"
			m.quietly(func() { m.must(m.api.Create(t.Context(), again)) })
			m.settle()
			after := map[string]types.UID{}
			for _, o := range m.objects() {
				after[o.GetName()] = o.GetUID()
				if o.GetGeneration() != 1 || o.GetAnnotations()[hubv1.DeliveryAnnotation] != identity.Delivery("a-first", testCluster) {
					t.Errorf("%s has changed: generation %d, %v", o.GetName(), o.GetGeneration(), o.GetAnnotations())
				}
			}
			if len(after) != 2 || len(before) != 2 || len(m.uninstalled)+len(m.released)+len(m.orphans(testCluster)) > 0 || len(m.secrets()) != 1 {
				t.Errorf("before %v, after %v; uninstalled %v, released %v, orphans %v", before, after, m.uninstalled, m.released, m.orphans(testCluster))
			}
			for name, uid := range before {
				if after[name] != uid {
					t.Errorf("%s is another one now", name)
				}
			}
			for _, a := range m.delivery(testCluster, "a-first").Status.Addons {
				if a.State != hubv1.AddonReady {
					t.Errorf("%s is %s: %s", a.Name, a.State, a.Message)
				}
			}
			writes := m.writes
			if m.settle(); m.writes != writes {
				t.Errorf("%d writes for nothing", m.writes-writes)
			}
		})
	}
}

// TestUnwantedDeliveryDeletedByHand: without a delivery nobody would take away what is there, so it stays until its set withdraws it.
func TestUnwantedDeliveryDeletedByHand(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
	m.settle()
	edit(m, "flux-system", testSet, &hubv1.AddonSet{}, func(s *hubv1.AddonSet) {
		s.Spec.SelectAll, s.Spec.ClusterSelector = false, &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}
	})
	m.delete(testCluster, testSet)
	m.settle()
	d := m.delivery(testCluster, testSet)
	if d == nil || m.object(testCluster, "app") == nil || status.Reason(d, hubv1.ReadyCondition) != hubv1.TerminatingReason {
		t.Fatalf("the removal guard was not asked: %+v", d)
	}
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.Withdrawal = d.UID })
	m.settle()
	if m.delivery(testCluster, testSet) != nil || len(m.objects()) > 0 || len(m.uninstalled) != 1 {
		t.Errorf("left: %v, uninstalled: %v", m.objects(), m.uninstalled)
	}
}

// TestAbandonedDeliveryDeletedByHand: the set is gone with its finalizer taken off. What is left is told of.
func TestAbandonedDeliveryDeletedByHand(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
	m.settle()
	m.quietly(func() {
		m.must(m.api.Delete(t.Context(), &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: testSet}}))
	})
	m.settle()
	if d := m.delivery(testCluster, testSet); d == nil || m.object(testCluster, "app") == nil || status.Reason(d, hubv1.ReadyCondition) != hubv1.AddonSetNotFoundReason {
		t.Fatalf("it does not stay as it is: %+v", d)
	}
	m.delete(testCluster, testSet)
	m.settle()
	if got := m.orphans(testCluster); m.delivery(testCluster, testSet) != nil || m.object(testCluster, "app") == nil || len(got) != 1 || len(m.uninstalled) > 0 {
		t.Errorf("orphans: %+v, uninstalled: %v", got, m.uninstalled)
	}
}

// The set withdraws a delivery while a reconcile is at work that has read it before. What the API server answers to its status says so,
// and is not what was decided on: the delivery stays until its cluster is clean.
func TestWithdrawnDuringAReconcile(t *testing.T) {
	for name, first := range map[string]func(*fixture){
		"Served":        func(*fixture) {},
		"DeletedByHand": func(m *fixture) { m.delete(testCluster, "base") },
	} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(t, append(addonsOf("base", "1", releaseAddon("app")), registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, "base", "1"))...)
			m.settle()
			m.pause(true) // nothing is uninstalled, and the status has something to say
			first(m)
			withdrawn := false
			m.failing = func(what string) (error, bool) {
				if what == "patch status of *v1alpha1.AddonDelivery" && !withdrawn {
					withdrawn = true
					m.withdraw(testCluster, "base")
				}
				return nil, false
			}
			m.settle()
			if !withdrawn {
				t.Fatal("no status was written")
			}
			if m.delivery(testCluster, "base") == nil || m.object(testCluster, "app") == nil {
				t.Fatalf("the delivery is gone: %v; its object: %v", m.delivery(testCluster, "base") == nil, m.object(testCluster, "app"))
			}
			m.pause(false)
			m.settle()
			if len(m.uninstalled) != 1 || m.delivery(testCluster, "base") != nil {
				t.Errorf("uninstalled %v, and the delivery is %v", m.uninstalled, m.delivery(testCluster, "base"))
			}
		})
	}
}

// TestDeliveryOfAStalledSetDeletedByHand: as long as the set is Stalled, nobody makes the delivery again, so it stays. When somebody has mended
// the set, that is an event, and it goes: until it is gone, its cluster gets no new revision.
func TestDeliveryOfAStalledSetDeletedByHand(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
	m.settle()
	stalled := func(is metav1.ConditionStatus) *hubv1.AddonSet {
		set := &hubv1.AddonSet{}
		edit(m, "flux-system", testSet, set, func(s *hubv1.AddonSet) {
			apimeta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: hubv1.StalledCondition, Status: is, Reason: hubv1.InvalidSpecReason})
		})
		m.must(m.api.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		return set
	}
	before := stalled(metav1.ConditionTrue)
	m.delete(testCluster, testSet)
	m.settle()
	if d := m.delivery(testCluster, testSet); d == nil || m.object(testCluster, "app") == nil {
		t.Fatal("it has gone, and nobody makes it again")
	}
	after := stalled(metav1.ConditionFalse)
	if !setChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("nobody is woken when the set is mended")
	}
	if setChanges().Update(event.UpdateEvent{ObjectOld: after, ObjectNew: before}) {
		t.Error("all clusters are woken when a set is Stalled, which changes nothing for them")
	}
	if m.settle(); m.delivery(testCluster, testSet) != nil {
		t.Error("it does not go")
	}
}
