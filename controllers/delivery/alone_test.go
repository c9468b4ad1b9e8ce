// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/identity"
)

// setBeside returns a tenant's set with its revision and its delivery, in the namespace of the registration.
func setBeside(set string, addons ...map[string]any) []client.Object {
	out := append(addonsOf(set, "1", addons...), deliveredTo(testCluster, set, "1"))
	for _, o := range out {
		o.SetNamespace(testCluster.Namespace)
	}
	return out
}

// TestSomebodyElsesCopyHoldsUpNobodyElse: a tenant has a Secret with the name of the kubeconfig copy in his namespace. What the platform waits for on the cluster
// happens at its time. His own delivery says what it waits for, and goes on when that is gone.
func TestSomebodyElsesCopyHoldsUpNobodyElse(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), setBeside("mine", releaseAddon("his"))...)...)
	taken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: identity.KubeconfigCopy("hub", testCluster)}}
	m.quietly(func() { m.must(m.api.Create(t.Context(), taken)) })
	m.settle()
	if a := m.tenantsDelivery().Status.Addons; len(a) != 1 || a[0].State != hubv1.AddonWaitingForCluster || !strings.Contains(a[0].Message, taken.Name) {
		t.Errorf("his delivery says %+v", a)
	}
	look := func() time.Duration {
		m.r.expectations.Forget(testCluster)
		res, err := m.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: testCluster})
		m.must(err)
		return res.RequeueAfter
	}
	if after := look(); after != observed.RetryFailed {
		t.Errorf("it looks for his Secret after %s", after)
	}
	m.withdraw(testCluster, testSet)
	m.clock.SetTime(m.delivery(testCluster, testSet).DeletionTimestamp.Add(time.Second))
	if after := look(); after != m.r.Config.RemovalDelay-time.Second {
		t.Errorf("the platform's removal is looked at after %s", after)
	}
	m.quietly(func() { m.must(m.api.Delete(t.Context(), taken)) })
	m.settle()
	if a := m.tenantsDelivery().Status.Addons; len(a) != 1 || a[0].State != hubv1.AddonReady {
		t.Errorf("the Secret is gone, and his delivery says %+v", a)
	}
}

// TestForgedSuspensionsTakeNoTurns: a tenant's object says that the hub keeps it suspended. However often the hub looks at it, other clusters are
// resumed as before. What is not suspended is not even written.
func TestForgedSuspensionsTakeNoTurns(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "x", errors.New("it has changed"))
	for name, tc := range map[string]struct {
		suspend bool
		err     error // of the hub's write
		writes  bool
	}{"NotSuspended": {}, "Suspended": {suspend: true, writes: true}, "SuspendedAndEditedAllTheTime": {suspend: true, err: conflict, writes: true}} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
			m.must(m.reconcile(testCluster))
			m.r.resumes = rate.NewLimiter(resumedPerSecond, resumedAtOnce)
			m.failing = func(what string) (error, bool) { return tc.err, false }
			hr := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{
				Namespace: testCluster.Namespace, Name: identity.FluxObject("hub", testCluster, "evil"), UID: "forged",
				Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", testCluster), hubv1.AddonLabel: "evil"},
				Annotations: map[string]string{hubv1.SuspendedAnnotation: "x"},
			}}
			hr.Spec.Suspend = tc.suspend
			m.quietly(func() { m.must(m.api.Create(t.Context(), hr)) })
			before := m.writes
			for range 3 {
				m.must(m.reconcile(testCluster))
			}
			if left := m.r.resumes.TokensAt(m.clock.Now()); left != resumedAtOnce || m.writes > before != tc.writes {
				t.Errorf("%v turns are left, after %d writes", left, m.writes-before)
			}
		})
	}
}

// TestAClusterTakesOneTurn: all of a cluster is resumed in one turn, and what has no turn waits.
func TestAClusterTakesOneTurn(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"), releaseAddon("web"))...)
	m.must(m.reconcile(testCluster))
	m.pause(true)
	m.must(m.reconcile(testCluster))
	m.pause(false)
	suspended := func() (n int) {
		for _, o := range m.objects() {
			if o.(*helmv2.HelmRelease).Spec.Suspend {
				n++
			}
		}
		return n
	}
	m.r.resumes = rate.NewLimiter(resumedPerSecond, 1)
	m.r.resumes.ReserveN(m.clock.Now(), 1)
	res, err := m.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: testCluster})
	if m.must(err); suspended() != 2 || res.RequeueAfter > time.Second {
		t.Errorf("out of turn, %d are suspended, and it is looked at after %s", suspended(), res.RequeueAfter)
	}
	m.clock.SetTime(m.clock.Now().Add(time.Second))
	m.must(m.reconcile(testCluster))
	if left := m.r.resumes.TokensAt(m.clock.Now()); suspended() != 0 || left != 0 {
		t.Errorf("%d are suspended, and %v turns are left", suspended(), left)
	}
}

// TestNamespaceTakesItsShareOfTurns: a cluster whose namespace has just had its share is not resumed while another namespace waits. It is a
// moment later, and at once if nobody else waits.
func TestNamespaceTakesItsShareOfTurns(t *testing.T) {
	for name, waits := range map[string]bool{"SomebodyElseWaits": true, "NobodyElseWaits": false} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
			m.must(m.reconcile(testCluster))
			m.pause(true)
			m.must(m.reconcile(testCluster))
			m.pause(false)
			for range resumedPerSecond {
				m.r.shares.Take(testCluster.Namespace, m.clock.Now())
			}
			if waits {
				m.r.shares.Wait("somebody-elses", m.clock.Now())
			}
			suspended := func() bool { return m.object(testCluster, "app").(*helmv2.HelmRelease).Spec.Suspend }
			res, err := m.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: testCluster})
			if m.must(err); suspended() != waits || waits && res.RequeueAfter > time.Second {
				t.Errorf("it is suspended: %t, and looked at after %s", suspended(), res.RequeueAfter)
			}
			m.clock.SetTime(m.clock.Now().Add(2 * time.Second))
			if m.must(m.reconcile(testCluster)); suspended() {
				t.Error("it is never resumed")
			}
		})
	}
}

// TestSourcesOfOthersHaveNothingRenderedAgain: somebody's source goes that his own Kustomization uses, which says that it is of another one's cluster.
// What is delivered there from other namespaces is not rendered again. It is when a source goes that is used from there.
func TestSourcesOfOthersHaveNothingRenderedAgain(t *testing.T) {
	objects := append(addonsOf(testSet, "1", kustomizationAddon("app")), setBeside("mine", releaseAddon("his"))...)
	m := newServedFixture(t, objects...)
	m.must(m.reconcile(testCluster))
	k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "k",
		Labels: map[string]string{hubv1.ClusterKeyLabel: "any"}, Annotations: map[string]string{hubv1.RegistrationAnnotation: testCluster.String()}}}
	k.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: "git"}
	m.quietly(func() { m.must(m.api.Create(t.Context(), k)) })
	for _, tc := range []struct {
		namespace string
		want      int
	}{{"evil", 2}, {"flux-system", 1}} {
		source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "git"}}
		woken := m.r.userOf(sourcev1.GitRepositoryKind)(t.Context(), source)
		if kept, _ := m.r.Renderings(); kept != tc.want || len(woken) != 1 {
			t.Errorf("a source of %s goes: %d renderings are kept, want %d; woken are %v", tc.namespace, kept, tc.want, woken)
		}
	}
}
