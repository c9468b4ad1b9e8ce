// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// byChance stands for a value that comes out otherwise each time.
var byChance = veiled{"by chance"}

// steady returns the objects of a side by what they are. A value that comes out otherwise each time, as charts make passwords and
// certificates, is none that could be compared.
func (c *comparedObjects) steady(s *side) map[identity]*unstructured.Unstructured {
	out := map[identity]*unstructured.Unstructured{}
	if s.result == nil {
		return out
	}
	c.out.Notes = append(c.out.Notes, s.result.Notes...)
	again := map[identity]*unstructured.Unstructured{}
	for _, u := range s.result.Again {
		again[s.identify(u)] = u
	}
	chance := 0
	for _, u := range s.result.Objects {
		id := s.identify(u)
		other := again[id]
		switch {
		case s.result.Again == nil:
		case other == nil:
			chance++ // its name comes out otherwise
			continue
		case !reflect.DeepEqual(u.Object, other.Object):
			chance++
			u = &unstructured.Unstructured{Object: agreed(u.Object, other.Object).(map[string]any)}
		}
		out[id] = u
	}
	if chance > 0 {
		c.out.chance = true
		c.note("%d of its objects %s out otherwise each time, as where a chart makes passwords: what differs so is not compared", chance,
			verb(chance, "come"))
	}
	return out
}

// agreed returns a value with marks where another one differs.
func agreed(a, b any) any {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return byChance
		}
		out := make(map[string]any, len(x))
		for k, v := range x {
			if w, there := y[k]; there {
				out[k] = agreed(v, w)
			} else {
				out[k] = byChance
			}
		}
		return out
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return byChance
		}
		out := make([]any, len(x))
		for i := range x {
			out[i] = agreed(x[i], y[i])
		}
		return out
	}
	if reflect.DeepEqual(a, b) {
		return a
	}
	return byChance
}

func sortedIdentities(m map[identity]*unstructured.Unstructured) []identity {
	return slices.SortedFunc(maps.Keys(m), func(a, b identity) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.group, b.group),
			cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}

func sortedNames(m map[string]*unstructured.Unstructured) []string {
	return slices.Sorted(maps.Keys(m))
}

// versionOf returns the version of Kubernetes that a cluster has; "" if that is not known.
func versionOf(registrations ...*hubv1.ClusterRegistration) (version string) {
	for _, reg := range registrations {
		if reg != nil && reg.Status.KubernetesVersion != "" {
			version = reg.Status.KubernetesVersion
		}
	}
	return version
}
