// SPDX-License-Identifier: Apache-2.0

package render

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// Target is what a program is rendered for.
type Target struct {
	// HubID tells the objects of this hub from those of another hub on the same cluster.
	HubID string
	// Namespace is the set's. All generated objects are in it.
	Namespace string
	// Set and Delivery are the names of the AddonSet and the AddonDelivery.
	Set, Delivery string
	// Registration is the cluster.
	Registration types.NamespacedName
	// Chart is the chart that delivers plain manifests; its URL is empty if the hub serves none.
	Chart ManifestChart
	// FluxShards are the shards of Flux's controllers, one of which serves the cluster; none if Flux is not sharded.
	FluxShards []string
}

// ManifestChart is the chart that delivers plain manifests (package manifestchart).
type ManifestChart struct {
	// URL of the registry, as Flux reaches it: http or https, host and port.
	URL string
	// Name of the chart, and the digest by which Flux asks for it.
	Name, Digest string
}

// Input is what the hub knows about the cluster.
type Input struct {
	// Cluster is the value of cluster in expressions. Overlays select by its labels.
	Cluster *expression.Cluster
	// Origin is the value of origin in expressions; nil if there is no origin.
	Origin map[string]any
	// Identity identifies a cluster that Flux logs in to by workload identity, in place of the UID, which the hub
	// cannot read. The kubeconfig copy is then a ConfigMap. It is empty if there is a kubeconfig.
	Identity string
	// Variables of the cluster, the weakest layer first. Their values are literal: << in them is text.
	Variables []variables.Layer
	// ServiceAccount is the one that Flux impersonates on the cluster, for add-ons that do not name one.
	ServiceAccount string
	// Overrides of the cluster.
	Overrides []hubv1.Override
	// Metadata are the labels and annotations that the set gives to its objects now; nil for those of the program.
	Metadata *compile.Metadata
	// Documents are the ConfigMaps and Secrets that the set refers to. A document that is
	// not in the map has not been read yet: Result.Missing asks for it.
	Documents map[document.Ref]document.Document
	// Releases are Helm releases that add-ons keep, whatever their defaults are.
	Releases map[string]Kept
	// Now is the time. It decides which overrides have ended.
	Now time.Time
	// Explain asks for traces, which record who set what.
	Explain bool
	// Mark asks for a placeholder in each value that rests on an unknown fact. Without it, such an add-on fails.
	Mark bool
}

// Kept is a Helm release that an add-on goes on with.
type Kept struct {
	hubv1.HelmReleaseIdentity
	// From names the object that the add-on takes the release over from; empty if it is the add-on's own.
	From string
}

// Result is what a set renders to for a cluster.
type Result struct {
	// Objects in the order of the set's add-ons, not yet linked (flux.Object.Link).
	Objects []flux.Object
	// Excluded maps each add-on that this cluster does not get to the reason.
	Excluded map[string]string
	// Failed maps each add-on that cannot be rendered to its errors. What runs of it stays.
	Failed map[string]Errors
	// Omitted are labels and annotations that no object has here, since their value is not known or it is not allowed. Nothing else is
	// held up by them.
	Omitted Errors
	// Unknown are the values that rest on facts about the cluster that are not known, and hold a placeholder. Only with Mark.
	Unknown []variables.Unknown
	// Refused are variables and overrides of the cluster's owner that are not allowed or not valid, in the order of
	// the set. Everything is delivered without them.
	Refused []Refusal
	// Refs are the documents that the result depends on. Missing are those that were not in the input: the result is
	// not final before they are.
	Refs, Missing []document.Ref
	// Until is when the result changes even if the input does not; zero for never.
	Until time.Time
	// Vars are the merged variables that something has read. Only with Explain.
	Vars map[string]any
	// VarLayers maps each variable to the layer that set it. Only with Explain.
	VarLayers map[string]string
}
