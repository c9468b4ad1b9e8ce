// SPDX-License-Identifier: Apache-2.0

package teardown_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/teardown"
)

func deliveryOf(set, cluster string, addons ...hubv1.AddonStatus) hubv1.AddonDelivery {
	d := hubv1.AddonDelivery{}
	d.Namespace, d.Spec.AddonSetRef.Name = "flux-system", set
	d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: "fleet", Name: cluster}
	d.Status.Addons = addons
	return d
}

func orphaned(name string, ago time.Duration) hubv1.AddonStatus {
	since := metav1.NewTime(now.Add(-ago))
	return hubv1.AddonStatus{Name: name, State: hubv1.AddonOrphaned, Since: &since}
}

// names are cluster/set/add-on of each orphan, in order.
func names(list []hubv1.Orphan) []string {
	out := []string{}
	for _, o := range list {
		out = append(out, fmt.Sprintf("%s %s %s", o.Cluster[len("fleet/"):], o.AddonSet[len("flux-system/"):], o.Addon))
	}
	return out
}

func TestOrphans(t *testing.T) {
	first := teardown.Orphans(nil, []hubv1.AddonDelivery{deliveryOf("base", "one", orphaned("a", time.Minute), orphaned("b", time.Hour)), deliveryOf("base", "two", orphaned("a", time.Second))}, nil)
	for name, tc := range map[string]struct {
		deliveries []hubv1.AddonDelivery
		want       []string
	}{
		"NewestFirst":        {nil, []string{"two base a", "one base a", "one base b"}},
		"TheSameAgain":       {[]hubv1.AddonDelivery{deliveryOf("base", "one", orphaned("a", time.Minute))}, []string{"two base a", "one base a", "one base b"}},
		"LetGoASecondTime":   {[]hubv1.AddonDelivery{deliveryOf("base", "one", orphaned("b", 0))}, []string{"one base b", "two base a", "one base a"}},
		"DeliveredAgain":     {[]hubv1.AddonDelivery{deliveryOf("other", "one", hubv1.AddonStatus{Name: "a", State: hubv1.AddonProgressing, AppliedGeneration: 1})}, []string{"two base a", "one base b"}},
		"NotDeliveredYet":    {[]hubv1.AddonDelivery{deliveryOf("base", "one", hubv1.AddonStatus{Name: "a", State: hubv1.AddonWaitingForCluster})}, []string{"two base a", "one base a", "one base b"}},
		"AnotherOneIsThere":  {[]hubv1.AddonDelivery{deliveryOf("base", "one", hubv1.AddonStatus{Name: "c", State: hubv1.AddonReady, AppliedGeneration: 1})}, []string{"two base a", "one base a", "one base b"}},
		"OneThatIsRemoved":   {[]hubv1.AddonDelivery{deliveryOf("base", "one", hubv1.AddonStatus{Name: "a", State: hubv1.AddonRemoving, AppliedGeneration: 1})}, []string{"two base a", "one base a", "one base b"}},
		"AllDeliveredAgain?": {[]hubv1.AddonDelivery{deliveryOf("base", "two", hubv1.AddonStatus{Name: "b", State: hubv1.AddonReady, AppliedGeneration: 1})}, []string{"two base a", "one base a", "one base b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, names(teardown.Orphans(first, tc.deliveries, nil))); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
	if got := teardown.Orphans(nil, nil, nil); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

// An add-on of a Team has the name of one that the platform has left. They are two, and each is forgotten only for its own.
func TestOrphansOfOtherScopes(t *testing.T) {
	in := func(namespace string, d hubv1.AddonDelivery) hubv1.AddonDelivery {
		d.Namespace = namespace
		return d
	}
	ready := hubv1.AddonStatus{Name: "logs", State: hubv1.AddonReady, AppliedGeneration: 1}
	scope := func(namespace string) string { // of two platform namespaces, and Teams
		if namespace == "flux-system" || namespace == "platform" {
			return ""
		}
		return namespace
	}
	for name, tc := range map[string]struct {
		orphanIn, deliveredIn string
		want                  int
	}{
		"APlatformsForATeams":          {"flux-system", "team-a", 1},
		"ATeamsForThePlatforms":        {"team-a", "flux-system", 1},
		"ATeamsForAnotherTeams":        {"team-a", "team-b", 1},
		"ATeamsForItsOwn":              {"team-a", "team-a", 0},
		"APlatformsForAnotherOfItsOwn": {"flux-system", "platform", 0},
	} {
		t.Run(name, func(t *testing.T) {
			list := teardown.Orphans(nil, []hubv1.AddonDelivery{in(tc.orphanIn, deliveryOf("base", "one", orphaned("logs", time.Minute)))}, scope)
			if got := teardown.Orphans(list, []hubv1.AddonDelivery{in(tc.deliveredIn, deliveryOf("other", "one", ready))}, scope); len(got) != tc.want {
				t.Errorf("of %v is left %v", list, got)
			}
		})
	}
}

// A list is bounded, and what it has dropped counts as told: nobody waits for it.
func TestOrphansAreBounded(t *testing.T) {
	var list []hubv1.Orphan
	oldest := deliveryOf("base", "c0", orphaned("a", time.Hour))
	for i := range 25 {
		list = teardown.Orphans(list, []hubv1.AddonDelivery{oldest, deliveryOf("base", fmt.Sprintf("c%d", i+1), orphaned("a", time.Minute-time.Duration(i)*time.Second))}, nil)
	}
	if len(list) != 20 || list[0].Cluster != "fleet/c25" {
		t.Fatalf("%d orphans, the first is %v", len(list), list[0])
	}
	if o := teardown.OrphanOf(&oldest, oldest.Status.Addons[0]); !teardown.Recorded(list, o) || teardown.Recorded(list[:19], o) {
		t.Error("what was dropped is waited for")
	}
}

func TestRecorded(t *testing.T) {
	d := deliveryOf("base", "one", orphaned("a", time.Minute))
	list := teardown.Orphans(nil, []hubv1.AddonDelivery{d}, nil)
	again := deliveryOf("base", "one", orphaned("a", 0))
	other := deliveryOf("base", "two", orphaned("a", time.Minute))
	for i, tc := range []struct {
		d    hubv1.AddonDelivery
		want bool
	}{{d, true}, {again, false}, {other, false}} {
		if got := teardown.Recorded(list, teardown.OrphanOf(&tc.d, tc.d.Status.Addons[0])); got != tc.want {
			t.Errorf("%d: %t", i, got)
		}
	}
}
