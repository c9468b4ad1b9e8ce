// SPDX-License-Identifier: Apache-2.0

// Package explain reports for one cluster which add-ons it has, which it has not, and why. For one add-on it reports
// who set each of its fields. It looks at the objects of a live hub, and renders with the same compiler and renderer
// as the hub. It is pure: package live reads the objects.
package explain

import (
	"fmt"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/status"
)

// Input is what was read from the hub.
type Input struct {
	Registration *hubv1.ClusterRegistration
	// Unread is true if the registration could not be read: it has nothing but its name and namespace.
	Unread bool
	// Origin is nil if it does not exist or could not be read; NoOrigin says why. A Secret has only its metadata.
	Origin   *unstructured.Unstructured
	NoOrigin string
	// Sets are the sets of all namespaces. Deliveries are those to this cluster.
	Sets       []hubv1.AddonSet
	Deliveries []hubv1.AddonDelivery
	// Teams are the Teams of the hub.
	Teams []hubv1.Team
	// TeamsUnread is true if not all Teams could be read: it is not known which namespaces they govern.
	TeamsUnread bool
	// Revision reads a ControllerRevision; it returns nil if there is none.
	Revision func(namespace, name string) (*appsv1.ControllerRevision, error)
	// Releases and Kustomizations are the hub's Flux objects for this cluster.
	Releases       []helmv2.HelmRelease
	Kustomizations []kustomizev1.Kustomization
	// FluxUnread is true if some of them could not be read.
	FluxUnread bool
	// Document reads a ConfigMap that a set of a namespace refers to, or the keys of a Secret.
	Document func(namespace string, ref document.Ref) (document.Document, error)
	// Notes say what could not be read.
	Notes []string

	// Shared is the configuration of the hub.
	hubconfig.Shared
	Now time.Time
}

// States that only this package knows, beside those of an AddonStatus.
const (
	// NotSelected: the set is in reach, and does not select the cluster.
	NotSelected hubv1.AddonState = "NotSelected"
	// NotCompiled: the set does not compile. Clusters keep what they have.
	NotCompiled hubv1.AddonState = "NotCompiled"
	// Pending: the set selects the cluster, and the hub has not reported on the add-on yet.
	Pending hubv1.AddonState = "Pending"
	// Ignored: the hub did not make the delivery.
	Ignored hubv1.AddonState = "Ignored"
	// Deleted: a user has deleted the delivery, and its set has not withdrawn it.
	Deleted hubv1.AddonState = "Deleted"
	// NotHere: a dependency that is not on the cluster.
	NotHere hubv1.AddonState = "NotHere"
)

// Row is the state of one add-on of one set.
type Row struct {
	// Addon is empty if the row is about the set as a whole.
	Addon string `json:"addon,omitempty" about:"missing if it is about the set as a whole"`
	// Set is namespace/name.
	Set     string           `json:"set,omitempty" about:"namespace/name of the AddonSet"`
	State   hubv1.AddonState `json:"state"`
	Since   *time.Time       `json:"since,omitempty"`
	Version string           `json:"version,omitempty"`
	Why     string           `json:"why,omitempty"`
}

// Line is a line of a header.
type Line struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Override is one of the registration's overrides, and whether it has an effect.
type Override struct {
	Addon string `json:"addon"`
	// State is InEffect, or why it has no effect: Over, Refused, NoAddon, NoEffect.
	State string `json:"state" about:"InEffect, Over, Refused, NoAddon or NoEffect"`
	Why   string `json:"why,omitempty"`
}

// ClusterReport describes all add-ons of a cluster.
type ClusterReport struct {
	Cluster   string     `json:"cluster" about:"namespace/name of the ClusterRegistration"`
	Header    []Line     `json:"header" about:"what the head of the text says"`
	Rows      []Row      `json:"addons"`
	Overrides []Override `json:"overrides,omitempty" about:"overrides of the cluster"`
	Notes     []string   `json:"notes,omitempty" about:"what could not be read"`
	Now       time.Time  `json:"-"`
}

// Cluster explains a cluster.
func Cluster(in *Input) *ClusterReport {
	e := newExplainer(in)
	return &ClusterReport{Cluster: clusterOf(in), Header: e.header(), Rows: e.rows(), Overrides: e.ineffective(),
		Notes: e.notes(), Now: in.Now}
}

func clusterOf(in *Input) string { return in.Registration.Namespace + "/" + in.Registration.Name }

type explainer struct {
	*Input
	sets []*set
	// strangers are deliveries that the hub did not make.
	strangers []Row
}

func newExplainer(in *Input) *explainer {
	e := &explainer{Input: in}
	e.judge()
	return e
}

// notes returns what could not be read, and what the hub has not processed yet.
func (e *explainer) notes() []string {
	out := append(slices.Clone(e.Notes), e.ignored()...)
	seen := func(kind string, o status.Object, name string, observed int64) {
		if observed < o.GetGeneration() {
			out = append(out, fmt.Sprintf("the hub has not processed the last change of %s %s yet; its status may be older", kind, name))
		}
	}
	seen("ClusterRegistration", e.Registration, e.cluster(), e.Registration.Status.ObservedGeneration)
	for _, s := range e.sets {
		if s.object != nil {
			seen("AddonSet", s.object, s.String(), s.object.Status.ObservedGeneration)
		}
		if d := s.delivery; d != nil {
			seen("AddonDelivery", d, d.Namespace+"/"+d.Name, d.Status.ObservedGeneration)
		}
	}
	return out
}

// cluster names the cluster.
func (e *explainer) cluster() string { return e.Registration.Namespace + "/" + e.Registration.Name }

func sprintf(format string, args ...any) string { return excerpt.Line(fmt.Sprintf(format, args...)) }
