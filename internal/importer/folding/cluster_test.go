// SPDX-License-Identifier: Apache-2.0

package folding_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/importer/folding"
	"github.com/chandler-hub/chandler/internal/origin"
)

// forCluster is a Kustomization with a kubeconfig in a Secret, which is written SECRET or SECRET:KEY.
func forCluster(name, secret string) string {
	secret, key, _ := strings.Cut(secret, ":")
	return fmt.Sprintf("---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s, namespace: flux-system}\n"+
		"spec:\n  interval: 5m\n  path: ./%[1]s\n  prune: true\n  sourceRef: {kind: GitRepository, name: fleet}\n"+
		"  kubeConfig: {secretRef: {name: %s, key: %q}}\n", name, secret, key)
}

// someone is a credential of a user for a cluster.
func someone(user, cluster string) folding.Target {
	return folding.Target{Fingerprint: cluster, Credential: cluster + " as " + user}
}

// registered is the registration of a Secret, or of a TenantControlPlane if the name says so.
func registered(name string, kind origin.Kind, from string, credential *hubv1.CredentialStatus) hubv1.ClusterRegistration {
	ref := kind.Reference(from)
	return hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name},
		Spec: hubv1.ClusterRegistrationSpec{OriginRef: &ref}, Status: hubv1.ClusterRegistrationStatus{Credential: credential}}
}

// usedFrom is the credential of a registration.
func usedFrom(t folding.Target, secret, key string) *hubv1.CredentialStatus {
	return &hubv1.CredentialStatus{SecretName: secret, Key: key, Fingerprint: t.Credential, TargetFingerprint: t.Fingerprint}
}

// twins says why objects of clusters with one name are left.
func twins(one, other string) string {
	return fmt.Sprintf("its cluster would be called flux-system/edge1, and so would another: %s and %s. The hub gives one of them another name. "+
		"Register both, and import then", one, other)
}

