// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/credential"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/team"
)

// teamOf is a Team with hub namespace <name>-team, that has testCluster.
func teamOf(name string) *hubv1.Team {
	t := &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name, UID: types.UID("team-" + name)}}
	t.Spec = hubv1.TeamSpec{HubNamespaces: []string{name + "-team"}, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
		Namespaces: []hubv1.TeamNamespace{{Name: name + "-apps"}}}
	return t
}

// inTeam moves a set with its revision and its delivery into the hub namespace of a Team, and adds the kubeconfig copy with the Team's token.
func inTeam(team, set string, addons ...map[string]any) []client.Object {
	out := append(addonsOf(set, "1", addons...), deliveredTo(testCluster, set, "1"))
	for _, o := range out {
		o.SetNamespace(team + "-team")
	}
	out = append(out, addonsOf("team-"+team, "1", releaseAddon("team-"+team))...)
	rights := deliveredTo(testCluster, "team-"+team, "1")
	return append(out, rights, teamCopy(teamOf(team), rights))
}

// teamCopy is the kubeconfig with a Team's token, as the tokens controller writes it.
func teamCopy(of *hubv1.Team, rights *hubv1.AddonDelivery) *corev1.Secret {
	namespace := of.Spec.HubNamespaces[0]
	from := team.Reach(namespace, []hubv1.Team{*of}, func(namespace string) bool { return namespace == "flux-system" })
	return &corev1.Secret{Data: map[string][]byte{"value": testKubeconfig("the-teams")}, ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: identity.KubeconfigCopy("hub", testCluster), Finalizers: []string{hubv1.CopyFinalizer},
		Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", testCluster), hubv1.CopyLabel: identity.TeamCopy},
		Annotations: map[string]string{
			hubv1.RegistrationAnnotation: testCluster.String(),
			hubv1.FingerprintAnnotation:  credential.TeamFingerprint(registered(testCluster, "c1"), from, rights),
		},
	}}
}

func (m *fixture) deliveryIn(namespace, set string) *hubv1.AddonDelivery {
	d := &hubv1.AddonDelivery{}
	if err := m.api.Get(m.t.Context(), types.NamespacedName{Namespace: namespace, Name: identity.Delivery(set, testCluster)}, d); err != nil {
		return nil
	}
	return d
}

func (m *fixture) release(namespace, addon string) *helmv2.HelmRelease {
	hr := &helmv2.HelmRelease{}
	if err := m.api.Get(m.t.Context(), client.ObjectKey{Namespace: namespace, Name: identity.FluxObject("hub", testCluster, addon)}, hr); err != nil {
		return nil
	}
	return hr
}

// A member of team b has team a's add-on uninstalled: he writes a set whose add-on of the same name does not render, and a Flux object as the hub would
// make it. What "stays as it is" goes before every priority, and before who was there first.
func TestTeamTakeAnotherTeamsAddon(t *testing.T) {
	objects := append(inTeam("a", "a", releaseAddon("web")), inTeam("b", "b", releaseAddon("web", map[string]any{"values": map[string]any{"x": "<< cluster.labels.nope >>"}}))...)
	objects = append(objects, teamOf("a"), teamOf("b"), registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))
	m := newFixture(t, objects...)
	m.settle()
	if m.release("a-team", "web") == nil {
		t.Fatalf("team a has no add-on: %+v", m.deliveryIn("a-team", "a").Status)
	}
	t.Logf("b before: %+v", m.deliveryIn("b-team", "b").Status.Addons)
	m.quietly(func() {
		m.must(m.api.Create(t.Context(), &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{
			Namespace: "b-team", Name: identity.FluxObject("hub", testCluster, "web"), UID: "forged",
			Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", testCluster), hubv1.AddonLabel: "web", hubv1.AddonSetLabel: "b"},
			Annotations: map[string]string{hubv1.DeliveryAnnotation: identity.Delivery("b", testCluster), hubv1.RegistrationAnnotation: testCluster.String(), hubv1.ClusterUIDAnnotation: "c1"},
		}, Spec: helmv2.HelmReleaseSpec{ReleaseName: "web", TargetNamespace: "b-apps", StorageNamespace: "b-apps", Suspend: true, ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "chart"}}}))
	})
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
	if m.release("a-team", "web") == nil || len(m.uninstalled) > 0 {
		t.Errorf("team a's add-on is gone: %v; %+v", m.uninstalled, m.deliveryIn("a-team", "a").Status.Addons)
	}
}

