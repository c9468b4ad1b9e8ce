// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// index is one of an informer's: the controllers list by indexes all the time, and objects change seldom.
type index struct {
	value client.IndexerFunc
	// of are the values of each object, and under the objects of each value. What is in neither is stale.
	of    map[types.NamespacedName][]string
	under map[string]map[types.NamespacedName]bool
	stale map[types.NamespacedName]bool
}

// drop has an object looked at again.
func (x *index) drop(key types.NamespacedName) {
	for _, v := range x.of[key] {
		delete(x.under[v], key)
	}
	delete(x.of, key)
	x.stale[key] = true
}

// find returns the objects with a value.
func (x *index) find(i *Informer, value string) map[types.NamespacedName]bool {
	for key := range x.stale {
		obj := i.objects[key]
		if obj == nil {
			continue
		}
		x.of[key] = x.value(obj)
		for _, v := range x.of[key] {
			if x.under[v] == nil {
				x.under[v] = map[types.NamespacedName]bool{}
			}
			x.under[v][key] = true
		}
	}
	clear(x.stale)
	return x.under[value]
}

// index returns that of a field.
func (i *Informer) index(field string) (*index, error) {
	if x := i.indexed[field]; x != nil {
		return x, nil
	}
	value := i.of.indexes[i.id][field]
	if value == nil {
		return nil, fmt.Errorf("%s has no index %s", i, field)
	}
	x := &index{value, map[types.NamespacedName][]string{}, map[string]map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}}
	for key := range i.objects {
		x.stale[key] = true
	}
	i.indexed[field] = x
	return x, nil
}

// found returns the keys of the objects that a field selector selects, sorted. They must not be changed.
func (i *Informer) found(by fields.Selector) ([]types.NamespacedName, error) {
	if by == nil || by.Empty() {
		return i.keys(), nil
	}
	var keys []types.NamespacedName
	for n, r := range by.Requirements() {
		x, err := i.index(r.Field)
		if err != nil {
			return nil, err
		}
		with := x.find(i, r.Value)
		if n > 0 {
			keys = slices.DeleteFunc(keys, func(key types.NamespacedName) bool { return !with[key] })
			continue
		}
		for key := range with {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys, nil
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
