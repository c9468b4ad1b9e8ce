// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
)

const teamNamespace = "shop-team"

// teamFixture is a controller with Team shop that has testCluster, its rights there, and a set of the team. token says whether the
// tokens controller has written the team's kubeconfig.
func teamFixture(t *testing.T, token bool) *fixture {
	t.Helper()
	objects := inTeam("shop", "shop", releaseAddon("web"))
	if !token {
		objects = objects[:len(objects)-1]
	}
	return newFixture(t, append(objects, teamOf("shop"), registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))...)
}

// writeToken writes the team's kubeconfig as the tokens controller does.
func (m *fixture) writeToken() {
	m.quietly(func() {
		m.must(m.api.Create(m.t.Context(), teamCopy(teamOf("shop"), m.delivery(testCluster, "team-shop"))))
	})
}

// teamKubeConfig returns the kubeconfig in the team's namespace; "" if there is none.
func (m *fixture) teamKubeConfig() string {
	s := &corev1.Secret{}
	if err := m.api.Get(m.t.Context(), types.NamespacedName{Namespace: teamNamespace, Name: identity.KubeconfigCopy("hub", testCluster)}, s); err != nil {
		m.must(client.IgnoreNotFound(err))
		return ""
	}
	return string(s.Data["value"])
}

// teamDelivery returns the delivery of the team's set; nil if it is gone.
func (m *fixture) teamDelivery() *hubv1.AddonDelivery {
	d := &hubv1.AddonDelivery{}
	if err := m.api.Get(m.t.Context(), types.NamespacedName{Namespace: teamNamespace, Name: identity.Delivery("shop", testCluster)}, d); err != nil {
		m.must(client.IgnoreNotFound(err))
		return nil
	}
	return d
}

// A team's add-ons wait for its token, and never get the admin's kubeconfig.
func TestTeamWaitsForItsToken(t *testing.T) {
	m := teamFixture(t, false)
	m.settle()
	if m.object(testCluster, "team-shop") == nil || m.object(testCluster, "web") != nil || m.teamKubeConfig() != "" {
		t.Fatalf("objects %v, kubeconfig %q, platform %+v, team %+v", m.objects(), m.teamKubeConfig(), m.delivery(testCluster, "team-shop").Status, m.teamDelivery().Status)
	}
	if a := m.teamDelivery().Status.Addons; len(a) != 1 || a[0].State != hubv1.AddonWaitingForCluster || !strings.Contains(a[0].Message, `AddonSet "team-shop"`) {
		t.Errorf("it says %+v", a)
	}
	m.writeToken()
	m.settle()
	if m.object(testCluster, "web") == nil || !strings.Contains(m.teamKubeConfig(), "the-teams") {
		t.Errorf("objects %v, kubeconfig %q", m.objects(), m.teamKubeConfig())
	}
	if d := m.teamDelivery(); !status.IsTrue(d, hubv1.ReadyCondition) {
		t.Errorf("it says %+v", d.Status)
	}
	before := m.writes
	if m.settle(); m.writes != before {
		t.Errorf("%d writes for nothing", m.writes-before)
	}
}

// What a team has goes with its token when it loses the cluster, or its Team the namespace, and then its rights.
func TestTeamLoses(t *testing.T) {
	for name, lose := range map[string]func(*fixture){
		"TheCluster": func(m *fixture) {
			edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(r *hubv1.ClusterRegistration) { r.Labels["env"] = "dev" })
		},
		"TheNamespace": func(m *fixture) {
			edit(m, "flux-system", "shop", &hubv1.Team{}, func(t *hubv1.Team) { t.Spec.HubNamespaces = []string{"other"} })
		},
		"TheTeam": func(m *fixture) {
			m.quietly(func() {
				m.must(m.api.Delete(t.Context(), &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop"}}))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := teamFixture(t, true)
			m.settle()
			lose(m)
			m.settle()
			if m.object(testCluster, "web") == nil || m.teamDelivery() == nil {
				t.Fatal("something goes that nobody has withdrawn")
			}
			m.withdraw(testCluster, "team-shop")
			m.reconcile(testCluster)
			if o := m.object(testCluster, "team-shop"); name == "TheCluster" && (o == nil || o.GetDeletionTimestamp() != nil) {
				t.Error("the rights go before what needs them")
			}
			d := m.teamDelivery()
			edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.Withdrawal = d.UID })
			m.quietly(func() { m.must(m.api.Delete(t.Context(), d)) })
			m.settle()
			m.settle()
			if len(m.objects()) > 0 || m.teamDelivery() != nil || m.teamKubeConfig() != "" || len(m.told) > 0 {
				t.Errorf("left %v, delivery %v, kubeconfig %q, told %v", m.objects(), m.teamDelivery(), m.teamKubeConfig(), m.told)
			}
		})
	}
}

// Somebody has deleted the team's delivery, and the Team loses the cluster before it is made again. The rights wait for what it has left.
func TestTeamLosesTheClusterAsItsDeliveryIsMadeAgain(t *testing.T) {
	m := teamFixture(t, true)
	m.settle()
	d := m.teamDelivery()
	m.quietly(func() { m.must(m.api.Delete(t.Context(), d)) })
	m.settle()
	if m.teamDelivery() != nil {
		t.Fatal("it is not made again")
	}
	edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(r *hubv1.ClusterRegistration) { r.Labels["env"] = "dev" })
	m.withdraw(testCluster, "team-shop")
	m.settle()
	if o := m.object(testCluster, "team-shop"); o == nil || o.GetDeletionTimestamp() != nil || m.object(testCluster, "web") == nil {
		t.Errorf("the rights go before what needs them: %v", m.objects())
	}
}

// What somebody forges in a team's namespace for a cluster that the Team does not have is nobody's business.
func TestTeamForges(t *testing.T) {
	m := teamFixture(t, true)
	edit(m, "flux-system", "shop", &hubv1.Team{}, func(t *hubv1.Team) { t.Spec.ClusterSelector.MatchLabels["env"] = "dev" })
	m.settle()
	if m.object(testCluster, "web") != nil {
		t.Error("a forged delivery gets an object")
	}
	if d := m.teamDelivery(); status.Reason(d, hubv1.ReadyCondition) != hubv1.OutOfReachReason {
		t.Errorf("it says %+v", d.Status)
	}
	if o := m.object(testCluster, "team-shop"); o == nil || o.GetNamespace() != "flux-system" || len(m.told) > 0 {
		t.Errorf("the platform's: %v, told %v", o, m.told)
	}
}

// Somebody deletes the AddonSet with a Team's rights, and then the team's Flux objects. They are made again when the rights are there
// again: made now, they would be new as the rights go.
func TestTeamWaitsForRightsThatGo(t *testing.T) {
	m := teamFixture(t, true)
	m.settle()
	m.withdraw(testCluster, "team-shop")
	m.reconcile(testCluster)
	m.quietly(func() { m.must(m.api.Delete(t.Context(), m.object(testCluster, "web"))) })
	m.settle()
	if o := m.object(testCluster, "web"); o != nil && o.GetDeletionTimestamp() == nil {
		t.Errorf("it is made again while the rights go: %v", m.objects())
	}
	if a := m.teamDelivery().Status.Addons; len(a) != 1 || a[0].State != hubv1.AddonWaitingForCluster {
		t.Errorf("it says %+v", a)
	}
}