// A member keeps a new add-on of the platform off a cluster that is registered in another namespace: he writes a Flux object of that add-on's name, which
// he keeps by a finalizer.
func TestTeamKeepAPlatformAddonOff(t *testing.T) {
	for name, suspended := range map[string]bool{"Suspended": true, "NotSuspended": false} {
		t.Run(name, func(t *testing.T) {
			objects := append(addonsOf(testSet, "1", releaseAddon("app", map[string]any{"releaseName": "app", "targetNamespace": "kube-system"})), inTeam("b", "b", releaseAddon("web"))...)
			objects = append(objects, teamOf("b"), &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{
				Namespace: "b-team", Name: identity.FluxObject("hub", testCluster, "app"), UID: "forged", Finalizers: []string{"mallory.example/stays"},
				Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", testCluster), hubv1.AddonLabel: "app", hubv1.AddonSetLabel: "b"},
				Annotations: map[string]string{hubv1.DeliveryAnnotation: identity.Delivery("b", testCluster), hubv1.RegistrationAnnotation: testCluster.String(), hubv1.ClusterUIDAnnotation: "c1"},
			}, Spec: helmv2.HelmReleaseSpec{ReleaseName: "app", TargetNamespace: "kube-system", StorageNamespace: "kube-system", Suspend: suspended,
				ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "chart"}}})
			m := newServedFixture(t, objects...)
			m.settle()
			m.clock.SetTime(m.clock.Now().Add(3 * time.Hour))
			m.settle()
			if m.release("flux-system", "app") == nil {
				t.Errorf("the platform's add-on is not there: %+v", m.delivery(testCluster, testSet).Status.Addons)
			}
		})
	}
}

// The platform takes a hub namespace off a Team. What was delivered from there is left, and nobody is told; the token stays, and lives for a day.
func TestTeamNamespaceLosesItsTeam(t *testing.T) {
	m := newFixture(t, append(inTeam("a", "a", releaseAddon("web")), teamOf("a"), registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))...)
	m.settle()
	if m.release("a-team", "web") == nil {
		t.Fatal("team a has no add-on")
	}
	t1 := &hubv1.Team{}
	edit(m, "flux-system", "a", t1, func(team *hubv1.Team) { team.Spec.HubNamespaces = []string{"another-team"} })
	m.settle()
	// the addonset controller withdraws what its set does not reach any more
	d := m.deliveryIn("a-team", "a")
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.Withdrawal = d.UID })
	m.quietly(func() { m.must(m.api.Delete(t.Context(), d)) })
	m.settle()
	d = m.deliveryIn("a-team", "a")
	if hr := m.release("a-team", "web"); hr != nil {
		t.Errorf("the add-on is left with Flux (deleted: %v), orphans %v, told %v, delivery %+v", hr.DeletionTimestamp, m.orphans(testCluster), m.told, d)
	}
	secret := &corev1.Secret{}
	if err := m.api.Get(t.Context(), types.NamespacedName{Namespace: "a-team", Name: identity.KubeconfigCopy("hub", testCluster)}, secret); !apierrors.IsNotFound(err) {
		t.Errorf("the token is still there: %v %v", secret.Labels, err)
	}
}

// An edit of a Team that is not valid changes nothing.
func TestTeamBrokenTeam(t *testing.T) {
	m := newFixture(t, append(inTeam("a", "a", releaseAddon("web")), teamOf("a"), registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))...)
	m.settle()
	t1 := &hubv1.Team{}
	edit(m, "flux-system", "a", t1, func(team *hubv1.Team) { team.Spec.Namespaces[0].Name = "kube-system" })
	m.settle()
	if m.release("a-team", "web") == nil || m.deliveryIn("a-team", "a") == nil || len(m.told) > 0 {
		t.Errorf("gone; told %v", m.told)
	}
	t.Logf("%+v", m.deliveryIn("a-team", "a").Status)
	writes := m.writes
	m.settle()
	if m.writes != writes {
		t.Errorf("%d writes for nothing", m.writes-writes)
	}
	edit(m, "flux-system", "a", t1, func(team *hubv1.Team) { team.Spec.Namespaces[0].Name = "a-apps" })
	m.settle()
	for _, a := range m.deliveryIn("a-team", "a").Status.Addons {
		if a.State != hubv1.AddonReady {
			t.Errorf("%+v", a)
		}
	}
}

