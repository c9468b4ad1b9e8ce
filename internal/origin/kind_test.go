// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/teardown"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// profile returns a ClusterProfile whose second access provider is configured so.
func profile(config string) string {
	return "{metadata: {name: p1, namespace: tenants}, status: {accessProviders: [{name: google}, {name: kubeconfig-secretreader, cluster: " +
		"{server: 'https://192.0.2.7:6443', extensions: [{name: client.authentication.k8s.io/exec, extension: " + config + "}]}}]}}"
}

func TestKubeConfig(t *testing.T) {
	cases := map[string]struct {
		kind     origin.Kind
		object   string
		want     origin.Source
		notReady string
	}{
		"KamajiReady":       {kind: origin.Kamaji, object: "{metadata: {name: t1}, status: {kubeconfig: {admin: {secretName: t1-admin-kubeconfig}}}}", want: origin.Source{Secret: "t1-admin-kubeconfig", Candidates: []string{"admin.svc", "admin.conf"}}},
		"KamajiKey":         {kind: origin.Kamaji, object: "{metadata: {name: t1, annotations: {kamaji.clastix.io/kubeconfig-secret-key: super-admin.conf}}, status: {kubeconfig: {admin: {secretName: s}}}}", want: origin.Source{Secret: "s", Key: "super-admin.conf"}},
		"KamajiNew":         {kind: origin.Kamaji, object: "{metadata: {name: t1}}", notReady: `TenantControlPlane "t1" has no status.kubeconfig.admin.secretName; it is without a status yet`},
		"KamajiUnknownWord": {kind: origin.Kamaji, object: "{metadata: {name: t1}, status: {kubernetesResources: {version: {status: Hibernating}}}}", notReady: `TenantControlPlane "t1" has no status.kubeconfig.admin.secretName; it is Hibernating`},
		"CAPIv1beta2":       {kind: origin.ClusterAPI, object: "{metadata: {name: c1}, status: {initialization: {controlPlaneInitialized: true}}}", want: origin.Source{Secret: "c1-kubeconfig", Key: "value"}},
		"CAPIv1beta1":       {kind: origin.ClusterAPI, object: "{metadata: {name: c1}, status: {controlPlaneReady: true}}", want: origin.Source{Secret: "c1-kubeconfig", Key: "value"}},
		"CAPINew":           {kind: origin.ClusterAPI, object: "{metadata: {name: c1}, status: {phase: Provisioning}}", notReady: `the control plane of Cluster "c1" is not initialized yet; the Cluster is Provisioning`},
		"Secret":            {kind: origin.Secret, object: "{metadata: {name: s1}}", want: origin.Source{Secret: "s1"}},
		"SecretKey":         {kind: origin.Secret, object: "{metadata: {name: s1, annotations: {chandler.dev/kubeconfig-key: admin}}}", want: origin.Source{Secret: "s1", Key: "admin"}},
		"Profile":           {kind: origin.ClusterProfile, object: profile("{name: s, key: value, context: admin}"), want: origin.Source{Secret: "s", Key: "value", Context: "admin"}},
		"ProfileBeside":     {kind: origin.ClusterProfile, object: profile("{name: s, key: value, namespace: tenants}"), want: origin.Source{Secret: "s", Key: "value"}},
		"ProfileOfOld":      {kind: origin.ClusterProfile, object: strings.Replace(profile("{name: s, key: value}"), "accessProviders", "credentialProviders", 1), want: origin.Source{Secret: "s", Key: "value"}},
		"ProfileNew":        {kind: origin.ClusterProfile, object: "{metadata: {name: p1}}", notReady: `ClusterProfile "p1" has no status.accessProviders yet`},
		"ProfileElsewhere":  {kind: origin.ClusterProfile, object: profile("{name: s, key: value, namespace: kube-system}"), notReady: `ClusterProfile "p1": access provider kubeconfig-secretreader names a Secret in namespace "kube-system"; the hub reads the Secrets of clusters only beside what names them`},
		"ProfileOfCloud":    {kind: origin.ClusterProfile, object: "{metadata: {name: p1}, status: {accessProviders: [{name: google}, {name: aws}]}}", notReady: `ClusterProfile "p1": of its access providers, google, aws, the hub can use none: it runs no program for a credential, and reads one from a Secret if the provider is kubeconfig-secretreader. For a cluster of a cloud, write a ClusterRegistration with spec.originRef: {apiGroup: "multicluster.x-k8s.io", kind: ClusterProfile, name: p1} and the identity to use: spec.kubeConfig.workloadIdentity (docs/sources.md#a-cluster-of-a-cloud)`},
		"ProfileNoKey":      {kind: origin.ClusterProfile, object: profile("{name: s}"), notReady: `ClusterProfile "p1": access provider kubeconfig-secretreader names no Secret: extension client.authentication.k8s.io/exec needs name and key`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.kind.KubeConfig(object(t, tc.object))
			var notReady *origin.NotReady
			if errors.As(err, &notReady) != (tc.notReady != "") || notReady != nil && notReady.Message != tc.notReady {
				t.Fatalf("error %v, want %q", err, tc.notReady)
			}
			must.Equal(t, tc.want, got)
		})
	}
}

