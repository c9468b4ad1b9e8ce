// SPDX-License-Identifier: Apache-2.0

package render

import (
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/identity"
)

// Target is what a program is rendered for.
type Target struct {
	// HubID tells this hub's objects from another's on the same cluster.
	HubID string
	// Namespace is the set's: everything generated lives there.
	Namespace string
	// Set and Delivery are the names of the AddonSet and the AddonDelivery.
	Set, Delivery string
	// Registration is the cluster.
	Registration types.NamespacedName
	// Chart is the chart that delivers plain manifests; its URL is empty if the hub serves none.
	Chart ManifestChart
	// FluxShards are the shards of Flux's controllers, of which one serves the cluster; none if they are not sharded.
	FluxShards []string
}

// ManifestChart is the chart that delivers plain manifests (package manifestchart).
type ManifestChart struct {
	// URL of the Helm repository, as Flux reaches it.
	URL           string
	Name, Version string
}

// Input is what is known of the cluster.
type Input struct {
	// Cluster is what expressions see as cluster. Overlays select by its labels.
	Cluster *expression.Cluster
	// Origin is what expressions see as origin; nil if there is none.
	Origin map[string]any
	// Identity tells the cluster from others if Flux gets at it by workload identity: it stands for the UID, which nobody can ask for,
	// and the mirror is a ConfigMap. Empty if there is a kubeconfig.
	Identity string
	// Variables of the cluster, the weakest layer first. They are taken as they are: << in them is text.
	Variables []Layer
	// ServiceAccount is whom Flux impersonates on the cluster where an add-on does not say.
	ServiceAccount string
	// Overrides of the cluster.
	Overrides []hubv1.Override
	// Documents are the ConfigMaps and Secrets, in the set's namespace, that are referred to. One that is not in the map
	// has not been looked for yet: Result.Missing asks for it.
	Documents map[Ref]Document
	// Releases are Helm releases that add-ons keep, whatever their defaults would be.
	Releases map[string]Kept
	// Now decides which overrides are over.
	Now time.Time
	// Explain asks for traces of who set what.
	Explain bool
}

// Layer is a named set of variables.
type Layer struct {
	Name   string
	Values map[string]any
}

// Ref names a ConfigMap or Secret in the set's namespace.
type Ref struct{ Kind, Name string }

// Document is a ConfigMap or Secret. Of a Secret nothing secret is ever in it.
type Document struct {
	// Found is false if it is not there.
	Found bool
	// Version changes when its content does.
	Version string
	// Keys of its data, sorted.
	Keys []string
	// CRDs is true if a CustomResourceDefinition is among the objects in it.
	CRDs bool
	// Data of a ConfigMap.
	Data map[string]string
}

// Kept is a Helm release that an add-on goes on with.
type Kept struct {
	hubv1.HelmReleaseIdentity
	// From names the object that it is taken over from; empty if it is the add-on's own.
	From string
}

// crd tells whether there is a CustomResourceDefinition among the objects in a text, in YAML or JSON.
var crd = regexp.MustCompile(`(?m)["']?kind["']?\s*:\s*["']?CustomResourceDefinition\b`)

// HoldsCRD returns whether a CustomResourceDefinition is among the objects in a text. It may err on the side of yes: the
// release for them is then an empty one.
func HoldsCRD(text string) bool { return crd.MatchString(text) }

// ConfigMap returns the document of a ConfigMap that is there.
func ConfigMap(data map[string]string) Document {
	d := Document{Found: true, Data: data}
	for k := range data {
		d.Keys = append(d.Keys, k)
	}
	slices.Sort(d.Keys)
	d.CRDs = slices.ContainsFunc(d.Keys, func(k string) bool { return HoldsCRD(data[k]) })
	parts := make([]string, 0, 2*len(d.Keys))
	for _, k := range d.Keys {
		parts = append(parts, k, data[k])
	}
	d.Version = identity.Hash(16, parts...)
	return d
}

// Result is what a set makes for a cluster.
type Result struct {
	// Objects in the order of the set's add-ons, not yet linked (see Link).
	Objects []Object
	// Excluded says of each add-on that is not for this cluster why.
	Excluded map[string]string
	// Failed holds what is wrong with the add-ons that do not come out. What runs there of them stays.
	Failed map[string]Errors
	// Refused is what the cluster's owner wrote and may not, or wrote wrongly: everything is delivered without it. It is in the order of
	// the set.
	Refused []Refusal
	// Refs are the documents that the result depends on, and Missing those that were not in the input: the result is not
	// final before they are.
	Refs, Missing []Ref
	// Until is when the result changes by the passing of time alone; zero for never.
	Until time.Time
	// Vars are the merged variables, as far as something read them, and VarLayers who set them. Only with Explain.
	Vars map[string]any
	// VarLayers says which layer set each variable. Only with Explain.
	VarLayers map[string]string
}
