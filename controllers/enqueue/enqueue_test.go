// SPDX-License-Identifier: Apache-2.0

package enqueue_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/internal/hubscheme"
)

// An edit of a Team wakes the clusters of the namespaces that it had and has, and a cluster that comes does not wait for them.
func TestAClusterGoesBeforeThoseOfATeam(t *testing.T) {
	delivery := func(namespace, cluster string) *hubv1.AddonDelivery {
		d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster}}
		d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: "fleet", Name: cluster}
		return d
	}
	api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(delivery("had", "one"), delivery("has", "two")).Build()
	team := func(namespace string) *hubv1.Team {
		return &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop", ResourceVersion: namespace},
			Spec: hubv1.TeamSpec{HubNamespaces: []string{namespace}}}
	}
	q := priorityqueue.New[reconcile.Request]("clusters")
	defer q.ShutDown()
	enqueue.ClustersOfTeam(api).Update(t.Context(), event.UpdateEvent{ObjectOld: team("had"), ObjectNew: team("has")}, q)
	q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "fleet", Name: "new"}})
	for _, want := range []string{"new", "one", "two"} {
		if got, _ := q.Get(); got.Name != want {
			t.Errorf("%s comes, want %s", got.Name, want)
		}
	}
}
