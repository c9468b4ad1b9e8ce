// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/status"
)

// A registration goes on telling what the platform has left on its cluster, and what a Team that is gone has, whatever another Team's add-ons are
// called. What the platform delivers again from another of its namespaces, or somebody beside the registration, it does not tell any more.
func TestOrphansStayForATeamsAddon(t *testing.T) {
	for namespace, want := range map[string]int{"shop-team": 2, "platform": 1, "fleet": 1, "gone-team": 1} {
		t.Run(namespace, func(t *testing.T) {
			team := &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop"}, Spec: hubv1.TeamSpec{HubNamespaces: []string{"shop-team"},
				SelectAll: true, Namespaces: []hubv1.TeamNamespace{{Name: "shop-apps"}}}}
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}}
			for _, of := range []string{"flux-system/base", "gone-team/theirs"} {
				reg.Status.Orphans = append(reg.Status.Orphans, hubv1.Orphan{Cluster: "fleet/one", AddonSet: of, Addon: "logs1", Since: metav1.NewTime(moment)})
			}
			d := deliveryOf("logs", status.Done, hubv1.AddonsReadyReason, hubv1.AddonReady)
			d.Namespace, d.Status.Addons[0].Version = namespace, "1"
			tellsOf(t, reg, want, team, &d)
		})
	}
}

// tellsOf wants a registration to tell of so many orphans, beside some objects.
func tellsOf(t *testing.T, reg *hubv1.ClusterRegistration, want int, beside ...client.Object) {
	t.Helper()
	api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(beside...).Build()
	r := &Reconciler{Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(moment),
		Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system", "platform"}}}}
	if _, err := r.sets(t.Context(), reg); err != nil {
		t.Fatal(err)
	}
	if len(reg.Status.Orphans) != want {
		t.Errorf("it tells of %+v", reg.Status.Orphans)
	}
}