// TestFoldWhoseCluster: an object is folded only to the cluster that it is for, and only as the user that it is applied as.
func TestFoldWhoseCluster(t *testing.T) {
	admin, team := someone("admin", "one"), someone("team", "one")
	const rights = ": the hub has one credential for a cluster, and would apply the object with the rights of that one"
	tenant := "---\napiVersion: kamaji.clastix.io/v1alpha1\nkind: TenantControlPlane\nmetadata: {name: edge1, namespace: flux-system}\n"
	owned := "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: NAME\n  namespace: flux-system\n  ownerReferences: [{apiVersion: kamaji.clastix.io/v1alpha1, " +
		"kind: TenantControlPlane, name: edge1, uid: x}]\n"
	cluster := func(controlPlane string) string {
		return "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: edge1, namespace: flux-system}\n" +
			"spec: {controlPlaneRef: " + controlPlane + "}\n"
	}
	viaBoth := forCluster("admin", "edge1-admin-kubeconfig:super-admin.svc") + forCluster("plain", "edge1-kubeconfig")
	for name, tc := range map[string]struct {
		objects       string
		targets       map[string]folding.Target // by SECRET/KEY
		registrations []hubv1.ClusterRegistration
		// folded are the names of the objects that are folded, and their clusters.
		folded []string
		left   map[string]string
	}{
		"OneUser": {forCluster("base", "edge1") + forCluster("more", "copy"), map[string]folding.Target{"edge1/": admin, "copy/": admin}, nil,
			[]string{"base", "more", "on edge1"}, nil},
		"TwoUsers": {forCluster("base", "edge1") + forCluster("team", "edge1-team"), map[string]folding.Target{"edge1/": admin, "edge1-team/": team}, nil,
			[]string{"base", "on edge1"},
			map[string]string{"team": `its kubeconfig (Secret "edge1-team") is of another user than that of cluster flux-system/edge1 (Secret "edge1")` + rights}},
		"AnotherUserThanTheHub": {forCluster("team", "edge1-team"), map[string]folding.Target{"edge1-team/": team},
			[]hubv1.ClusterRegistration{registered("edge1", origin.Secret, "edge1", usedFrom(admin, "edge1", "value"))}, nil,
			map[string]string{"team": `its kubeconfig (Secret "edge1-team") is of another user than that of ClusterRegistration flux-system/edge1` + rights}},
		"TheUserOfTheHub": {forCluster("base", "copy"), map[string]folding.Target{"copy/": admin},
			[]hubv1.ClusterRegistration{registered("edge1", origin.Secret, "edge1", usedFrom(admin, "edge1", "value"))},
			[]string{"base", "on edge1"}, nil},
		"NotReadAndTheSecretOfTheHub": {forCluster("base", "edge1"), nil,
			[]hubv1.ClusterRegistration{registered("edge1", origin.Secret, "edge1", usedFrom(admin, "edge1", "value"))},
			[]string{"base", "on edge1"}, nil},
		"NotReadAndAnotherKey": {forCluster("team", "edge1:team"), nil,
			[]hubv1.ClusterRegistration{registered("edge1", origin.Secret, "edge1", usedFrom(admin, "edge1", "value"))}, nil,
			map[string]string{"team": `its kubeconfig (Secret "edge1", key "team") was not read, and ClusterRegistration flux-system/edge1 has its own ` +
				`from Secret "edge1", key "value". It may be of another user` + rights}},
		"TwoKeysOfACopy": {forCluster("base", "edge1") + forCluster("more", "copy:a") + forCluster("other", "copy:b"),
			map[string]folding.Target{"edge1/": admin, "copy/a": admin, "copy/b": someone("admin", "two")}, nil,
			[]string{"base", "more", "on copy", "on edge1", "other"}, nil},
		// The hub would give one of them another name, and nobody knows which.
		"TwoOfOneName": {tenant + forCluster("on-tenant", "edge1-admin-kubeconfig:admin.conf") + forCluster("on-other", "edge1") + forCluster("third", "edge2"),
			map[string]folding.Target{"edge1-admin-kubeconfig/admin.conf": admin, "edge1/": someone("admin", "two")}, nil,
			[]string{"on edge2", "third"}, map[string]string{
				"on-other": twins("Secret edge1", "TenantControlPlane edge1"), "on-tenant": twins("Secret edge1", "TenantControlPlane edge1")}},
		"TwoOfOneNameOneWithoutObjects": {tenant + forCluster("other", "edge1") + strings.Replace(forCluster("a", "edge1-admin-kubeconfig:admin.conf"),
			"  interval", "  suspend: true\n  interval", 1), nil, nil, []string{"on edge1", "other"}, map[string]string{
			"a": "is suspended, and an add-on is not: `flux resume` it first, or leave it as it is"}},
		// Only the one that has more is registered when the sets come.
		"TwoOfOneNameOneLarger": {tenant + forCluster("a", "edge1-admin-kubeconfig:admin.conf") + forCluster("b", "edge1-admin-kubeconfig:admin.conf") +
			forCluster("on-other", "edge1"), nil, nil, []string{"a", "b", "on edge1"},
			map[string]string{"on-other": twins("Secret edge1", "TenantControlPlane edge1")}},
		"OfClusterAPI": {cluster("{kind: KamajiControlPlane, name: edge1}") + tenant + viaBoth, nil, nil, []string{"admin", "on edge1", "plain"}, nil},
		"OfClusterAPIByItsOwner": {cluster("") + strings.Replace(tenant, "flux-system", "flux-system, ownerReferences: [{kind: KamajiControlPlane, name: edge1}]", 1) +
			viaBoth, nil, nil, []string{"admin", "on edge1", "plain"}, nil},
		"OfClusterAPIByItsLabel": {cluster("") + strings.Replace(tenant, "flux-system", "flux-system, labels: {cluster.x-k8s.io/cluster-name: edge1}", 1) +
			viaBoth, nil, nil, []string{"admin", "on edge1", "plain"}, nil},
		"OfClusterAPIAsItSeems": {cluster("") + viaBoth, nil, nil, []string{"admin", "on edge1", "plain"}, nil},
		"OfClusterAPIElsewhere": {cluster("{kind: KubeadmControlPlane, name: edge1}") + viaBoth, nil, nil, nil, map[string]string{
			"admin": twins("Cluster edge1", "TenantControlPlane edge1"), "plain": twins("Cluster edge1", "TenantControlPlane edge1")}},
		"OfClusterAPIAtOneAddress": {cluster("") + viaBoth, map[string]folding.Target{"edge1-admin-kubeconfig/super-admin.svc": admin, "edge1-kubeconfig/": admin}, nil,
			[]string{"admin", "on edge1", "plain"}, nil},
		"OfClusterAPIAtTwoAddresses": {cluster("") + viaBoth, map[string]folding.Target{"edge1-admin-kubeconfig/super-admin.svc": someone("admin", "svc"), "edge1-kubeconfig/": admin},
			nil, []string{"on edge1", "plain"}, map[string]string{
				"admin": `its kubeconfig (Secret "edge1-admin-kubeconfig") is of another user than that of cluster flux-system/edge1 (Secret "edge1-kubeconfig")` + rights}},
		"OfClusterAPIWithTwoKeys": {cluster("") + forCluster("a", "edge1-admin-kubeconfig:admin.conf") + forCluster("b", "edge1-admin-kubeconfig:super-admin.conf"), nil, nil,
			[]string{"a", "on edge1"}, map[string]string{"b": `spec.kubeConfig.secretRef.key is "super-admin.conf", and other objects take "admin.conf" of the same ` +
				`Secret "edge1-admin-kubeconfig": the hub takes one of them for the cluster. Write the same key into all of them`}},
		"NameOfARegistrationWithAnotherOrigin": {forCluster("on-other", "edge1"), map[string]folding.Target{"edge1/": admin},
			[]hubv1.ClusterRegistration{registered("edge1", origin.Kamaji, "edge1", nil)}, nil,
			map[string]string{"on-other": twins("ClusterRegistration edge1", "Secret edge1")}},
		"NameOfARegistrationThatLeadsElsewhere": {forCluster("on-other", "edge1"), map[string]folding.Target{"edge1/": someone("admin", "two")},
			[]hubv1.ClusterRegistration{registered("edge1", origin.Kamaji, "edge1", usedFrom(admin, "edge1-admin-kubeconfig", "admin.conf"))}, nil,
			map[string]string{"on-other": twins("ClusterRegistration edge1", "Secret edge1")}},
		"BesideARegistrationOfThatName": {tenant + forCluster("on-tenant", "edge1-admin-kubeconfig:admin.conf") + forCluster("on-other", "edge1"), nil,
			[]hubv1.ClusterRegistration{registered("edge1", origin.Kamaji, "edge1", usedFrom(admin, "edge1-admin-kubeconfig", "admin.conf"))},
			[]string{"on edge1", "on-tenant"}, map[string]string{"on-other": twins("ClusterRegistration edge1", "Secret edge1")}},
		"OneRegistrationByItsSecretAndByACopy": {forCluster("base", "edge1") + forCluster("more", "copy"), map[string]folding.Target{"copy/": admin},
			[]hubv1.ClusterRegistration{registered("edge1", origin.Secret, "edge1", usedFrom(admin, "edge1", "value"))},
			[]string{"base", "more", "on edge1"}, nil},
		// The hub takes the Secret that Kamaji makes, whoever else says that a Secret is the tenant's.
		"SaysThatATenantOwnsIt": {tenant + strings.ReplaceAll(owned, "NAME", "edge1-team") + forCluster("team", "edge1-team"), nil, nil,
			[]string{"on edge1-team", "team"}, nil},
		"OfATenant": {tenant + strings.ReplaceAll(owned, "NAME", "edge1-admin-kubeconfig") + forCluster("base", "edge1-admin-kubeconfig:admin.conf"), nil, nil,
			[]string{"base", "on edge1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, tc.objects)
			in.Targets = map[string]folding.Target{}
			for at, target := range tc.targets {
				in.Targets["flux-system/"+at] = target
			}
			in.Registrations = tc.registrations
			out := folding.Fold(in)
			var got []string
			for _, o := range out.Folded {
				got = append(got, o.GetName())
			}
			for _, c := range out.Clusters {
				got = append(got, "on "+c.Name)
			}
			slices.Sort(got)
			if d := cmp.Diff(tc.folded, got); d != "" {
				t.Errorf("other objects or clusters are folded (-want +got):\n%s", d)
			}
			left := map[string]string{}
			for _, l := range out.Left {
				left[l.GetName()] = l.Reason
			}
			if len(left) > 0 || len(tc.left) > 0 {
				if d := cmp.Diff(tc.left, left); d != "" {
					t.Errorf("other objects are left (-want +got):\n%s", d)
				}
			}
		})
	}
}

// TestFoldOfVariables: `${` in a file may be Flux's to replace. As text, it would reach the release that is taken over.
func TestFoldOfVariables(t *testing.T) {
	const release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: flux-system$UID}\nspec:\n  interval: 5m\n" +
		"  chart: {spec: {chart: web, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}}\n  kubeConfig: {secretRef: {name: edge1}}\n  values: {host: \"web.${domain}\"}\n"
	for name, tc := range map[string]struct {
		uid   string
		built bool
		left  bool
	}{"AFile": {left: true}, "Built": {built: true}, "PrintedByTheAPIServer": {uid: ", uid: u"}} {
		t.Run(name, func(t *testing.T) {
			in := input(t, strings.Replace(release, "$UID", tc.uid, 1))
			in.Objects[0].Built = tc.built
			out := folding.Fold(in)
			if len(out.Left) != map[bool]int{true: 1}[tc.left] || tc.left && !strings.Contains(out.Left[0].String(), "holds ${, which Flux replaces if spec.postBuild") {
				t.Errorf("left %v", out.Left)
			}
		})
	}
}
