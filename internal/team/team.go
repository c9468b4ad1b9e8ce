// SPDX-License-Identifier: Apache-2.0

// Package team decides what a Team has: the hub namespaces that it governs, the namespaces and rights that are brought
// to its clusters, and what its AddonSets may do there. It is pure: the Teams and the platform namespaces are
// arguments.
package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

const (
	setPrefix     = "team-"
	accountPrefix = "chandler-"
)

// maxName is the longest name of a Team. The add-on "team-<name>" is one of manifests, whose names have at most 48
// characters; namespace and labels have room for more.
const maxName = 48 - len(setPrefix)

// defaultRole is the ClusterRole of a team if the Team does not say.
const defaultRole = "admin"

// TokenLifetime is how long a team's token is asked for. The API server may give another time.
const TokenLifetime = 24 * time.Hour

// SetName returns the name of the AddonSet that brings a Team's namespaces and rights to its clusters. The set's only
// add-on has the same name.
func SetName(team string) string { return setPrefix + team }

// OfSet is the reverse of SetName; false if no Team's AddonSet has that name.
func OfSet(set string) (team string, ok bool) {
	team, ok = strings.CutPrefix(set, setPrefix)
	return team, ok && team != ""
}

// AccountNamespace returns the namespace, on each of the team's clusters, of the team's ServiceAccount. The team has
// no rights there: a user who has role edit or admin in the namespace of a ServiceAccount may request tokens for it.
func AccountNamespace(team string) string { return accountPrefix + team }

// Claims returns the hub namespaces that a Team claims.
func Claims(t *hubv1.Team) []string {
	if len(t.Spec.HubNamespaces) == 0 {
		return []string{t.Name}
	}
	return slices.Clone(t.Spec.HubNamespaces)
}

// Of returns the Team that governs a namespace; nil if none does. all may hold Teams of any namespace, and only those
// in platform namespaces count. No Team governs a platform namespace. Of several Teams that claim a namespace, the
// oldest governs it.
//
// A Team that is being deleted, or that Check refuses, governs as before. Otherwise its namespaces would be without
// rules meanwhile, and their sets would be delivered with the admin's credential.
func Of(namespace string, all []hubv1.Team, platform func(namespace string) bool) *hubv1.Team {
	if platform(namespace) {
		return nil
	}
	var first *hubv1.Team
	for i := range all {
		t := &all[i]
		if platform(t.Namespace) && slices.Contains(Claims(t), namespace) && (first == nil || before(t, first)) {
			first = t
		}
	}
	return first
}

// Namesake returns the older Team of another platform namespace that has the name of a Team; nil if there is none. Both
// would have the same ServiceAccount on clusters, and each the rights of both.
func Namesake(t *hubv1.Team, all []hubv1.Team, platform func(namespace string) bool) *hubv1.Team {
	for i := range all {
		if o := &all[i]; o.Name == t.Name && o.Namespace != t.Namespace && platform(o.Namespace) && before(o, t) {
			return o
		}
	}
	return nil
}

// Rivals returns the hub namespaces that a Team claims and does not have, each with the reason, sorted. t may be one
// of all or not.
func Rivals(t *hubv1.Team, all []hubv1.Team, platform func(namespace string) bool) []string {
	var out []string
	for _, ns := range Claims(t) {
		if why := notHad(ns, t, all, platform); why != "" {
			out = append(out, fmt.Sprintf("%q: %s", ns, why))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// notHad returns why a Team does not have a namespace that it claims; "" if it has it.
func notHad(namespace string, t *hubv1.Team, all []hubv1.Team, platform func(namespace string) bool) string {
	if !platform(t.Namespace) {
		return fmt.Sprintf("a Team counts only in a platform namespace, and %q is none", t.Namespace)
	}
	if platform(namespace) {
		return "it is a platform namespace, and no Team governs one"
	}
	o := Of(namespace, all, platform)
	if o == nil || !before(o, t) {
		return ""
	}
	return fmt.Sprintf("Team %s/%s has it since %s", o.Namespace, o.Name, o.CreationTimestamp.UTC().Format(time.RFC3339))
}

// before returns whether a Team goes before another one that claims the same namespace.
func before(a, b *hubv1.Team) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name)) < 0
}

// Selector returns the selector of a Team's clusters, by the labels of their registrations. It selects everything for
// selectAll. An empty clusterSelector is an error.
func Selector(t *hubv1.Team) (labels.Selector, error) {
	s := t.Spec.ClusterSelector
	empty := s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
	if empty != t.Spec.SelectAll {
		return nil, fmt.Errorf("write a selector that is not empty, or spec.selectAll: true for every cluster, and not both")
	}
	if t.Spec.SelectAll {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// Rules returns what the AddonSets in a Team's hub namespaces may do. The namespaces stay in the Team's order: its first
// is the one for objects that name none.
func Rules(t *hubv1.Team) *fluxspec.TeamRules {
	r := &fluxspec.TeamRules{Name: t.Name, MaxPriority: t.Spec.MaxPriority, MaxAddons: fluxspec.DefaultMaxAddons}
	for i := range t.Spec.Namespaces {
		r.Namespaces = append(r.Namespaces, t.Spec.Namespaces[i].Name)
	}
	if s := t.Spec.Sources; s != nil {
		r.Allow, r.Kinds, r.RequireVerification = slices.Clone(s.Allow), slices.Clone(s.Kinds), s.RequireVerification
	}
	if a := t.Spec.Addons; a != nil && a.Max > 0 {
		r.MaxAddons = int(a.Max)
	}
	return r
}
