// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/inventory"
	"github.com/chandler-hub/chandler/internal/must"
)

func TestStatus(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	reg := func(change func(*hubv1.ClusterRegistration)) *hubv1.ClusterRegistration {
		r := &hubv1.ClusterRegistration{}
		r.Namespace, r.Name, r.UID, r.CreationTimestamp = "fleet", "w1", "u1", at
		change(r)
		return r
	}
	answers := func(r *hubv1.ClusterRegistration) {
		nodes := int32(3)
		r.Status.ClusterUID, r.Status.Provider, r.Status.KubernetesVersion, r.Status.Nodes = "c1", "Secret", "v1.36.3", &nodes
		r.Status.Conditions = []metav1.Condition{{Type: hubv1.ReachableCondition, Status: metav1.ConditionTrue, Reason: hubv1.ProbeSucceededReason,
			Message: "it answers", LastTransitionTime: at}}
		r.Status.Credential = &hubv1.CredentialStatus{SecretName: "s", Key: "value", Context: "admin"}
	}
	access := &clientcmdv1.Cluster{Server: "https://192.0.2.7:6443", CertificateAuthorityData: []byte("CA")}
	for name, tc := range map[string]struct {
		reg    *hubv1.ClusterRegistration
		access *clientcmdv1.Cluster
		want   string
	}{
		"New": {reg: reg(func(*hubv1.ClusterRegistration) {}), want: `
conditions: [{type: ControlPlaneHealthy, status: Unknown, reason: NotProbed, message: the hub has not asked the cluster yet, lastTransitionTime: "2026-11-24T12:00:00Z"}]
version: {}
`},
		"Answers": {reg: reg(answers), access: access, want: `
conditions: [{type: ControlPlaneHealthy, status: "True", reason: ProbeSucceeded, message: it answers, lastTransitionTime: "2026-11-24T12:00:00Z"}]
version: {kubernetes: v1.36.3}
properties:
- {name: chandler.dev/cluster-uid, value: c1, lastObservedTime: null}
- {name: chandler.dev/provider, value: Secret, lastObservedTime: null}
- {name: chandler.dev/nodes, value: "3", lastObservedTime: null}
accessProviders:
- name: kubeconfig-secretreader
  cluster:
    server: https://192.0.2.7:6443
    certificate-authority-data: Q0E=
    extensions: [{name: client.authentication.k8s.io/exec, extension: {name: s, key: value, namespace: fleet, context: admin}}]
`},
		"WithoutSecret": {reg: reg(func(r *hubv1.ClusterRegistration) {
			answers(r)
			r.Status.Credential.SecretName = "" // a workload identity
		}), access: access, want: `
conditions: [{type: ControlPlaneHealthy, status: "True", reason: ProbeSucceeded, message: it answers, lastTransitionTime: "2026-11-24T12:00:00Z"}]
version: {kubernetes: v1.36.3}
properties:
- {name: chandler.dev/cluster-uid, value: c1, lastObservedTime: null}
- {name: chandler.dev/provider, value: Secret, lastObservedTime: null}
- {name: chandler.dev/nodes, value: "3", lastObservedTime: null}
`},
	} {
		t.Run(name, func(t *testing.T) {
			got := must.Get(yaml.Marshal(inventory.Status(tc.reg, tc.access))).Or(t)
			must.Equal(t, values(t, tc.want), values(t, string(got)))
		})
	}
}

func values(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	must.Do(t, yaml.Unmarshal([]byte(text), &out))
	return out
}

// TestSpec: a profile has the labels of its registration, but for marks of other tools and the one that would register it.
func TestSpec(t *testing.T) {
	r := &hubv1.ClusterRegistration{}
	r.Namespace, r.Name, r.UID = "fleet", "w1", "u1"
	r.Labels = map[string]string{"env": "prod", hubv1.RegisterLabel: "true", hubv1.ProviderLabel: "Secret", "kapp.k14s.io/app": "1"}
	p := inventory.Spec(r, "east")
	must.Equal(t, map[string]string{"env": "prod", hubv1.ProviderLabel: "Secret", "x-k8s.io/cluster-manager": "chandler-east"}, p.Labels)
	if p.Spec.ClusterManager.Name != "chandler-east" || inventory.Spec(r, "chandler").Spec.ClusterManager.Name != "chandler" {
		t.Errorf("cluster manager %q", p.Spec.ClusterManager.Name)
	}
	p.OwnerReferences = nil // by somebody
	if !inventory.Owned(p, "east") || inventory.Owned(p, "west") {
		t.Error("it is not the hub's, or another one's")
	}
	if r.Labels[hubv1.RegisterLabel] != "true" {
		t.Error("the registration was changed")
	}
}
