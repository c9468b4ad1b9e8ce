// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/tree"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(-d))) }

func ready(status metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: "Ready", Status: status, Reason: reason}}
}

func delivery(set, cluster string, conditions []metav1.Condition, addons ...hubv1.AddonStatus) hubv1.AddonDelivery {
	d := hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: set + "-" + cluster}}
	d.Spec = hubv1.AddonDeliverySpec{
		RegistrationRef: hubv1.RegistrationReference{Namespace: "fleet", Name: cluster},
		AddonSetRef:     hubv1.DeliveredSetReference{Name: set}, RevisionName: set + "-1111111111-e3",
	}
	d.Status = hubv1.AddonDeliveryStatus{Conditions: conditions, Addons: addons, AddonCounts: &hubv1.ObjectCounts{Total: 2, Ready: 1, Summary: "1/2"}}
	return d
}

func print(t *testing.T, n *tree.Node) string {
	t.Helper()
	var b strings.Builder
	if err := n.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCluster: each add-on has its Flux object, also one that is not there, and what no delivery reports is not forgotten.
func TestCluster(t *testing.T) {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "berlin"}}
	reg.Status = hubv1.ClusterRegistrationStatus{KubernetesVersion: "v1.36.3", Conditions: ready("False", "AddonsFailed")}
	in := &tree.Cluster{Registration: reg, Now: now}
	if got, want := print(t, in.Tree()), "ClusterRegistration fleet/berlin  Ready=False (AddonsFailed)  Reachable=Unknown  v1.36.3\n"; got != want {
		t.Errorf("of an empty cluster it says %q", got)
	}
	in.Deliveries = []hubv1.AddonDelivery{
		delivery("team", "berlin", nil),
		delivery("base", "berlin", ready("False", "AddonsFailed"),
			hubv1.AddonStatus{Name: "web", Kind: "HelmRelease", Object: "base-berlin-web", State: hubv1.AddonFailed, Since: at(time.Minute), Version: "1.2.3", Message: "no such\n\x1b[31mimage"},
			hubv1.AddonStatus{Name: "dns", Kind: "Kustomization", Object: "base-berlin-dns", State: hubv1.AddonPaused},
			hubv1.AddonStatus{Name: "log", State: hubv1.AddonExcluded},
			hubv1.AddonStatus{Name: "lost", Kind: "HelmRelease", Object: "base-berlin-lost", State: hubv1.AddonProgressing}),
	}
	in.Releases = []helmv2.HelmRelease{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "stray"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base-berlin-web"}, Status: helmv2.HelmReleaseStatus{Conditions: ready("False", "InstallFailed")}},
	}
	in.Kustomizations = []kustomizev1.Kustomization{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base-berlin-dns", Annotations: map[string]string{hubv1.SuspendedAnnotation: "Paused"}},
		Spec:       kustomizev1.KustomizationSpec{Suspend: true}, Status: kustomizev1.KustomizationStatus{Conditions: ready("True", "ReconciliationSucceeded")},
	}}
	want := `ClusterRegistration fleet/berlin  Ready=False (AddonsFailed)  Reachable=Unknown  v1.36.3
├─ AddonSet flux-system/base  Ready=False (AddonsFailed)  1/2 add-ons Ready  base-1111111111-e3
│  ├─ web  Failed  60s  1.2.3  no such [31mimage
│  │  └─ HelmRelease flux-system/base-berlin-web  Ready=False (InstallFailed)
│  ├─ dns  Paused
│  │  └─ Kustomization flux-system/base-berlin-dns  Ready=True (ReconciliationSucceeded)  suspended by the hub: Paused
│  ├─ log  Excluded
│  └─ lost  Progressing
│     └─ HelmRelease flux-system/base-berlin-lost  is not there
├─ AddonSet flux-system/team  Ready=Unknown  1/2 add-ons Ready  team-1111111111-e3
└─ Flux objects that no delivery reports
   └─ HelmRelease flux-system/stray  Ready=Unknown
`
	must.Equal(t, want, print(t, in.Tree()))
	in.Releases, in.Kustomizations, in.FluxUnread = nil, nil, true
	if got := print(t, in.Tree()); !strings.Contains(got, "base-berlin-lost  you may not read it") {
		t.Errorf("what could not be read is not told:\n%s", got)
	}
}