func TestJudge(t *testing.T) {
	labelled := func(extra string) string {
		return "{metadata: {name: x, namespace: tenants, labels: {chandler.dev/register: 'true'" + extra + "}}}"
	}
	elsewhere := origin.Verdict{Origin: teardown.OriginUnwanted, Reason: hubv1.NamespaceNotAllowedReason,
		Refused: `Secrets in namespace "tenants" may not register clusters; label chandler.dev/register-secrets: "true" on the Namespace allows it, or --secret-namespaces`}
	cases := map[string]struct {
		kind    origin.Kind
		object  string
		all     []string
		cluster bool
		labels  map[string]string
		want    origin.Verdict
	}{
		"Labelled":                {kind: origin.Kamaji, object: labelled(""), want: origin.Verdict{Origin: teardown.OriginWanted}},
		"NotLabelled":             {kind: origin.Kamaji, object: "{metadata: {name: x}}", want: origin.Verdict{Origin: teardown.OriginUnwanted}},
		"False":                   {kind: origin.Kamaji, object: "{metadata: {name: x, labels: {chandler.dev/register: 'false'}}}", all: []string{"kamaji"}, want: origin.Verdict{Origin: teardown.OriginUnwanted, AtOnce: true}},
		"OtherValue":              {kind: origin.Kamaji, object: "{metadata: {name: x, labels: {chandler.dev/register: 'yes'}}}", want: origin.Verdict{Origin: teardown.OriginUnwanted, Refused: `label chandler.dev/register is "yes"; write "true" or "false"`}},
		"RegisterAll":             {kind: origin.ClusterAPI, object: "{metadata: {name: x}}", all: []string{"kamaji", "capi"}, want: origin.Verdict{Origin: teardown.OriginWanted}},
		"AllOfAnother":            {kind: origin.ClusterAPI, object: "{metadata: {name: x}}", all: []string{"kamaji"}, want: origin.Verdict{Origin: teardown.OriginUnwanted}},
		"Deleting":                {kind: origin.Kamaji, object: "{metadata: {name: x, deletionTimestamp: '2026-11-21T12:00:00Z', labels: {chandler.dev/register: 'true'}}}", want: origin.Verdict{Origin: teardown.OriginDeleting}},
		"TenantOfCAPI":            {kind: origin.Kamaji, object: labelled(", cluster.x-k8s.io/cluster-name: c1"), cluster: true, want: origin.Verdict{Origin: teardown.OriginUnwanted, Refused: `it belongs to Cluster "c1" of Cluster API; label that instead`}},
		"LeftoverLabel":           {kind: origin.Kamaji, object: labelled(", cluster.x-k8s.io/cluster-name: c1"), want: origin.Verdict{Origin: teardown.OriginWanted}},
		"TenantOfKCP":             {kind: origin.Kamaji, object: "{metadata: {name: x, labels: {chandler.dev/register: 'true'}, ownerReferences: [{kind: KamajiControlPlane, name: k1}]}}", want: origin.Verdict{Origin: teardown.OriginUnwanted, Refused: `it belongs to KamajiControlPlane "k1" of Cluster API; label its Cluster instead`}},
		"Secret":                  {kind: origin.Secret, object: "{metadata: {name: x, namespace: flux-system, labels: {chandler.dev/register: 'true'}}}", want: origin.Verdict{Origin: teardown.OriginWanted}},
		"SecretElsewhere":         {kind: origin.Secret, object: labelled(""), want: elsewhere},
		"SecretInLabelled":        {kind: origin.Secret, object: labelled(""), labels: map[string]string{hubv1.RegisterSecretsLabel: "true"}, want: origin.Verdict{Origin: teardown.OriginWanted}},
		"SecretInOtherwise":       {kind: origin.Secret, object: labelled(""), labels: map[string]string{hubv1.RegisterSecretsLabel: "yes"}, want: elsewhere},
		"SecretInForbidden":       {kind: origin.Secret, object: labelled(""), labels: map[string]string{hubv1.RegisterSecretsLabel: "false"}, want: elsewhere},
		"SecretInLabelledOf":      {kind: origin.Secret, object: labelled(", cluster.x-k8s.io/cluster-name: c1"), labels: map[string]string{hubv1.RegisterSecretsLabel: "true"}, cluster: true, want: origin.Verdict{Origin: teardown.OriginUnwanted, Refused: `it belongs to Cluster "c1" of Cluster API; label that instead`}},
		"SecretOfTenant":          {kind: origin.Secret, object: "{metadata: {name: x, namespace: flux-system, labels: {chandler.dev/register: 'true'}, ownerReferences: [{kind: TenantControlPlane, name: t1}]}}", want: origin.Verdict{Origin: teardown.OriginUnwanted, Refused: `it belongs to TenantControlPlane "t1"; label that instead`}},
		"SecretOfGenerator":       {kind: origin.Secret, object: "{metadata: {name: x, namespace: flux-system, labels: {chandler.dev/register: 'true', kamaji.clastix.io/managed-by: g}, ownerReferences: [{kind: TenantControlPlane, name: t1}]}}", want: origin.Verdict{Origin: teardown.OriginWanted}},
		"SecretElsewhereFalse":    {kind: origin.Secret, object: "{metadata: {name: x, namespace: tenants, labels: {chandler.dev/register: 'false'}}}", want: origin.Verdict{Origin: teardown.OriginUnwanted, AtOnce: true}},
		"TenantElsewhere":         {kind: origin.Kamaji, object: labelled(""), labels: map[string]string{hubv1.RegisterSecretsLabel: "false"}, want: origin.Verdict{Origin: teardown.OriginWanted}},
		"SecretDeleted":           {kind: origin.Secret, object: "{metadata: {name: x, namespace: flux-system, deletionTimestamp: '2026-11-21T12:00:00Z', labels: {chandler.dev/register: 'true'}}}", want: origin.Verdict{Origin: teardown.OriginGone, Copied: true}},
		"SecretDeletedElsewhere":  {kind: origin.Secret, object: "{metadata: {name: x, namespace: tenants, deletionTimestamp: '2026-11-21T12:00:00Z', labels: {chandler.dev/register: 'true'}}}", want: origin.Verdict{Origin: teardown.OriginGone}},
		"SecretDeletedUnlabelled": {kind: origin.Secret, object: "{metadata: {name: x, namespace: flux-system, deletionTimestamp: '2026-11-21T12:00:00Z'}}", want: origin.Verdict{Origin: teardown.OriginGone}},
		"SecretDeletedFalse":      {kind: origin.Secret, object: "{metadata: {name: x, namespace: flux-system, deletionTimestamp: '2026-11-21T12:00:00Z', labels: {chandler.dev/register: 'false'}}}", want: origin.Verdict{Origin: teardown.OriginUnwanted, AtOnce: true}},
		"SecretMoving":            {kind: origin.Secret, object: "{metadata: {name: x, namespace: flux-system, deletionTimestamp: '2026-11-21T12:00:00Z', annotations: {clusterctl.cluster.x-k8s.io/delete-for-move: ''}, labels: {chandler.dev/register: 'true'}}}", want: origin.Verdict{Origin: teardown.OriginDeleting}},
		"Moving":                  {kind: origin.ClusterAPI, object: "{metadata: {name: x, annotations: {clusterctl.cluster.x-k8s.io/delete-for-move: ''}, labels: {chandler.dev/register: 'true'}}}", want: origin.Verdict{Origin: teardown.OriginDeleting}},
		"Profile":                 {kind: origin.ClusterProfile, object: labelled(""), labels: map[string]string{hubv1.RegisterSecretsLabel: "true"}, want: origin.Verdict{Origin: teardown.OriginWanted}},
		"ProfileElsewhere": {kind: origin.ClusterProfile, object: labelled(""), want: origin.Verdict{Origin: teardown.OriginUnwanted, Reason: hubv1.NamespaceNotAllowedReason,
			Refused: strings.Replace(elsewhere.Refused, "Secrets", "ClusterProfiles", 1)}},
		"ProfileOfOurs": {kind: origin.ClusterProfile, object: "{metadata: {name: x, namespace: flux-system, labels: {chandler.dev/register: 'true'}, ownerReferences: [{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, name: x}]}}",
			want: origin.Verdict{Origin: teardown.OriginUnwanted, Refused: `the hub itself made it, of ClusterRegistration "x"`}},
		"ProfileOfCloud": {kind: origin.ClusterProfile, object: "{metadata: {name: x, namespace: flux-system, labels: {chandler.dev/register: 'true'}}, status: {accessProviders: [{name: google}]}}",
			want: origin.Verdict{Origin: teardown.OriginUnwanted, Refused: "of its access providers, google, the hub can use none: it runs no program for a credential, and reads one from a " +
				"Secret if the provider is kubeconfig-secretreader. For a cluster of a cloud, write a ClusterRegistration with " +
				"spec.originRef: {apiGroup: \"multicluster.x-k8s.io\", kind: ClusterProfile, name: x} and the identity to use: " +
				"spec.kubeConfig.workloadIdentity (docs/sources.md#a-cluster-of-a-cloud)", NoKubeConfig: true}},
		"ProfileDeleted": {kind: origin.ClusterProfile, object: "{metadata: {name: x, namespace: flux-system, deletionTimestamp: '2026-11-21T12:00:00Z', labels: {chandler.dev/register: 'true'}}}", want: origin.Verdict{Origin: teardown.OriginGone, Copied: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := origin.Policy{RegisterAll: tc.all, SecretNamespaces: []string{"flux-system"}}
			got := p.Judge(tc.kind, object(t, tc.object), origin.Around{NamespaceLabels: tc.labels, ClusterExists: func(string) bool { return tc.cluster }})
			must.Equal(t, tc.want, got)
		})
	}
}

func TestCopiedLabels(t *testing.T) {
	got := origin.CopiedLabels(map[string]string{
		"env": "prod", "kamaji.clastix.io/name": "t1", "topology.kubernetes.io/region": "eu", "app.kubernetes.io/name": "tenant",
		"kustomize.toolkit.fluxcd.io/name": "x", "helm.toolkit.fluxcd.io/name": "x", "argocd.argoproj.io/instance": "x", "applyset.kubernetes.io/part-of": "x",
		"app.kubernetes.io/instance": "x", "app.kubernetes.io/managed-by": "x", "app.kubernetes.io/part-of": "x", "helm.sh/chart": "x", "kapp.k14s.io/app": "x",
		"kluctl.io/discriminator": "x", "objectset.rio.cattle.io/hash": "x", "tanka.dev/environment": "x",
		"chandler.dev/register": "true", "chandler.dev/cluster-key": "x",
	})
	want := map[string]string{"env": "prod", "kamaji.clastix.io/name": "t1", "topology.kubernetes.io/region": "eu", "app.kubernetes.io/name": "tenant"}
	must.Equal(t, want, got)
}
