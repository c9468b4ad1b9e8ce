// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// What is kept beside the status counts if the status is lost, and only for the set that it is about.
func TestRecall(t *testing.T) {
	is := &hubv1.RolloutStatus{Revision: "base-3-e1", Phase: hubv1.RolloutFailed, CompletedRevision: "base-1-e1",
		CompletedTime: &metav1.Time{Time: time.Unix(1e9, 0)}, CompletedBefore: []string{"base-0-e1"},
		FailedRevisions: []string{"base-2-e1", "base-3-e1"}, Retried: "base-2-e1/once"}
	kept := &hubv1.RolloutStatus{CompletedRevision: is.CompletedRevision, CompletedTime: is.CompletedTime, CompletedBefore: is.CompletedBefore, FailedRevisions: is.FailedRevisions, Retried: is.Retried}
	text := rollout.Record("a/base", is)
	phase := &hubv1.RolloutStatus{Phase: hubv1.RolloutWithdrawing}
	for name, tc := range map[string]struct {
		status *hubv1.RolloutStatus
		kept   string
		want   *hubv1.RolloutStatus
	}{
		"nothing is lost":        {is, rollout.Record("a/base", &hubv1.RolloutStatus{CompletedRevision: "other"}), is},
		"the status is lost":     {nil, text, kept},
		"an older hub's status":  {phase, text, kept},
		"nothing was kept":       {phase, "", phase},
		"of another set":         {nil, strings.ReplaceAll(text, "a/base", "b/base"), nil},
		"somebody has edited it": {nil, text[1:], nil},
		"more than there may be": {nil, `{"set":"a/base","completedBefore":["1","2","3","4","5","6","7","8","9","10","11"]}`,
			&hubv1.RolloutStatus{CompletedBefore: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}}},
	} {
		if d := cmp.Diff(tc.want, rollout.Recall("a/base", tc.status, tc.kept)); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
	}
	if text := rollout.Record("a/base", &hubv1.RolloutStatus{Revision: "base-1-e1"}) + rollout.Record("a/base", nil); text != "" {
		t.Errorf("of nothing it keeps %s", text)
	}
}
