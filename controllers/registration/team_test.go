// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
)

// A member of a team writes a delivery by hand, of a set that does not exist, to a cluster that is registered in another namespace, and a finalizer of his
// own. The hub has deleted it. That cluster is not unregistered, not even by force, and its origin never becomes drained, for as long as he likes. The same
// with a finalizer on a delivery that the hub made.
func TestForgedDeliveryHoldsUpUnregistration(t *testing.T) {
	key := types.NamespacedName{Namespace: "fleet", Name: "one"}
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{"env": "prod"},
		Finalizers: []string{hubv1.RegistrationFinalizer}, DeletionTimestamp: &metav1.Time{Time: time.Now()}}}
	team := &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop"}}
	team.Spec = hubv1.TeamSpec{HubNamespaces: []string{"shop-team"}, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
		Namespaces: []hubv1.TeamNamespace{{Name: "shop-apps"}}}
	forged := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-team", Name: identity.Delivery("no-such-set", key),
		Finalizers: []string{"mallory.example/stays"}, DeletionTimestamp: &metav1.Time{Time: time.Now().Add(-24 * time.Hour)},
		Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", key)}}}
	forged.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: key.Namespace, Name: key.Name}
	forged.Spec.AddonSetRef = hubv1.DeliveredSetReference{Name: "no-such-set", UID: "x"}
	api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(reg, team, forged).Build()
	r := &Reconciler{Client: api, Live: api, Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}}}
	if left, err := r.deliveriesLeft(t.Context(), reg); err != nil || left != 0 {
		t.Errorf("the registration waits for %d deliveries that a member of the team has written: %v", left, err)
	}
}

// The hub has made a delivery from a Team's namespace, and nothing of it has come to the cluster, so its status names no add-on. Somebody in the team may have
// written it as well. The registration waits for it to be withdrawn, and for no longer than a minute.
func TestUnregistrationWaitsForWhatATeamWasToGet(t *testing.T) {
	key, began := types.NamespacedName{Namespace: "fleet", Name: "one"}, time.Now().Truncate(time.Second)
	for name, tc := range map[string]struct {
		change func(d *hubv1.AddonDelivery)
		after  time.Duration
		want   int
	}{
		"AtOnce":     {func(*hubv1.AddonDelivery) {}, time.Second, 1},
		"TooLong":    {func(*hubv1.AddonDelivery) {}, recallTime, 0},
		"Reported":   {func(d *hubv1.AddonDelivery) { d.Status.Addons = []hubv1.AddonStatus{{Name: "till"}} }, recallTime, 1},
		"NotTheHubs": {func(d *hubv1.AddonDelivery) { d.Finalizers = []string{"mallory.example/stays"} }, time.Second, 0},
	} {
		reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.OriginLostReason, "", began)
		team := &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop"}, Spec: hubv1.TeamSpec{HubNamespaces: []string{"shop-team"}, SelectAll: true,
			Namespaces: []hubv1.TeamNamespace{{Name: "shop-apps"}}}}
		d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-team", Name: identity.Delivery("store", key),
			Finalizers: []string{hubv1.DeliveryFinalizer}, Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", key)}}}
		d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: key.Namespace, Name: key.Name}
		d.Spec.AddonSetRef = hubv1.DeliveredSetReference{Name: "store", UID: "x"}
		tc.change(d)
		api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(reg, team, d).Build()
		r := &Reconciler{Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(began.Add(tc.after)),
			Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}}}
		if left, err := r.deliveriesLeft(t.Context(), reg); err != nil || left != tc.want {
			t.Errorf("%s: it waits for %d deliveries, %v; want %d", name, left, err, tc.want)
		}
	}
}

// A set in a Team's namespace is being deleted, and waits until Flux has uninstalled what somebody has deleted. If the cluster goes, the registration waits until
// the set has noticed, and no longer than a minute: a member of the team can write all of that.
func TestUnregistrationWaitsForASetOfATeamThatGoes(t *testing.T) {
	key, began := types.NamespacedName{Namespace: "fleet", Name: "one"}, time.Now().Truncate(time.Second)
	for after, want := range map[time.Duration]int{time.Second: 1, recallTime: 0} {
		reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.OriginDeletedReason, "", began)
		team := &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop"}, Spec: hubv1.TeamSpec{HubNamespaces: []string{"shop-team"}, SelectAll: true,
			Namespaces: []hubv1.TeamNamespace{{Name: "shop-apps"}}}}
		set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-team", Name: "store", Finalizers: []string{hubv1.AddonSetFinalizer}, DeletionTimestamp: &metav1.Time{Time: began}}}
		object := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop-team", Name: identity.FluxObject("hub", key, "till"), Finalizers: []string{fluxstate.Finalizer}, DeletionTimestamp: &metav1.Time{Time: began},
			Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", key), hubv1.AddonLabel: "till", hubv1.AddonSetLabel: "store"},
			Annotations: map[string]string{hubv1.DeliveryAnnotation: identity.Delivery("store", key)},
		}}
		api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(reg, team, set, object).Build()
		r := &Reconciler{Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(began.Add(after)),
			Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}}}
		if left, err := r.recalled(t.Context(), reg); err != nil || len(left) != want {
			t.Errorf("after %s it waits for %v, %v; want %d", after, left, err, want)
		}
	}
}

// The Team of a namespace is gone, and its sets' removal guard holds what the hub has delivered. The registration waits for
// that, as it does while the Team is there. What nobody but its author vouches for, it does not wait for.
func TestUnregistrationWaitsForWhatAFormerTeamHas(t *testing.T) {
	key := types.NamespacedName{Namespace: "fleet", Name: "one"}
	for name, tc := range map[string]struct {
		change func(d *hubv1.AddonDelivery, mirror *corev1.Secret)
		want   int
	}{
		"Delivered":        {func(*hubv1.AddonDelivery, *corev1.Secret) {}, 1},
		"NotReported":      {func(d *hubv1.AddonDelivery, _ *corev1.Secret) { d.Status.Addons = nil }, 0},
		"NotTheHubs":       {func(d *hubv1.AddonDelivery, _ *corev1.Secret) { d.Finalizers = []string{"mallory.example/stays"} }, 0},
		"NeverTeams":       {func(_ *hubv1.AddonDelivery, mirror *corev1.Secret) { mirror.Labels[hubv1.MirrorLabel] = "true" }, 0},
		"OfAnotherCluster": {func(_ *hubv1.AddonDelivery, mirror *corev1.Secret) { mirror.Name = "other" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-team", Name: identity.Delivery("store", key),
				Finalizers: []string{hubv1.DeliveryFinalizer}, Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", key)}}}
			d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: key.Namespace, Name: key.Name}
			d.Spec.AddonSetRef = hubv1.DeliveredSetReference{Name: "store", UID: "x"}
			d.Status.Addons = []hubv1.AddonStatus{{Name: "till", State: hubv1.AddonHeld}}
			mirror := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-team", Name: identity.Mirror("hub", key),
				Labels: map[string]string{hubv1.MirrorLabel: identity.TeamMirror}}}
			tc.change(d, mirror)
			api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(reg, d, mirror).Build()
			r := &Reconciler{Client: api, Live: api, Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}}}
			if left, err := r.deliveriesLeft(t.Context(), reg); err != nil || left != tc.want {
				t.Errorf("it waits for %d deliveries, %v; want %d", left, err, tc.want)
			}
		})
	}
}
