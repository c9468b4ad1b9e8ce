// SPDX-License-Identifier: Apache-2.0

// Package selection chooses the objects that a command lists: by their names, labels and sets.
package selection

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// In narrows a selector to objects whose label has one of some values.
func In(s labels.Selector, label string, values ...string) labels.Selector {
	r, err := labels.NewRequirement(label, selection.In, values)
	if err != nil {
		return labels.Nothing() // no object can have a label of such a value
	}
	return s.Add(*r)
}

// atOnce is up to how many clusters are asked for by their names. Of more, everything is read, page by page.
const atOnce = 50

// InClusters narrows a selector to the deliveries to some clusters, if they are few.
func InClusters(s labels.Selector, clusters map[types.NamespacedName]bool) labels.Selector {
	if len(clusters) > atOnce {
		return s
	}
	var values []string
	for n := range clusters {
		values = append(values, identity.LabelValue(n.Name))
	}
	slices.Sort(values)
	return In(s, hubv1.ClusterLabel, append(values, "")...) // no cluster has an empty name
}

// LabelOf returns the value of the label by which objects of a cluster are found, of NAME or NAMESPACE/NAME.
func LabelOf(cluster string) string {
	return identity.LabelValue(cluster[strings.Index(cluster, "/")+1:])
}

// Registration returns which cluster a delivery is for.
func Registration(o client.Object) types.NamespacedName {
	return o.(*hubv1.AddonDelivery).Spec.RegistrationRef.Key()
}

// ToCluster returns what keeps the deliveries to a cluster, of NAME or NAMESPACE/NAME.
func ToCluster(arg string) func(client.Object) bool {
	namespace, name, named := strings.Cut(arg, "/")
	return func(o client.Object) bool {
		key := Registration(o)
		return !named && key.Name == arg || named && key.Namespace == namespace && key.Name == name
	}
}

// Both keeps what two functions keep.
func Both(a, b func(client.Object) bool) func(client.Object) bool {
	return func(o client.Object) bool { return a(o) && b(o) }
}

// OfSet returns what keeps the deliveries of a set. Without a namespace it is each set of that name.
func OfSet(namespace, name string) func(client.Object) bool {
	return func(o client.Object) bool {
		d, ok := o.(*hubv1.AddonDelivery)
		return ok && d.Spec.AddonSetRef.Name == name && (namespace == "" || d.Namespace == namespace)
	}
}
