// SPDX-License-Identifier: Apache-2.0

// Package match decides which clusters a set selects, and says why it does not select one. It is pure.
package match

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/drain"
)

// Selector selects clusters for one set.
type Selector struct {
	reach  Reach
	all    bool
	labels labels.Selector
	// requirements are the label requirements, and texts a short form of each.
	requirements labels.Requirements
	texts        []string
	text         string
}

// How much of a selector a message quotes: a set may list a thousand clusters by name, and each other cluster shows
// the message.
const (
	maxValues       = 3
	maxRequirements = 5
)

// New returns the selector of a set, of whose namespace reach says how far it reaches. An empty selector is an error; a
// set for all clusters has selectAll.
func New(reach Reach, spec *hubv1.AddonSetSpec) (*Selector, error) {
	s := &Selector{reach: reach, all: spec.SelectAll, text: "all clusters" + reach.within()}
	empty := spec.ClusterSelector == nil || len(spec.ClusterSelector.MatchLabels)+len(spec.ClusterSelector.MatchExpressions) == 0
	if empty == !s.all {
		return nil, fmt.Errorf("spec.clusterSelector: write a selector that is not empty, or spec.selectAll: true for every cluster, and not " +
			"both")
	}
	if s.all {
		return s, nil
	}
	var err error
	if s.labels, err = metav1.LabelSelectorAsSelector(spec.ClusterSelector); err != nil {
		return nil, fmt.Errorf("spec.clusterSelector: %w", err)
	}
	s.requirements, _ = s.labels.Requirements()
	for i := range s.requirements {
		s.texts = append(s.texts, short(&s.requirements[i]))
	}
	s.text = list(s.texts, ",")
	return s, nil
}

// short returns a requirement as `kubectl get -l` accepts it, with only some of its values if there are many.
func short(r *labels.Requirement) string {
	values := r.ValuesUnsorted()
	if len(values) <= maxValues {
		return r.String()
	}
	slices.Sort(values)
	return fmt.Sprintf("%s %s (%s and %d more)", r.Key(), r.Operator(), strings.Join(values[:maxValues], ","), len(values)-maxValues)
}

func list(texts []string, separator string) string {
	if n := len(texts) - maxRequirements; n > 0 {
		return fmt.Sprintf("%s%s and %d more", strings.Join(texts[:maxRequirements], separator), separator, n)
	}
	return strings.Join(texts, separator)
}

// String returns the selector as `kubectl get -l` accepts it, or a shortened form if it is long.
func (s *Selector) String() string { return s.text }

// Reach returns how far the set's namespace reaches.
func (s *Selector) Reach() Reach { return s.reach }

// Reaches returns whether the set may select a registration at all.
func (s *Selector) Reaches(reg *hubv1.ClusterRegistration) bool { return s.reach.To(reg) }

// Matches returns whether the set selects a registration. No set selects a cluster that is being drained.
func (s *Selector) Matches(reg *hubv1.ClusterRegistration) bool {
	return !drain.Requested(reg) && s.Reaches(reg) && (s.all || s.labels.Matches(labels.Set(reg.Labels)))
}

// Why returns why the set does not select a registration, or "" if it does.
func (s *Selector) Why(reg *hubv1.ClusterRegistration) string {
	if !s.Reaches(reg) {
		return "the set " + s.reach.Limit()
	}
	if drain.Requested(reg) {
		return "the cluster is being drained"
	}
	if s.all {
		return ""
	}
	var why []string
	for i, r := range s.requirements {
		if r.Matches(labels.Set(reg.Labels)) {
			continue
		}
		has := "there is no such label"
		if v, ok := reg.Labels[r.Key()]; ok {
			has = fmt.Sprintf("the label is %q", v)
		}
		why = append(why, fmt.Sprintf("wants %s, and %s", s.texts[i], has))
	}
	slices.Sort(why)
	return list(why, "; ")
}
