// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/serving"
	"github.com/chandler-hub/chandler/internal/status"
)

func TestProbeKeysAreTakenApart(t *testing.T) {
	for _, key := range []types.NamespacedName{{Namespace: "tenants", Name: "tenant1"}, {Namespace: "a", Name: "b.c-d"}} {
		if got := registrationOf(probeKey(key, "admin.conf")); got != key {
			t.Errorf("got %v, want %v", got, key)
		}
	}
	if got := registrationOf("nonsense"); got != (types.NamespacedName{}) {
		t.Errorf("got %v of nonsense", got)
	}
}

func TestKubernetesMinor(t *testing.T) {
	for version, want := range map[string]string{"v1.33.4": "1.33", "v1.30.2+k3s1": "1.30", "v1.31.0-gke.100": "1.31", "": "", "v0.0.0-master+$Format:%H$": "0.0"} {
		if got := kubernetesMinor(version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}

// TestNothingStaysInThePool: a kubeconfig that is gone is probed no more.
func TestNothingStaysInThePool(t *testing.T) {
	var p notes
	var removed []string
	remove := func(k string) { removed = append(removed, k) }
	key := types.NamespacedName{Namespace: "tenants", Name: "tenant1"}
	p.probes(key, []candidate{{key: "admin.svc"}, {key: "admin.conf"}}, remove)
	p.probes(key, []candidate{{key: "admin.conf"}}, remove)
	p.probes(key, nil, remove)
	if want := []string{"tenants/tenant1/admin.svc", "tenants/tenant1/admin.conf"}; !slices.Equal(removed, want) {
		t.Errorf("removed %v, want %v", removed, want)
	}
	if all := p.of.All(); len(all) > 0 {
		t.Errorf("remembers %v", all)
	}
}

// TestSetResultsAreShort: a set lists a thousand clusters by name, and does not select a hundred others. Each of these says so in a few
// words.
func TestSetResultsAreShort(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("tenant-of-a-long-name-%04d", i)
	}
	byName := func(op metav1.LabelSelectorOperator) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: hubv1.NameLabel, Operator: op, Values: names}}}
	}
	many := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, n := range names {
		many.MatchLabels["example.org/"+n] = "yes"
	}
	var sets []client.Object
	for name, selector := range map[string]*metav1.LabelSelector{"in": byName(metav1.LabelSelectorOpIn), "labels": many} {
		sets = append(sets, &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}, Spec: hubv1.AddonSetSpec{ClusterSelector: selector}})
	}
	r := &Reconciler{Client: indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(sets...).Build(), Clock: clocktesting.NewFakePassiveClock(moment), Config: &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}}}
	for i := range 100 {
		reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: fmt.Sprintf("other-%d", i)}}
		status.Set(reg, hubv1.KubeConfigValidCondition, metav1.ConditionTrue, hubv1.SucceededReason, "", moment)
		status.Set(reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason, "", moment)
		sets := must.Get(r.sets(t.Context(), reg)).Or(t)
		sets.Summarize(reg, serving.Access{}, moment)
		if status.Reason(reg, hubv1.ReadyCondition) != hubv1.NoAddonSetReason {
			t.Fatalf("it says %+v", status.Find(reg, hubv1.ReadyCondition))
		}
		if len(reg.Status.Sets) != 2 {
			t.Fatalf("%d sets are told of, want 2", len(reg.Status.Sets))
		}
		for _, one := range reg.Status.Sets {
			if n := len(one.Result); n > 300 || !strings.HasPrefix(one.Result, "NotSelected: wants ") {
				t.Fatalf("set %s is told of in %d characters: %.100s", one.Name, n, one.Result)
			}
		}
		if raw, err := json.Marshal(reg.Status); err != nil || len(raw) > 3000 {
			t.Fatalf("the status has %d bytes", len(raw))
		}
	}
}
