// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/credential"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/team"
)

const teamNamespace = "shop-team"

// teamOf is a Team with hub namespace <name>-team, that has testCluster.
func teamOf(name string) *hubv1.Team {
	t := &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name, UID: types.UID("team-" + name)}}
	t.Spec = hubv1.TeamSpec{HubNamespaces: []string{name + "-team"},
		ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
		Namespaces:      []hubv1.TeamNamespace{{Name: name + "-apps"}}}
	return t
}

// inTeam returns a set with its revision and its delivery in the hub namespace of a Team, the set with the Team's rights, and the
// kubeconfig copy with the Team's token.
func inTeam(team string, addons ...map[string]any) []client.Object {
	out := inNamespace(team+"-team", delivered(team, addons...))
	out = append(out, delivered("team-"+team, releaseAddon("team-"+team))...)
	return append(out, teamCopy(teamOf(team), deliveredTo(testCluster, "team-"+team, "1")))
}

// teamCopy is the kubeconfig with a Team's token, as the tokens controller writes it.
func teamCopy(of *hubv1.Team, rights *hubv1.AddonDelivery) *corev1.Secret {
	namespace := of.Spec.HubNamespaces[0]
	from := team.Reach(namespace, []hubv1.Team{*of}, func(namespace string) bool { return namespace == "flux-system" })
	return &corev1.Secret{Data: map[string][]byte{"value": testKubeconfig("the-teams")}, ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: identity.KubeconfigCopy("hub", testCluster), Finalizers: []string{hubv1.Finalizer},
		Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", testCluster), hubv1.CopyLabel: identity.TeamCopy},
		Annotations: map[string]string{
			hubv1.RegistrationAnnotation: testCluster.String(),
			hubv1.FingerprintAnnotation:  credential.TeamFingerprint(registered(testCluster, "c1"), from, rights),
		},
	}}
}

// teamFixture is a fixture with Team shop that has testCluster, its rights there, and a set of the team. token says whether the tokens
// controller has written the team's kubeconfig.
func teamFixture(t *testing.T, token bool) *fixture {
	t.Helper()
	objects := inTeam("shop", releaseAddon("web"))
	if !token {
		objects = objects[:len(objects)-1]
	}
	return newFixture(t, append(objects, teamOf("shop"), registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))...)
}

// writeToken writes the team's kubeconfig as the tokens controller does.
func (m *fixture) writeToken() { m.create(teamCopy(teamOf("shop"), m.delivery("team-shop"))) }

// team returns the HelmRelease, the delivery and the kubeconfig in the team's namespace; nil if they do not exist.
func (m *fixture) team() (*helmv2.HelmRelease, *hubv1.AddonDelivery, *corev1.Secret) {
	m.t.Helper()
	return m.releaseIn(teamNamespace, "web"), m.deliveryIn(teamNamespace, "shop"), m.kubeconfigIn(teamNamespace)
}

func (m *fixture) editTeam(change func(*hubv1.TeamSpec)) {
	m.t.Helper()
	edit(m, "flux-system", "shop", &hubv1.Team{}, func(t *hubv1.Team) { change(&t.Spec) })
}

// loses has the Team lose the cluster, by a label of that.
func (m *fixture) loses() {
	m.t.Helper()
	m.editRegistration(func(r *hubv1.ClusterRegistration) { r.Labels["env"] = "dev" })
}

// wantWaiting wants the team's one add-on to wait, and to say for what.
func (m *fixture) wantWaiting(says string) {
	m.t.Helper()
	_, d, _ := m.team()
	if a := d.Status.Addons; len(a) != 1 || a[0].State != hubv1.AddonWaitingForCluster || !strings.Contains(a[0].Message, says) {
		m.t.Errorf("it says %+v", a)
	}
}

// TestTeamWaitsForItsToken: a team's add-ons wait for its token, and never get the admin's kubeconfig.
func TestTeamWaitsForItsToken(t *testing.T) {
	m := teamFixture(t, false)
	m.settle()
	if web, d, token := m.team(); m.object("team-shop") == nil || web != nil || token != nil {
		t.Fatalf("objects %v, kubeconfig %v, platform %+v, team %+v", m.objects(), token, m.delivery("team-shop").Status, d.Status)
	}
	m.wantWaiting(`AddonSet "team-shop"`)
	m.writeToken()
	m.settle()
	web, d, token := m.team()
	if web == nil || !strings.Contains(string(token.Data["value"]), "the-teams") || !status.IsTrue(d, hubv1.ReadyCondition) {
		t.Errorf("objects %v, kubeconfig %v; it says %+v", m.objects(), token, d.Status)
	}
	m.wantNoWrites()
}

