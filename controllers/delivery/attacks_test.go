// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render/flux"
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

// forged is a delivery to testCluster that a user writes in a namespace of his own.
func forged(namespace, set string, change func(*hubv1.AddonDelivery)) *hubv1.AddonDelivery {
	d := deliveredTo(testCluster, set, "1")
	d.Namespace, d.UID, d.Spec.RevisionName = namespace, "forged", "whatever-e2"
	if change != nil {
		change(d)
	}
	return d
}

// tenantsMine is a tenant's set that selects all clusters, and reaches none.
func tenantsMine() *hubv1.AddonSet {
	mine := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "mine", UID: "uid-mine"}}
	mine.Spec.SelectAll = true
	return mine
}

// TestForgedDelivery: a user who may create AddonDeliveries gets no kubeconfig by one that the set's controller would not have made.
// Nothing of the forged delivery comes to the cluster, and the add-ons of others come and leave beside it.
func TestForgedDelivery(t *testing.T) {
	elsewhere := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "elsewhere", UID: "uid-elsewhere"}}
	elsewhere.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}
	withUID := func(uid types.UID) func(*hubv1.AddonDelivery) {
		return func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID = uid }
	}
	for name, tc := range map[string]struct {
		delivery *hubv1.AddonDelivery
		reason   string
		stays    bool // until the set's controller withdraws it
	}{
		"WithoutASet":                     {forged("tenant", "base", nil), hubv1.OutOfReachReason, false},
		"OfASetOfHisOwn":                  {forged("tenant", "mine", nil), hubv1.OutOfReachReason, false},
		"WithTheUIDOfThat":                {forged("tenant", "mine", withUID("uid-mine")), hubv1.OutOfReachReason, false},
		"OfNoSetOfThePlatform":            {forged("flux-system", "gone", nil), hubv1.AddonSetNotFoundReason, false},
		"OfASetThatDoesNotSelect":         {forged("flux-system", "elsewhere", withUID("uid-elsewhere")), hubv1.NotSelectedReason, true},
		"OfASetThatDoesNotSelectNorClaim": {forged("flux-system", "elsewhere", withUID("")), hubv1.NotFromAddonSetReason, true},
		"UnderAnotherName": {forged("flux-system", "base", func(d *hubv1.AddonDelivery) { d.Name = "forged" }),
			hubv1.NotFromAddonSetReason, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), tenantsMine(), elsewhere.DeepCopy(),
				registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), tc.delivery.DeepCopy())...)
			m.settle()
			d := reread(m, tc.delivery)
			if got := m.secrets(); len(got) > 0 {
				t.Errorf("kubeconfigs lie in %v", got)
			}
			if c := status.Find(d, hubv1.ReadyCondition); c == nil || c.Status != metav1.ConditionFalse || c.Reason != tc.reason || c.Message == "" {
				t.Errorf("it says %+v", c)
			}
			if len(m.objects()) > 0 {
				t.Errorf("objects were made: %v", m.objects())
			}
			m.wantNoWrites()
			m.create(deliveredTo(testCluster, testSet, "1"))
			m.settle()
			if got := m.secrets(); !slices.Equal(got, []string{"flux-system"}) || m.object("app") == nil {
				t.Errorf("the real delivery does not arrive beside it: kubeconfigs in %v", got)
			}
			m.deleteObject(d)
			m.settle()
			if reread(m, d) != nil && !tc.stays {
				t.Error("deleted, and does not go")
			}
			m.withdraw(testSet)
			m.settle()
			if m.delivery(testSet) != nil || len(m.objects()) > 0 || len(m.secrets()) > 0 {
				t.Errorf("the real delivery does not go beside it: %v, kubeconfigs in %v", m.objects(), m.secrets())
			}
		})
	}
}

// TestForgedDeliveryThatCannotBeDismissed: a user edits a forged delivery between each look of the hub and its write, or the write fails.
// The hub serves the cluster whose label the delivery has all the same, and looks at the delivery again.
func TestForgedDeliveryThatCannotBeDismissed(t *testing.T) {
	for name, err := range map[string]error{
		"IsEdited":     apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "x", errors.New("it has changed")),
		"IsNotReached": errors.New("no"),
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
			d := forged("evil", "whatever", func(d *hubv1.AddonDelivery) { d.Finalizers = append(d.Finalizers, "evil/x") })
			m.create(d)
			m.deleteObject(d)
			m.failing = func(what string) (error, bool) {
				if what == "patch *v1alpha1.AddonDelivery" {
					return err, false
				}
				return nil, false
			}
			if after := m.again(); m.object("app") == nil || after == 0 || after > time.Second {
				t.Errorf("the platform's add-on is %v, its cluster is looked at again after %s", m.object("app"), after)
			}
		})
	}
}

// TestForgedRevision: a revision counts only if the set's controller made it.
func TestForgedRevision(t *testing.T) {
	for name, forge := range map[string]func(*appsv1.ControllerRevision){
		"WithoutOwner":           func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil },
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
			if len(m.objects()) > 0 || status.IsTrue(m.delivery(testSet), hubv1.ReadyCondition) {
				t.Errorf("it was delivered: %v", m.objects())
			}
		})
	}
}

