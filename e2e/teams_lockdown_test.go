// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// TestLockdown runs a Flux with --default-service-account, as people lock Flux down for their tenants. It impersonates that
// ServiceAccount on remote clusters too. The hub finds that out, and says what it is and what to do: for the platform by a
// ServiceAccount that it names, and for a team, which may impersonate nobody, by leaving the flag off.
func TestLockdown(t *testing.T) {
	beside(t)
	ctx := t.Context()
	flag := []string{"--default-service-account=default"}
	g := &teamed{&generation{one: workload(t, "workload-a")}}
	g.hub = startHub(t, hubOptions{name: "hub-lockdown", args: []string{"--removal-delay=1s"}, flux: &localfleet.FluxOptions{
		NoCrossNamespaceRefs: true, Args: map[string][]string{parts.KustomizeController: flag, parts.HelmController: flag},
	}})
	g.charts, g.git = serve(t)
	namespace(t, g.Client, "shop-team")
	register(t, g.Client, "fleet", "one", g.one, map[string]string{"region": "eu"})

	g.apply(t, shopTeam)
	g.apply(t, shopSet("shop", "    - {name: web, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: charts}}}}}\n"))
	soon(t, "the hub says what is wrong with the Team's rights", func() error {
		return g.addonOf(ctx, "one", "team-shop", "team-shop", hubv1.AddonFailed, "Flux runs with --default-service-account, and acts on the cluster as ServiceAccount flux-system/default")
	})

	namespace(t, g.one.Client, "flux-system")
	robot := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "lockdown-robot"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "flux-system", Name: "robot"}},
	}
	check(t, g.one.Client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "robot"}}))
	check(t, g.one.Client.Create(ctx, robot))
	g.patchRegistration(t, "one", `{"spec":{"serviceAccountName":"robot"}}`)
	soon(t, "the team has its rights by an account that the platform names", func() error {
		return g.addonOf(ctx, "one", "team-shop", "team-shop", hubv1.AddonReady, "")
	})
	soon(t, "the hub says what is wrong with the team's add-on", func() error {
		return g.addonOf(ctx, "one", "shop", "web", hubv1.AddonFailed, "as a ServiceAccount of namespace shop-team, which lacks the rights or may not be impersonated there: take the flag off")
	})
	check(t, wantNoConfigMap(ctx, g.one, "shop-apps", "web"))
	check(t, g.Client.Delete(ctx, shop()))
	soon(t, "the Team is gone", func() error { return errors.Join(approveHeld(t.Context(), g.Client), wantGone(ctx, g.Client, shop())) })
	g.remove(t, "shop-team", "shop")
	check(t, g.one.Client.Delete(ctx, robot))
}
