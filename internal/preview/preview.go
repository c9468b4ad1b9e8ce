// SPDX-License-Identifier: Apache-2.0

// Package preview computes from files alone what the hub would make of a fleet. It uses the hub's compiler, renderer
// and conflict rules, with the objects of the files instead of those of an API server. It is pure: the caller reads
// the files and passes the time.
package preview

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/merge"
)

// Options are set by the flags of the command line and of the hub.
type Options struct {
	// Shared is the configuration of the hub.
	hubconfig.Shared
	// Now is the time. It decides which overrides have ended.
	Now time.Time
	// Cluster is the only cluster to render, as name or namespace/name; empty for all.
	Cluster string
	// Explain asks for who set what.
	Explain bool
	// Schemas are those of CRDs in place of those that are built in; nil for none.
	Schemas *crdschema.Library
	// Incomplete is true if some of the files could not be read. Then nothing is said of what the files do not have: it may be in those.
	Incomplete bool
	// Strict makes an error of every warning.
	Strict bool
}

// Report is the result for a fleet.
type Report struct {
	// Shared are the sources and charts that clusters share, each once.
	Shared []*unstructured.Unstructured
	// Clusters by namespace and name.
	Clusters []Cluster
	// Errors, and Warnings, in full sentences that name the object: those of sets first, then those of clusters. What several clusters
	// have in common is one sentence.
	Errors, Warnings []string
	// Notes say which clusters get nothing, or nothing new, though nothing is wrong. The clusters have them too, for Print.
	Notes []string
}

// Cluster is the result for one cluster, in the order of its sets and of their add-ons.
type Cluster struct {
	Namespace, Name string
	// Nothing says why nothing at all is delivered, and Paused why nothing is made or changed now; empty if neither is so.
	Nothing, Paused string
	Objects         []Rendered
	// Later are add-ons that are made when a pause ends. Stays are objects of the files that stay as they are, whatever the sets say now.
	Later []Note
	Stays []Staying
	// Excluded add-ons are not for this cluster, Lost ones go to another set, and NotOwned ones belong to somebody
	// else.
	Excluded, Lost, NotOwned []Note
	// Failed add-ons cannot be rendered. There is one note for each error.
	Failed []Note
	// Unknown are values that rest on facts about the cluster that the files do not say, and add-ons that are not rendered for
	// that.
	Unknown []Note
	// waiting are those of them that are not rendered.
	waiting []Note
	// Refused are overrides and variables of the cluster's owner that have no effect. The add-ons are rendered
	// without them.
	Refused []Note
	// NotSelected are the sets that do not select the cluster. They are printed with Explain, and where no set selects it.
	NotSelected []Note
	// Variables, only with Explain.
	Variables []Variable
}

// empty returns whether there is nothing to say of a cluster.
func (c *Cluster) empty() bool {
	return len(c.Later)+len(c.Stays)+len(c.Objects)+len(c.Excluded)+len(c.Lost)+len(c.NotOwned)+len(c.Failed)+len(c.Unknown) == 0
}

// undelivered is said of a cluster to which no set delivers anything.
const undelivered = "no AddonSet delivers anything to this cluster"

// standstill is said of a paused cluster, after the reason.
const standstill = "; what is there stays as it is, and nothing is made"

// Rendered is one Flux object.
type Rendered struct {
	// Set is namespace/name of the AddonSet, and Addon the add-on in it.
	Set, Addon string
	// CRDs is true for the release that delivers only the CustomResourceDefinitions of the add-on.
	CRDs bool
	// Remarks are facts about it that the manifest does not show.
	Remarks []string
	// Manifest is what the hub applies.
	Manifest *unstructured.Unstructured

	form  string
	trace *merge.Trace // nil without Explain
	chart map[string]any
}

// Note says why an add-on cannot be rendered, or what it is rendered without. Without an add-on it is about the whole
// set, and without a set about the whole cluster.
type Note struct{ Set, Addon, Reason string }

// Staying is an object that stays as it is, with the reason.
type Staying struct {
	Note
	Object string
}

// Variable is a variable that expressions of a set can read.
type Variable struct {
	Set, Name string
	// Value is JSON; empty if nothing reads the variable.
	Value string
	// Layer that set it.
	Layer string
}

// oneLine makes a text that people wrote safe for one line of a terminal, or of a comment in YAML.
func oneLine(s string) string { return strings.TrimSpace(excerpt.Visible(s)) }