// forgedRelease is a HelmRelease as the hub would make it for an add-on of a set on testCluster, in any namespace.
func forgedRelease(namespace, set, addon string, spec helmv2.HelmReleaseSpec) *helmv2.HelmRelease {
	spec.ChartRef = &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "chart"}
	return &helmv2.HelmRelease{Spec: spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: identity.FluxObject("hub", testCluster, addon), UID: "forged",
		Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", testCluster), hubv1.AddonLabel: addon,
			hubv1.AddonSetLabel: set},
		Annotations: map[string]string{hubv1.DeliveryAnnotation: identity.Delivery(set, testCluster),
			hubv1.RegistrationAnnotation: testCluster.String(), hubv1.ClusterUIDAnnotation: "c1"},
	}}
}

// TestForgedFluxObject: the hub ignores a Flux object with its labels in a namespace out of reach.
func TestForgedFluxObject(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	o := forgedRelease("tenant", testSet, "app", m.release("app").Spec)
	o.Annotations[hubv1.ClusterUIDAnnotation] = "another"
	m.create(o)
	m.withdraw(testSet)
	m.settle()
	if left := m.objects(); len(left) != 1 || left[0].GetNamespace() != "tenant" || m.delivery(testSet) != nil || len(m.secrets()) > 0 {
		t.Errorf("left: %v, kubeconfigs in %v", left, m.secrets())
	}
}

// outOfReach is a fixture with a delivery of a set that does not reach the cluster, with a HelmRelease of that set which has the platform's
// add-on, and with a copy that holds some kubeconfig.
func outOfReach(t *testing.T, token string, change func(*hubv1.AddonDelivery, *helmv2.HelmRelease)) *fixture {
	t.Helper()
	d := forged("tenant", "mine", func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID = "uid-mine" })
	hr := forgedRelease("tenant", "mine", "app", helmv2.HelmReleaseSpec{ReleaseName: "app", TargetNamespace: "app", StorageNamespace: "app"})
	hr.Finalizers = []string{fluxFinalizer}
	change(d, hr)
	m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), tenantsMine(), d, hr, forgedCopy(token))...)
	m.settle()
	return m
}

// forgedCopy is a kubeconfig copy in namespace tenant that says it is of testCluster.
func forgedCopy(token string) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{flux.KubeconfigKey: testKubeconfig(token)}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "tenant", Name: identity.KubeconfigCopy("hub", testCluster),
		Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", testCluster), hubv1.CopyLabel: "true"},
		Annotations: map[string]string{hubv1.FingerprintAnnotation: registered(testCluster, "c1").Status.Credential.Fingerprint},
	}}
}

func withdrawn(d *hubv1.AddonDelivery, _ *helmv2.HelmRelease) {
	d.Spec.Withdrawal, d.DeletionTimestamp = d.UID, &metav1.Time{Time: time.Now()}
}

// TestOutOfReachHoldsNothingUp: whoever writes deliveries and Flux objects in a namespace of his own can have it look as if a set of his
// had delivered to any cluster. The platform's add-ons do not wait for them, whatever becomes of them.
func TestOutOfReachHoldsNothingUp(t *testing.T) {
	hangs := func(_ *hubv1.AddonDelivery, hr *helmv2.HelmRelease) {
		hr.Finalizers, hr.DeletionTimestamp = []string{"tenant/holds"}, &metav1.Time{Time: time.Now()}
	}
	for name, change := range map[string]func(*hubv1.AddonDelivery, *helmv2.HelmRelease){
		"Stays":             func(*hubv1.AddonDelivery, *helmv2.HelmRelease) {},
		"Hangs":             hangs,
		"Withdrawn":         withdrawn,
		"WithdrawnAndHangs": func(d *hubv1.AddonDelivery, hr *helmv2.HelmRelease) { withdrawn(d, hr); hangs(d, hr) },
	} {
		t.Run(name, func(t *testing.T) {
			m := outOfReach(t, "another", change)
			if m.releaseIn("flux-system", "app") == nil {
				t.Fatalf("the add-on does not come: %+v", m.delivery(testSet).Status.Addons)
			}
			if o := m.releaseIn("tenant", "app"); o == nil || o.Spec.Suspend {
				t.Errorf("what is not the hub's was touched: %v", o)
			}
			m.withdraw(testSet)
			m.settle()
			if m.releaseIn("flux-system", "app") != nil || len(m.uninstalled) != 1 || len(m.orphans()) > 0 {
				t.Errorf("the add-on does not leave: uninstalled %v, orphaned %v, orphans %v", m.uninstalled, m.released, m.orphans())
			}
		})
	}
}

// TestOutOfReachWithTheKubeconfig: the namespace was a platform namespace, and Flux is at work from there until the delivery is withdrawn.
// Before that nothing else gets what Flux has there.
func TestOutOfReachWithTheKubeconfig(t *testing.T) {
	m := outOfReach(t, "t0", withdrawn)
	if m.releaseIn("tenant", "app") != nil || len(m.uninstalled)+len(m.released) != 1 || m.releaseIn("flux-system", "app") == nil {
		t.Errorf("uninstalled %v, orphaned %v; there are %v", m.uninstalled, m.released, m.objects())
	}
}

