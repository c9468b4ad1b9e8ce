// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
)

// TestTheOtherIsMadeAgain: one that leaves uninstalls nothing if another one stays, and one that was made again and has not answered yet stays
// as well, if the platform's sets have delivered through it to this cluster. Of any other nobody knows where it leads.
func TestTheOtherIsMadeAgain(t *testing.T) {
	other := types.NamespacedName{Namespace: "fleet", Name: "two"}
	for name, tc := range map[string]struct {
		says, live types.UID
		object     string // the namespace of a Flux object of the other one
		madeFor    string
		// stoodBack is what a delivery in the namespace of object says of the cluster, in place of a Flux object.
		stoodBack   string
		goes, there bool
		stays       bool
	}{
		"SaysSo":               {says: "c1", live: "c1", there: true, stays: true},
		"MadeAgain":            {object: "flux-system", madeFor: "c1", there: true, stays: true},
		"MadeAgainJustNow":     {says: "c1", object: "flux-system", madeFor: "c1", there: true, stays: true},
		"MadeAgainAndGone":     {object: "flux-system", madeFor: "c1"},
		"MadeAgainAndGoes":     {object: "flux-system", madeFor: "c1", goes: true, there: true},
		"HasNotAnswered":       {there: true},
		"ATenantMayHaveMadeIt": {object: "fleet", madeFor: "c1", there: true},
		"OfAnotherCluster":     {object: "flux-system", madeFor: "c2", there: true},
		"StoodBackBefore":      {object: "flux-system", stoodBack: "c1", there: true, stays: true},
		"StoodBackElsewhere":   {object: "flux-system", stoodBack: "c2", there: true},
		"ATenantMaySayThat":    {object: "fleet", stoodBack: "c1", there: true},
		"AnswersElsewhereNow":  {live: "c2", object: "flux-system", madeFor: "c1", there: true},
	} {
		t.Run(name, func(t *testing.T) {
			reg := func(key types.NamespacedName, uid, cluster types.UID) *hubv1.ClusterRegistration {
				r := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: uid}}
				r.Status.ClusterUID = cluster
				return r
			}
			builder := func(two *hubv1.ClusterRegistration) *fake.ClientBuilder {
				b := fake.NewClientBuilder().WithScheme(hubscheme.New()).
					WithIndex(&hubv1.ClusterRegistration{}, index.ClusterID, func(o client.Object) []string {
						return []string{o.(*hubv1.ClusterRegistration).Status.ClusterID()}
					})
				for _, o := range []client.Object{&helmv2.HelmRelease{}, &kustomizev1.Kustomization{}} {
					b = b.WithIndex(o, index.ClusterKey, func(o client.Object) []string { return []string{o.GetLabels()[hubv1.ClusterKeyLabel]} })
				}
				b = b.WithIndex(&hubv1.AddonDelivery{}, index.DeliveryRegistration, func(o client.Object) []string {
					return []string{o.(*hubv1.AddonDelivery).Spec.RegistrationRef.Key().String()}
				})
				if two != nil {
					b = b.WithObjects(two)
				}
				return b
			}
			cached, live := reg(other, "new", tc.says), reg(other, "new", tc.live)
			if tc.goes {
				live.DeletionTimestamp, live.Finalizers = &metav1.Time{Time: moment}, []string{hubv1.RegistrationFinalizer}
			}
			if !tc.there {
				live = nil
			}
			cache := builder(cached)
			if tc.stoodBack != "" {
				d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: tc.object, Name: identity.Delivery("", other)}}
				d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: other.Namespace, Name: other.Name}
				d.Status.ClusterID = tc.stoodBack
				cache = cache.WithObjects(d)
			} else if tc.object != "" {
				cache = cache.WithObjects(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{
					Namespace: tc.object, Name: "o", CreationTimestamp: metav1.NewTime(moment),
					Annotations: map[string]string{hubv1.ClusterUIDAnnotation: tc.madeFor},
					Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", other)},
				}})
			}
			r := &Reconciler{Client: cache.Build(), Live: builder(live).Build(), Clock: clocktesting.NewFakePassiveClock(moment),
				Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}}}
			why, err := r.stayer(t.Context(), reg(types.NamespacedName{Namespace: "fleet", Name: "one"}, "one", "c1"))
			if err != nil || (why != "") != tc.stays {
				t.Errorf("%q, %v; stays: want %t", why, err, tc.stays)
			}
		})
	}
}

// TestMadeAgainAndGoes: a registration that was made again, and goes before it has answered, is of the cluster that the platform's sets have
// delivered to through it. Another one of that cluster goes on with what is there. What a tenant says of that counts for nothing.
func TestMadeAgainAndGoes(t *testing.T) {
	one := types.NamespacedName{Namespace: "fleet", Name: "one"}
	for name, tc := range map[string]struct {
		namespace, madeFor string
		stays              bool
	}{
		"ItsObjectsSay": {"flux-system", "c1", true},
		"ATenants":      {"fleet", "c1", false},
		"AnotherOne":    {"flux-system", "c2", false},
		"NobodyKnows":   {"flux-system", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			two := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "two", UID: "two"}}
			two.Status.ClusterUID = "c1"
			object := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{
				Namespace: tc.namespace, Name: "o", Annotations: map[string]string{hubv1.ClusterUIDAnnotation: tc.madeFor},
				Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", one)},
			}}
			api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(two, object).Build()
			r := &Reconciler{Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(moment),
				Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}}}
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Name, UID: "one"}}
			if why, err := r.stayer(t.Context(), reg); err != nil || (why != "") != tc.stays {
				t.Errorf("%q, %v; the other stays: want %t", why, err, tc.stays)
			}
		})
	}
}
