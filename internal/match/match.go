// SPDX-License-Identifier: Apache-2.0

// Package match says which clusters a set selects, and why it does not select one. It is pure.
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
	namespace string
	platform  bool
	all       bool
	labels    labels.Selector
	text      string
}

// New returns the selector of a set in a namespace; platform says whether that is a platform namespace. An empty
// selector is an error: selectAll says all.
func New(namespace string, platform bool, spec *hubv1.AddonSetSpec) (*Selector, error) {
	s := &Selector{namespace: namespace, platform: platform, all: spec.SelectAll, text: "all clusters"}
	empty := spec.ClusterSelector == nil || len(spec.ClusterSelector.MatchLabels)+len(spec.ClusterSelector.MatchExpressions) == 0
	if empty == !s.all {
		return nil, fmt.Errorf("spec.clusterSelector: write a selector that is not empty, or spec.selectAll: true for every cluster, and not both")
	}
	if s.all {
		return s, nil
	}
	var err error
	if s.labels, err = metav1.LabelSelectorAsSelector(spec.ClusterSelector); err != nil {
		return nil, fmt.Errorf("spec.clusterSelector: %w", err)
	}
	s.text = metav1.FormatLabelSelector(spec.ClusterSelector)
	return s, nil
}

// String returns the selector as `kubectl get -l` takes it.
func (s *Selector) String() string { return s.text }

// Reaches returns whether the set may select registrations of a namespace at all: a set in a platform namespace reaches
// all of them, a set elsewhere those of its own.
func (s *Selector) Reaches(namespace string) bool { return s.platform || s.namespace == namespace }

// Matches returns whether the set selects a registration. None selects a cluster that is being drained.
func (s *Selector) Matches(reg *hubv1.ClusterRegistration) bool {
	return !drain.Requested(reg) && s.Reaches(reg.Namespace) && (s.all || s.labels.Matches(labels.Set(reg.Labels)))
}

// Why returns why the set does not select a registration, or "".
func (s *Selector) Why(reg *hubv1.ClusterRegistration) string {
	if !s.Reaches(reg.Namespace) {
		return fmt.Sprintf("the set is not in a platform namespace and reaches only clusters in %q", s.namespace)
	}
	if drain.Requested(reg) {
		return "the cluster is being drained"
	}
	if s.all {
		return ""
	}
	var why []string
	requirements, _ := s.labels.Requirements()
	for _, r := range requirements {
		if r.Matches(labels.Set(reg.Labels)) {
			continue
		}
		has := "there is no such label"
		if v, ok := reg.Labels[r.Key()]; ok {
			has = fmt.Sprintf("the label is %q", v)
		}
		why = append(why, fmt.Sprintf("wants %s, and %s", r.String(), has))
	}
	slices.Sort(why)
	return strings.Join(why, "; ")
}
