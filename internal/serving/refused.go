// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/facts"
	"github.com/chandler-hub/chandler/internal/status"
)

// refuse collects what a delivery ignores of what the cluster's owner wrote.
func (s *Sets) refuse(d *hubv1.AddonDelivery) {
	c := status.Find(d, hubv1.OverridesRefusedCondition)
	if c == nil {
		return
	}
	s.refused = append(s.refused, "AddonSet "+d.SetKey().String()+": "+c.Message)
}

// Unreadable adds what cannot be read, once: each delivery's list begins with it.
func (s *Sets) Unreadable(reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured) {
	_, texts := facts.Variables(reg, obj)
	var out []string
	for _, r := range s.refused {
		set, message, _ := strings.Cut(r, ": ")
		for _, t := range texts {
			message = strings.TrimPrefix(strings.TrimPrefix(message, t), status.Separator)
		}
		if message != "" {
			out = append(out, set+": "+message)
		}
	}
	slices.Sort(out)
	s.refused = append(texts, out...)
}

// maxRefused is how much of it the Ready condition quotes; the condition has the rest.
const maxRefused = 300

// reportRefused sets or clears the condition, and returns what Ready says of it. The author of something that is
// ignored should see that at first sight, but it is no failure of the cluster.
func (s *Sets) reportRefused(reg *hubv1.ClusterRegistration, now time.Time) string {
	if len(s.refused) == 0 {
		status.Clear(reg, hubv1.OverridesRefusedCondition)
		return ""
	}
	text := strings.Join(s.refused, status.Separator)
	status.Set(reg, hubv1.OverridesRefusedCondition, metav1.ConditionTrue, hubv1.OverrideRefusedReason, text, now)
	return "; refused: " + excerpt.Of(text, maxRefused)
}
