// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// record is what must outlive the status of a set. A backup keeps it with the set.
type record struct {
	// Set is its namespace/name. A user may make another one of its manifest.
	Set       string       `json:"set"`
	Completed string       `json:"completed,omitempty"`
	Time      *metav1.Time `json:"completedTime,omitempty"`
	Before    []string     `json:"completedBefore,omitempty"`
	Failed    []string     `json:"failed,omitempty"`
	Retried   string       `json:"retried,omitempty"`
}

// Record returns what is to be kept of a state beside it; "" if there is nothing. The state may be nil.
func Record(set string, s *hubv1.RolloutStatus) string {
	if s == nil || s.CompletedRevision == "" && len(s.FailedRevisions) == 0 {
		return ""
	}
	r := record{set, s.CompletedRevision, s.CompletedTime, s.CompletedBefore, s.FailedRevisions, s.Retried}
	raw, _ := json.Marshal(r) // which cannot fail: it has only texts and a time
	return string(raw)
}

// Recall returns the state that a decision is made from: the one in the status or, if that is lost, what was kept of it. What
// a user has written there is taken as it is: that user may as well change the set.
func Recall(set string, s *hubv1.RolloutStatus, kept string) *hubv1.RolloutStatus {
	r := record{}
	if s != nil && s.Revision != "" || kept == "" || json.Unmarshal([]byte(kept), &r) != nil || r.Set != set {
		return s
	}
	if n := len(r.Failed) - maxFailed; n > 0 {
		r.Failed = r.Failed[n:]
	}
	if len(r.Before) > maxBefore {
		r.Before = r.Before[:maxBefore]
	}
	return &hubv1.RolloutStatus{CompletedRevision: r.Completed, CompletedTime: r.Time, CompletedBefore: r.Before, FailedRevisions: r.Failed,
		Retried: r.Retried}
}
