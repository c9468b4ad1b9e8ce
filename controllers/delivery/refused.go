// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// reportRefused sets or clears the condition that says what the cluster's owner wrote and the hub ignores. It is a
// condition of its own, because the add-ons are delivered without it, and become Ready. It returns what the Ready
// condition says of it.
func reportRefused(d *delivery, now time.Time) string {
	texts := refused(d)
	if len(texts) == 0 {
		status.Clear(d.AddonDelivery, hubv1.OverridesRefusedCondition)
		return ""
	}
	status.Set(d.AddonDelivery, hubv1.OverridesRefusedCondition, metav1.ConditionTrue, hubv1.OverrideRefusedReason,
		strings.Join(texts, status.Separator), now)
	return fmt.Sprintf("; what the cluster's owner wrote is ignored in part: see condition %s", hubv1.OverridesRefusedCondition)
}

// refused returns what the cluster's owner wrote and the hub ignores.
func refused(d *delivery) []string {
	if d.DeletionTimestamp != nil || d.Result == nil {
		return nil
	}
	texts := slices.Clone(d.Unreadable)
	for _, r := range d.Result.Refused {
		texts = append(texts, r.String())
	}
	return texts
}

// reportOmitted returns what the Ready condition says of labels and annotations that the set gives to its objects, and that they do not
// have here.
func reportOmitted(d *delivery) string {
	if d.DeletionTimestamp != nil || d.Result == nil || len(d.Result.Omitted) == 0 {
		return ""
	}
	return "; left out here, and nothing waits for it: " + excerpt.Of(d.Result.Omitted.Error(), maxOmitted)
}

// maxOmitted is how much of that the condition quotes.
const maxOmitted = 400
