// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Everything is what a controller serves that selects by no shard.
const Everything = "*"

// Served returns the shards that a controller of Flux serves by its --watch-label-selector, which is empty if it has none, sorted: "" is
// what has no shard, and Everything all.
func Served(selector string) []string {
	requirements, err := labels.ParseToRequirements(selector)
	if err != nil {
		return []string{Everything} // the controller does not start with it
	}
	for _, r := range requirements {
		if r.Key() != Label {
			continue
		}
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			return slices.Sorted(slices.Values(r.ValuesUnsorted()))
		case selection.NotIn, selection.NotEquals, selection.DoesNotExist:
			return []string{""}
		}
	}
	return []string{Everything}
}

// Learn returns the shards to give to clusters, sorted: those that controllers of all components serve. served are the shards of each
// component's controllers.
func Learn(served map[string][]string, components ...string) []string {
	var all sets.Set[string]
	for _, c := range components {
		its := sets.New(served[c]...).Delete("", Everything)
		if all == nil {
			all = its
			continue
		}
		all = all.Intersection(its)
	}
	return sets.List(all)
}
