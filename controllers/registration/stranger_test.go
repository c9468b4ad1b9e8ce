// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

// A tenant who may write ClusterRegistrations in his own namespace, and has no way into the platform's cluster, has what is delivered there orphaned instead
// of uninstalled when the platform unregisters it: he writes down its name. Nothing has ever been Ready through his registration.
func TestAStrangersRegistrationDoesNotStay(t *testing.T) {
	scheme := hubscheme.New()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	w := &hubv1.WorkloadIdentity{Provider: "aws", Cluster: "arn:aws:eks:eu-west-1:123456789012:cluster/prod", ServiceAccountName: "sa"}
	if _, err := workloadidentity.Check(w, kubeconfig.Rules{}); err != nil {
		t.Fatal(err)
	}
	of := func(namespace, name string) *hubv1.ClusterRegistration {
		r := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		r.Spec.KubeConfig = &hubv1.KubeConfigSource{WorkloadIdentity: w}
		r.Status.Credential = &hubv1.CredentialStatus{WorkloadIdentity: "aws", TargetFingerprint: workloadidentity.Cluster(w)}
		return r
	}
	platforms, tenants := of("flux-system", "prod"), of("evil", "anything")
	platforms.UID, tenants.UID = "platforms", "tenants"
	platforms.Finalizers, platforms.DeletionTimestamp = []string{hubv1.Finalizer}, &metav1.Time{Time: now}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(platforms, tenants).WithStatusSubresource(&hubv1.ClusterRegistration{}).
		WithIndex(platforms, index.ClusterID, func(o client.Object) []string { return []string{o.(*hubv1.ClusterRegistration).Status.ClusterID()} }).Build()
	r := &Reconciler{
		Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(now),
		Config: &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}},
	}
	if why, err := r.stayer(t.Context(), platforms); err != nil || why != "" {
		t.Errorf("nothing is uninstalled: %s, %v", why, err)
	}
}
