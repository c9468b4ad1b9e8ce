// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestStandsBack: who is not served says what to do, also where the one that is served is dead, and which one that is.
func TestStandsBack(t *testing.T) {
	reg := func(name string, answers metav1.ConditionStatus) *hubv1.ClusterRegistration {
		r := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}}
		status.Set(r, hubv1.ReachableCondition, answers, "Test", "", moment)
		return r
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		alive, served metav1.ConditionStatus
		want          string
	}{
		"BothAnswer":     {yes, yes, "Remove one of them"},
		"NeitherAnswers": {no, no, "Remove one of them"},
		"TheServedDoes":  {no, yes, "Remove one of them"},
		"OnlyThisDoes":   {yes, no, "not through fleet/served: repair its kubeconfig, or remove it, and this one is served"},
	} {
		if got := standsBack(reg("alive", tc.alive), reg("served", tc.served)); !strings.Contains(got, "ClusterRegistration fleet/served as well") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestStandsBackLedElsewhere: who is led elsewhere says by which Secret it was of the cluster, and which one nobody has answered to.
func TestStandsBackLedElsewhere(t *testing.T) {
	reg := &hubv1.ClusterRegistration{}
	reg.Spec.KubeConfig = &hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: "typo"}}
	reg.Status.Credential = &hubv1.CredentialStatus{SecretName: "one"}
	got := standsBack(reg, &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "served"}})
	if !strings.Contains(got, `by Secret "one"`) || !strings.Contains(got, `names Secret "typo"`) || !strings.Contains(got, "fleet/served") {
		t.Error(got)
	}
	reg.Spec.KubeConfig, reg.Status.Credential.FromSpec = nil, true
	got = standsBack(reg, &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "served"}})
	if !strings.Contains(got, `by Secret "one"`) || !strings.Contains(got, "does not name it any more") || !strings.Contains(got, "fleet/served") {
		t.Error(got)
	}
}

// TestMadeAgainIsServedAgain: a registration that somebody deletes, and that is made again, has been of its cluster since a platform
// set has delivered through it. Who has registered the cluster a second time is not served for that.
func TestMadeAgainIsServedAgain(t *testing.T) {
	scheme := hubscheme.New()
	delivered := identity.Delivery("", client.ObjectKey{Namespace: "fleet", Name: "one"})
	object := func(namespace, uid string) *helmv2.HelmRelease {
		return &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "o", CreationTimestamp: metav1.NewTime(moment.Add(-time.Hour)),
			Annotations: map[string]string{hubv1.ClusterUIDAnnotation: uid, hubv1.DeliveryAnnotation: delivered},
			Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", client.ObjectKey{Namespace: "fleet", Name: "one"})},
		}}
	}
	goes := object("flux-system", "c1")
	goes.DeletionTimestamp, goes.Finalizers = &metav1.Time{Time: moment}, []string{hubv1.FluxObjectFinalizer}
	delivery := func(namespace string, withdrawal types.UID) *hubv1.AddonDelivery {
		return &hubv1.AddonDelivery{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: delivered, UID: "u", DeletionTimestamp: &metav1.Time{Time: moment},
				Finalizers: []string{hubv1.DeliveryFinalizer}},
			Spec: hubv1.AddonDeliverySpec{Withdrawal: withdrawal, RegistrationRef: hubv1.RegistrationReference{Namespace: "fleet", Name: "one"}},
		}
	}
	for name, tc := range map[string]struct {
		was    types.UID
		object *helmv2.HelmRelease
		going  *hubv1.AddonDelivery // the one of the object, if it is being deleted
		ago    time.Duration
	}{
		"MadeAgain":             {"", object("flux-system", "c1"), nil, time.Hour},
		"ATenantMayHaveMadeIt":  {"", object("fleet", "c1"), nil, 0},
		"MadeForAnotherCluster": {"", object("flux-system", "c0"), nil, 0},
		"ItIsLetGo":             {"", goes, nil, 0},
		"ItIsWithdrawn":         {"", object("flux-system", "c1"), delivery("flux-system", "u"), 0},
		"DeletedByHand":         {"", object("flux-system", "c1"), delivery("flux-system", ""), time.Hour},
		"ATenantsIsWithdrawn":   {"", object("flux-system", "c1"), delivery("fleet", "u"), time.Hour},
		"LedThere":              {"c0", object("flux-system", "c0"), nil, 0},
		"NothingChanges":        {"c1", object("flux-system", "c1"), nil, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.object).
				WithIndex(&hubv1.AddonDelivery{}, index.DeliveryRegistration, func(o client.Object) []string {
					return []string{o.(*hubv1.AddonDelivery).Spec.RegistrationRef.Key().String()}
				})
			if tc.going != nil {
				b = b.WithObjects(tc.going)
			}
			for _, o := range []client.Object{&helmv2.HelmRelease{}, &kustomizev1.Kustomization{}} {
				b = b.WithIndex(o, index.ClusterKey, func(o client.Object) []string { return []string{o.GetLabels()[hubv1.ClusterKeyLabel]} })
			}
			r := &Reconciler{Client: b.Build(), Clock: clocktesting.NewFakePassiveClock(moment),
				Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}}}
			before := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}}
			before.Status.ClusterUID, before.Status.ClusterSince = tc.was, &metav1.Time{Time: moment.Add(-time.Minute)}
			reg := before.DeepCopy()
			reg.Status.ClusterUID = "c1"
			if err := r.dated(t.Context(), before, reg); err != nil {
				t.Fatal(err)
			}
			if ago := moment.Sub(reg.Status.ClusterSince.Time); ago != tc.ago {
				t.Errorf("since %s, want %s", ago, tc.ago)
			}
		})
	}
}