// TestOutOfReachIsReadOnce: whoever writes deliveries to clusters without number does not have the hub read a Secret at each look.
func TestOutOfReachIsReadOnce(t *testing.T) {
	copied := forgedCopy("forged")
	objects := []client.Object{registered(testCluster, "c1"), copied, inNamespace("tenant", addonsOf("his", "1", releaseAddon("app")))[0]}
	for _, name := range []string{"his", "forged"} {
		objects = append(objects, forged("tenant", "his", func(d *hubv1.AddonDelivery) {
			if d.UID = types.UID(name); name == "forged" {
				d.Name = name
			}
		}))
	}
	m := newFixture(t, objects...)
	reads := 0
	m.r.Live = interceptor.NewClient(m.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.Secret); ok {
				reads++
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	wantReads := func(want int, when string) {
		t.Helper()
		reads = 0
		for range 3 {
			m.must(m.reconcile())
		}
		if reads != want {
			t.Errorf("%s: read %d times, want %d", when, reads, want)
		}
	}
	wantReads(1, "three times")
	edit(m, "tenant", copied.Name, copied, func(s *corev1.Secret) { s.Data[flux.KubeconfigKey] = testKubeconfig("another") })
	wantReads(1, "after a change")
	m.editRegistration(func(reg *hubv1.ClusterRegistration) { reg.Status.Credential.Fingerprint = "another" })
	wantReads(0, "another one is looked for, and the copy does not say that it is that")
}

// TestObjectOfAnotherCluster: a user finds a namespace in which the objects of his registration have the names of another registration's.
// The hub writes neither over the other's objects: its own write would have no conflict with its earlier one.
func TestObjectOfAnotherCluster(t *testing.T) {
	other := types.NamespacedName{Namespace: "attacker", Name: testCluster.Name}
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("falco"))...)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"releaseName": "theirs",
		"chartRef": map[string]any{"kind": "OCIRepository", "name": "chart"}}}}
	u.SetGroupVersionKind(helmv2.GroupVersion.WithKind("HelmRelease"))
	u.SetNamespace("flux-system")
	u.SetName(identity.FluxObject(m.r.Config.HubID, testCluster, "falco"))
	u.SetLabels(map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey(m.r.Config.HubID, other)})
	m.must(m.api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(hubv1.FieldManager)))
	m.settle()
	hr := &helmv2.HelmRelease{}
	m.must(m.api.Get(t.Context(), client.ObjectKeyFromObject(u), hr))
	if hr.Labels[hubv1.ClusterKeyLabel] != identity.ClusterKey(m.r.Config.HubID, other) || hr.Spec.ReleaseName != "theirs" {
		t.Errorf("the other cluster's object was written over: %+v", hr)
	}
	d := m.delivery(testSet)
	if a := d.Status.Addons; len(a) != 1 || a[0].State != hubv1.AddonNotOwned || !strings.Contains(a[0].Message, "another cluster's") {
		t.Errorf("the delivery says %+v", a)
	}
}

// TestPlatformWaitsForNoTenantsSuccessor: the platform's set leaves a tenant's cluster. The tenant's own set has the same release, and
// waits for an add-on that never comes.
func TestPlatformWaitsForNoTenantsSuccessor(t *testing.T) {
	falco := map[string]any{"releaseName": "falco", "targetNamespace": "falco", "storageNamespace": "falco"}
	tenants := tenantSet("mine", dependsOn(releaseAddon("his", falco), "never"), kustomizationAddon("never"))
	m := newDeliveredFixture(t, releaseAddon("falco"))
	m.create(tenants...)
	m.busy = true
	m.settle()
	m.withdraw(testSet)
	for range 3 {
		m.settle()
	}
	if o := m.object("falco"); o != nil && o.GetDeletionTimestamp() == nil {
		t.Errorf("the platform's is not even asked to go: %+v", m.delivery(testSet).Status.Addons)
	}
}

// TestForgedSuccessorHidesNoOrphan: status.orphans lists what the platform's set orphans on a tenant's cluster, also if the tenant has a
// suspended object of the hub's name in his namespace with the same release.
func TestForgedSuccessorHidesNoOrphan(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	hr := forgedRelease(testCluster.Namespace, testSet, "evil", m.release("app").Spec)
	hr.Finalizers, hr.Spec.Suspend = []string{"evil/x"}, true
	m.create(hr)
	m.editSet(func(s *hubv1.AddonSet) { s.Spec.DeletionPolicy = hubv1.DeletionPolicyOrphan })
	m.withdraw(testSet)
	for range 5 {
		m.settle()
	}
	if d := m.delivery(testSet); d != nil || len(m.told) == 0 || len(m.orphans()) == 0 {
		t.Errorf("delivery %v, told %v, orphans %v", d, m.told, m.orphans())
	}
}