// TestTeamWaitsForTheTokenOfThisCluster: the cluster behind the registration is another one now, and the team's objects of the former one
// have gone. The copy still has the token of the former cluster. Flux gets no new object before there is a token of this cluster.
func TestTeamWaitsForTheTokenOfThisCluster(t *testing.T) {
	m := teamFixture(t, true)
	m.editRegistration(func(r *hubv1.ClusterRegistration) { r.Status.ClusterUID = "c2" })
	edit(m, teamNamespace, identity.KubeconfigCopy("hub", testCluster), &corev1.Secret{}, func(s *corev1.Secret) {
		s.Annotations[hubv1.FingerprintAnnotation] = identity.Hash(32, "team", "flux-system", "shop", "target", "c1")
	})
	m.must(m.reconcile())
	m.must(m.reconcile())
	if web, _, _ := m.team(); web != nil {
		t.Error("Flux goes to the new cluster with the token of the old one")
	}
}

// TestTeamWaitsForRightsThatGo: a user deletes the AddonSet with a Team's rights, and then the team's Flux objects. The hub makes the
// objects again when the rights are there again: made now, they would be new as the rights go.
func TestTeamWaitsForRightsThatGo(t *testing.T) {
	m := teamFixture(t, true)
	m.settle()
	m.withdraw("team-shop")
	m.must(m.reconcile())
	m.deleteObject(m.object("web"))
	m.settle()
	if web, _, _ := m.team(); web != nil && web.DeletionTimestamp == nil {
		t.Errorf("it is made again while the rights go: %v", m.objects())
	}
	m.wantWaiting("")
}

// TestTeamLoses: what a team has goes with its token when it loses the cluster, or its Team the namespace, and then its rights. That is so
// too if the hub has crashed before it reported what it has delivered.
func TestTeamLoses(t *testing.T) {
	for name, lose := range map[string]func(*fixture){
		"TheCluster":   (*fixture).loses,
		"TheNamespace": func(m *fixture) { m.editTeam(func(t *hubv1.TeamSpec) { t.HubNamespaces = []string{"other"} }) },
		"TheTeam": func(m *fixture) {
			m.deleteObject(&hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop"}})
		},
		"TheClusterAfterACrash": func(m *fixture) {
			_, d, _ := m.team()
			edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Status = hubv1.AddonDeliveryStatus{} })
			m.restart()
			m.loses()
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := teamFixture(t, true)
			m.settle()
			lose(m)
			if name != "TheClusterAfterACrash" {
				m.settle()
			}
			if web, d, _ := m.team(); web == nil || d == nil {
				t.Fatal("something goes that no controller has withdrawn")
			}
			m.withdraw("team-shop")
			m.must(m.reconcile())
			if o := m.object("team-shop"); name == "TheCluster" && (o == nil || o.GetDeletionTimestamp() != nil) {
				t.Error("the rights go before what needs them")
			}
			m.withdrawIn(teamNamespace, "shop")
			m.settle()
			m.settle()
			if _, d, token := m.team(); len(m.objects()) > 0 || d != nil || token != nil || len(m.told) > 0 {
				t.Errorf("left %v, delivery %v, kubeconfig %v, told %v", m.objects(), d, token, m.told)
			}
		})
	}
}

// TestTeamLosesTheClusterAsItsDeliveryIsMadeAgain: a user has deleted the team's delivery, and the Team loses the cluster before the
// delivery is made again. The rights wait for what the delivery has left.
func TestTeamLosesTheClusterAsItsDeliveryIsMadeAgain(t *testing.T) {
	m := teamFixture(t, true)
	m.settle()
	_, d, _ := m.team()
	m.deleteObject(d)
	m.settle()
	if _, d, _ := m.team(); d != nil {
		t.Fatal("it does not go")
	}
	m.loses()
	m.withdraw("team-shop")
	m.settle()
	if o := m.object("team-shop"); o == nil || o.GetDeletionTimestamp() != nil || m.object("web") == nil {
		t.Errorf("the rights go before what needs them: %v", m.objects())
	}
}

// TestTeamThatIsNotValid: an edit of a Team that is not valid changes nothing.
func TestTeamThatIsNotValid(t *testing.T) {
	m := teamFixture(t, true)
	m.settle()
	m.editTeam(func(t *hubv1.TeamSpec) { t.Namespaces[0].Name = "kube-system" })
	m.settle()
	if web, d, _ := m.team(); web == nil || d == nil || len(m.told) > 0 {
		t.Errorf("gone; told %v", m.told)
	}
	m.wantNoWrites()
	m.editTeam(func(t *hubv1.TeamSpec) { t.Namespaces[0].Name = "shop-apps" })
	m.settle()
	if _, d, _ := m.team(); !status.IsTrue(d, hubv1.ReadyCondition) {
		t.Errorf("%+v", d.Status)
	}
}

