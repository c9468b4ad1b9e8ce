// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

func TestByFlux(t *testing.T) {
	was := func(s metav1.ConditionStatus, reason string) *metav1.Condition {
		return &metav1.Condition{Status: s, Reason: reason}
	}
	for name, tc := range map[string]struct {
		reach fluxstate.Reach
		was   *metav1.Condition
		want  metav1.Condition
	}{
		"New":             {fluxstate.ReachNone, nil, *was("Unknown", "NotProbed")},
		"FirstTries":      {fluxstate.ReachUnchanged, nil, *was("Unknown", "NotProbed")},
		"StillTrying":     {fluxstate.ReachUnchanged, was("Unknown", "NotProbed"), *was("Unknown", "NotProbed")},
		"Succeeds":        {fluxstate.ReachSucceeds, was("Unknown", "NotProbed"), *was("True", "FluxSucceeds")},
		"Fails":           {fluxstate.ReachFails, was("True", "FluxSucceeds"), *was("False", "FluxFails")},
		"TriesAfterGood":  {fluxstate.ReachUnchanged, was("True", "FluxSucceeds"), *was("True", "FluxSucceeds")},
		"TriesAfterBad":   {fluxstate.ReachUnchanged, was("False", "FluxFails"), *was("False", "FluxFails")},
		"Emptied":         {fluxstate.ReachNone, was("True", "FluxSucceeds"), *was("Unknown", "NotProbed")},
		"ProbedBefore":    {fluxstate.ReachUnchanged, was("True", "ProbeSucceeded"), *was("Unknown", "NotProbed")},
		"ProbeFailedOnce": {fluxstate.ReachUnchanged, was("False", "DialTimeout"), *was("Unknown", "NotProbed")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := byFlux(tc.reach, tc.was); got.Status != tc.want.Status || got.Reason != tc.want.Reason {
				t.Errorf("got %s (%s), want %s (%s)", got.Status, got.Reason, tc.want.Status, tc.want.Reason)
			}
		})
	}
}

// TestIdentityAfterAKubeconfig: what a probe found out with the kubeconfig before says nothing any more.
func TestIdentityAfterAKubeconfig(t *testing.T) {
	nodes := int32(3)
	reg := &hubv1.ClusterRegistration{Status: hubv1.ClusterRegistrationStatus{
		ClusterUID: "u", KubernetesVersion: "v1.33.0", Nodes: &nodes, Endpoint: "https://old:6443",
		Credential: &hubv1.CredentialStatus{SecretName: "s", Key: "value", Fingerprint: "f", TargetFingerprint: "t", ExpirationTime: &metav1.Time{}},
	}}
	w := &hubv1.WorkloadIdentity{Provider: "generic", Address: "https://new.example.org:6443", ServiceAccountName: "deployer"}
	access := must.Get(workloadidentity.Check(w, kubeconfig.Rules{AllowMissingCA: true})).Or(t)
	r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	r.publishIdentity(reg, w, access)
	s := reg.Status
	if s.ClusterUID != "" || s.KubernetesVersion != "" || s.Nodes != nil || s.Endpoint != "https://new.example.org:6443" {
		t.Errorf("it still knows %+v", s)
	}
	want := hubv1.CredentialStatus{WorkloadIdentity: "generic", Fingerprint: access.Fingerprint(), TargetFingerprint: workloadidentity.Cluster(w)}
	if *s.Credential != want || !s.UsesWorkloadIdentity() {
		t.Errorf("the credential is %+v", *s.Credential)
	}
	if c := status.Find(reg, hubv1.KubeConfigValidCondition); c.Status != metav1.ConditionTrue {
		t.Errorf("KubeConfigValid is %+v", c)
	}
}

// TestEvidenceOfStrangers: a HelmRelease says whether a cluster is reached if it lies where a set that reaches the cluster may be. Anybody can write the label
// and the annotation, and have Flux succeed elsewhere.
func TestEvidenceOfStrangers(t *testing.T) {
	for namespace, want := range map[string]metav1.ConditionStatus{
		"fleet": metav1.ConditionTrue, "platform": metav1.ConditionTrue, "stranger": metav1.ConditionUnknown,
	} {
		t.Run(namespace, func(t *testing.T) {
			w := &hubv1.WorkloadIdentity{Provider: "generic", Address: "https://prod.example.org:6443", ServiceAccountName: "deployer"}
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}}
			reg.Status.Credential = &hubv1.CredentialStatus{WorkloadIdentity: "generic", TargetFingerprint: workloadidentity.Cluster(w)}
			hr := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "any", Generation: 1,
				Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", client.ObjectKeyFromObject(reg))},
				Annotations: map[string]string{hubv1.ClusterUIDAnnotation: reg.Status.ClusterID()},
			}}
			hr.Spec.KubeConfig = &fluxmeta.KubeConfigReference{ConfigMapRef: &fluxmeta.LocalObjectReference{Name: "any"}}
			hr.Status.ObservedGeneration = 1
			hr.Status.Conditions = []metav1.Condition{{Type: hubv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded", ObservedGeneration: 1}}
			r := &Reconciler{
				Client: indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(hr).Build(), Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)),
				Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"platform"}}},
			}
			must.Do(t, r.evidence(t.Context(), reg))
			if c := status.Find(reg, hubv1.ReachableCondition); c.Status != want {
				t.Errorf("Reachable is %s (%s), want %s", c.Status, c.Reason, want)
			}
		})
	}
}
