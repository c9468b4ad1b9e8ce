// SPDX-License-Identifier: Apache-2.0

package teardown_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
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
	first, _ := teardown.Orphans(nil, []hubv1.AddonDelivery{deliveryOf("base", "one", orphaned("a", time.Minute), orphaned("b", time.Hour)), deliveryOf("base", "two", orphaned("a", time.Second))}, nil)
	for name, tc := range map[string]struct {
		deliveries []hubv1.AddonDelivery
		want       []string
	}{
		"NewestFirst":         {nil, []string{"two base a", "one base a", "one base b"}},
		"TheSameAgain":        {[]hubv1.AddonDelivery{deliveryOf("base", "one", orphaned("a", time.Minute))}, []string{"two base a", "one base a", "one base b"}},
		"OrphanedASecondTime": {[]hubv1.AddonDelivery{deliveryOf("base", "one", orphaned("b", 0))}, []string{"one base b", "two base a", "one base a"}},
		"OfAnotherSet":        {[]hubv1.AddonDelivery{deliveryOf("other", "one", orphaned("b", 0))}, []string{"one other b", "two base a", "one base a", "one base b"}},
		"DeliveredAgain":      {[]hubv1.AddonDelivery{deliveryOf("other", "one", hubv1.AddonStatus{Name: "a", State: hubv1.AddonProgressing, AppliedGeneration: 1, Version: "1"})}, []string{"two base a", "one base b"}},
		"NotDeliveredYet":     {[]hubv1.AddonDelivery{deliveryOf("base", "one", hubv1.AddonStatus{Name: "a", State: hubv1.AddonWaitingForCluster})}, []string{"two base a", "one base a", "one base b"}},
		"AnotherOneIsThere":   {[]hubv1.AddonDelivery{deliveryOf("base", "one", hubv1.AddonStatus{Name: "c", State: hubv1.AddonReady, AppliedGeneration: 1, Version: "1"})}, []string{"two base a", "one base a", "one base b"}},
		"OneThatIsRemoved":    {[]hubv1.AddonDelivery{deliveryOf("base", "one", hubv1.AddonStatus{Name: "a", State: hubv1.AddonRemoving, AppliedGeneration: 1, Version: "1"})}, []string{"two base a", "one base a", "one base b"}},
		"AllDeliveredAgain?":  {[]hubv1.AddonDelivery{deliveryOf("base", "two", hubv1.AddonStatus{Name: "b", State: hubv1.AddonReady, AppliedGeneration: 1, Version: "1"})}, []string{"two base a", "one base a", "one base b"}},
	} {
		t.Run(name, func(t *testing.T) {
			list, _ := teardown.Orphans(first, tc.deliveries, nil)
			must.Equal(t, tc.want, names(list))
		})
	}
	if got, omitted := teardown.Orphans(nil, nil, nil); got != nil || omitted != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// TestOrphansTakenOver: what another object goes on with is an orphan until Flux has recorded it there.
func TestOrphansTakenOver(t *testing.T) {
	by := &hubv1.FluxObjectReference{Kind: "HelmRelease", Namespace: "flux-system", Name: "one-new"}
	old := orphaned("old", time.Minute)
	old.TakenOverBy = by
	list, _ := teardown.Orphans(nil, []hubv1.AddonDelivery{deliveryOf("base", "one", old)}, nil)
	for version, want := range map[string]int{"": 1, "1.0.0": 0} {
		is := hubv1.AddonStatus{Name: "new", State: hubv1.AddonProgressing, Kind: by.Kind, Object: by.Name, AppliedGeneration: 1, Version: version}
		if got, _ := teardown.Orphans(list, []hubv1.AddonDelivery{deliveryOf("other", "one", is)}, nil); len(got) != want {
			t.Errorf("version %q: %v", version, got)
		}
	}
	if got, _ := teardown.OrphansOfSet(nil, []hubv1.AddonDelivery{deliveryOf("base", "one", old, orphaned("a", 0))}); len(got) != 1 {
		t.Errorf("the set's list has what another set is to go on with: %v", got)
	}
}

// An add-on of a Team has the name of one that the platform has left. They are two, and each is forgotten only for its own.
func TestOrphansOfOtherScopes(t *testing.T) {
	in := func(namespace string, d hubv1.AddonDelivery) hubv1.AddonDelivery {
		d.Namespace = namespace
		return d
	}
	ready := hubv1.AddonStatus{Name: "logs", State: hubv1.AddonReady, AppliedGeneration: 1, Version: "1"}
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
			list, _ := teardown.Orphans(nil, []hubv1.AddonDelivery{in(tc.orphanIn, deliveryOf("base", "one", orphaned("logs", time.Minute)))}, scope)
			if got, _ := teardown.Orphans(list, []hubv1.AddonDelivery{in(tc.deliveredIn, deliveryOf("other", "one", ready))}, scope); len(got) != tc.want {
				t.Errorf("of %v is left %v", list, got)
			}
		})
	}
}

// TestOrphansAreBounded: whatever leaves at once, each orphan is named while its delivery waits for that, and then it is named or counted.
func TestOrphansAreBounded(t *testing.T) {
	for _, clusters := range []int{20, 21, 30, 500} {
		var waiting []hubv1.AddonDelivery
		for i := range clusters {
			waiting = append(waiting, deliveryOf("base", fmt.Sprintf("c%d", i), orphaned("a", time.Duration(i%3)*time.Second)))
		}
		list, omitted, named := []hubv1.Orphan(nil), int32(0), 0
		for pass := 0; ; pass++ {
			if pass > clusters {
				t.Fatalf("%d clusters: %d deliveries wait for ever", clusters, len(waiting))
			}
			again, n := []hubv1.Orphan(nil), int32(0)
			list, n = teardown.Orphans(list, waiting, nil)
			omitted += n
			if again, n = teardown.Orphans(list, waiting, nil); n != 0 || !cmp.Equal(list, again) {
				t.Fatalf("%d clusters: a pass that sees the same counts %d, or names others", clusters, n)
			}
			if len(list) > 200 {
				t.Fatalf("%d clusters: %d are named", clusters, len(list))
			}
			if len(waiting) == 0 {
				break
			}
			waiting = slices.DeleteFunc(waiting, func(d hubv1.AddonDelivery) bool {
				recorded := teardown.Recorded(list, teardown.OrphanOf(&d, d.Status.Addons[0]))
				if recorded {
					named++
				}
				return recorded
			})
		}
		if len(list) != 20 || len(list)+int(omitted) != clusters || named != clusters {
			t.Errorf("%d clusters: %d are named, %d counted, %d deliveries were named", clusters, len(list), omitted, named)
		}
	}
}

func TestRecorded(t *testing.T) {
	d := deliveryOf("base", "one", orphaned("a", time.Minute))
	list, _ := teardown.Orphans(nil, []hubv1.AddonDelivery{d}, nil)
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