// TestTeamTakesNoOtherTeamsAddon: a member of team b writes a set whose add-on of the name of team a's does not render, and a Flux object
// as the hub would make it. Team a's add-on stays, though what "stays as it is" goes before every priority, and before who was there first.
func TestTeamTakesNoOtherTeamsAddon(t *testing.T) {
	fails := releaseAddon("web", map[string]any{"values": map[string]any{"x": "<< cluster.labels.nope >>"}})
	objects := append(inTeam("a", releaseAddon("web")), inTeam("b", fails)...)
	m := newFixture(t, append(objects, teamOf("a"), teamOf("b"), registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))...)
	m.settle()
	if m.releaseIn("a-team", "web") == nil {
		t.Fatalf("team a has no add-on: %+v", m.deliveryIn("a-team", "a").Status)
	}
	m.create(forgedRelease("b-team", "b", "web",
		helmv2.HelmReleaseSpec{ReleaseName: "web", TargetNamespace: "b-apps", StorageNamespace: "b-apps", Suspend: true}))
	m.settle()
	d := m.deliveryIn("a-team", "a") // the addonset controller grants what a removal guard does not hold: by default the first few
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) {
		for _, a := range d.Status.Addons {
			if a.Removal != "" {
				d.Spec.Removals = append(d.Spec.Removals, a.Removal)
			}
		}
	})
	m.settle()
	m.settle()
	if m.releaseIn("a-team", "web") == nil || len(m.uninstalled) > 0 {
		t.Errorf("team a's add-on is gone: %v; %+v", m.uninstalled, m.deliveryIn("a-team", "a").Status.Addons)
	}
}

// TestTeamKeepsNoPlatformAddonOff: a member of a team writes a Flux object of the name of a platform's new add-on, which he keeps by a
// finalizer. The add-on comes.
func TestTeamKeepsNoPlatformAddonOff(t *testing.T) {
	for name, suspended := range map[string]bool{"Suspended": true, "NotSuspended": false} {
		t.Run(name, func(t *testing.T) {
			hr := forgedRelease("b-team", "b", "app",
				helmv2.HelmReleaseSpec{ReleaseName: "app", TargetNamespace: "kube-system", StorageNamespace: "kube-system", Suspend: suspended})
			hr.Finalizers = []string{"mallory.example/stays"}
			platforms := addonsOf(testSet, "1", releaseAddon("app", map[string]any{"releaseName": "app", "targetNamespace": "kube-system"}))
			m := newServedFixture(t, append(append(platforms, inTeam("b", releaseAddon("web"))...), teamOf("b"), hr)...)
			m.settle()
			m.clock.SetTime(m.clock.Now().Add(3 * time.Hour))
			m.settle()
			if m.releaseIn("flux-system", "app") == nil {
				t.Errorf("the platform's add-on is not there: %+v", m.delivery(testSet).Status.Addons)
			}
		})
	}
}

// TestTeamForgesADelivery: the hub ignores a delivery that a user forges in a team's namespace for a cluster which the Team does not have.
func TestTeamForgesADelivery(t *testing.T) {
	m := teamFixture(t, true)
	m.editTeam(func(t *hubv1.TeamSpec) { t.ClusterSelector.MatchLabels["env"] = "dev" })
	m.settle()
	if web, d, _ := m.team(); web != nil || status.Reason(d, hubv1.ReadyCondition) != hubv1.OutOfReachReason {
		t.Errorf("a forged delivery has object %v, and says %+v", web, d.Status)
	}
	if o := m.object("team-shop"); o == nil || o.GetNamespace() != "flux-system" || len(m.told) > 0 {
		t.Errorf("the platform's: %v, told %v", o, m.told)
	}
}

// TestTeamGetsNothingWithTheAdminsCopy: a namespace of a plain tenant, with an admin's kubeconfig beside its sets, becomes a Team's. Until
// its rights are Ready, nothing that the team writes goes to the cluster with the admin's kubeconfig.
func TestTeamGetsNothingWithTheAdminsCopy(t *testing.T) {
	web := map[string]any{"targetNamespace": "a-apps"}
	m := newFixture(t, append(tenantSet("a", releaseAddon("web", web)), registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))...)
	m.settle()
	of := teamOf("a")
	of.Spec.HubNamespaces = []string{testCluster.Namespace}
	m.create(of)
	m.settle()
	next := addonsOf("a", "2", releaseAddon("web", web, map[string]any{"values": map[string]any{"written": "by the team"}}))
	m.create(inNamespace(testCluster.Namespace, next[1:])...)
	d := m.deliveryIn(testCluster.Namespace, "a")
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf("a", "2") })
	m.settle()
	hr, copied := m.releaseIn(testCluster.Namespace, "web"), m.kubeconfigIn(testCluster.Namespace)
	if hr == nil || hr.Spec.Values != nil || copied == nil || copied.Labels[hubv1.CopyLabel] != "true" {
		t.Errorf("Flux got %+v, with kubeconfig %v", hr, copied)
	}
}