// The first object is made, and the hub crashes before it reports. Then the Team loses the cluster.
func TestTeamCrashBeforeReport(t *testing.T) {
	m := newFixture(t, append(inTeam("a", "a", releaseAddon("web")), teamOf("a"), registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))...)
	m.settle()
	d := m.deliveryIn("a-team", "a")
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Status = hubv1.AddonDeliveryStatus{} })
	m.restart()
	edit(m, "flux-system", "a", &hubv1.Team{}, func(team *hubv1.Team) { team.Spec.ClusterSelector.MatchLabels["env"] = "staging" })
	d = m.deliveryIn("a-team", "a")
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.Withdrawal = d.UID })
	m.quietly(func() { m.must(m.api.Delete(t.Context(), d)) })
	m.settle()
	if hr := m.release("a-team", "web"); hr != nil {
		t.Errorf("the add-on is left with Flux (deleted: %v), orphans %v, told %v, delivery %+v", hr.DeletionTimestamp, m.orphans(testCluster), m.told, m.deliveryIn("a-team", "a"))
	}
}

// A namespace of a plain tenant, with an admin's kubeconfig beside its sets, becomes a Team's. Until its rights are Ready, what the team writes goes to the
// cluster with the admin's kubeconfig.
func TestTeamTeamWritesWithTheAdminsCopy(t *testing.T) {
	objects := addonsOf("a", "1", releaseAddon("web", map[string]any{"targetNamespace": "a-apps"}))
	objects = append(objects, deliveredTo(testCluster, "a", "1"))
	for _, o := range objects {
		o.SetNamespace("fleet") // where the cluster is registered
	}
	m := newFixture(t, append(objects, registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))...)
	m.settle()
	of := teamOf("a")
	of.Spec.HubNamespaces, of.Spec.Namespaces[0].Name = []string{"fleet"}, "a-apps"
	m.quietly(func() { m.must(m.api.Create(t.Context(), of)) })
	m.settle()
	next := addonsOf("a", "2", releaseAddon("web", map[string]any{"values": map[string]any{"written": "by the team"}, "targetNamespace": "a-apps"}))
	next[1].SetNamespace("fleet")
	m.quietly(func() { m.must(m.api.Create(t.Context(), next[1])) })
	d := m.deliveryIn("fleet", "a")
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf("a", "2") })
	m.settle()
	hr, secret := m.release("fleet", "web"), &corev1.Secret{}
	m.must(m.api.Get(t.Context(), types.NamespacedName{Namespace: "fleet", Name: identity.KubeconfigCopy("hub", testCluster)}, secret))
	if hr == nil || hr.Spec.Values != nil || secret.Labels[hubv1.CopyLabel] != "true" {
		t.Errorf("Flux got %+v, with the admin's kubeconfig", hr)
	}
}

// The cluster behind the registration is another one now, and the team's objects of the former one have gone. The copy still has the token of the former
// cluster: Flux is not given a new object before there is one of this cluster.
func TestTeamCopyOfTheFormerCluster(t *testing.T) {
	m := newFixture(t, append(inTeam("a", "a", releaseAddon("web")), teamOf("a"), registered(testCluster, "c2"), kubeconfigSecret(testCluster, "t0"))...)
	old := &corev1.Secret{}
	edit(m, "a-team", identity.KubeconfigCopy("hub", testCluster), old, func(s *corev1.Secret) {
		s.Annotations[hubv1.FingerprintAnnotation] = identity.Hash(32, "team", "flux-system", "a", "target", "c1")
	})
	m.must(m.reconcile(testCluster))
	m.must(m.reconcile(testCluster))
	if m.release("a-team", "web") != nil {
		t.Error("Flux goes to the new cluster with the token of the old one")
	}
}
