// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandler-hub/chandler/internal/origin"
)

// TestApplyYields: a label that somebody else has set stays theirs, and an event says so. So does one of a registration that was restored
// with the annotation that lists the copied labels. Any other conflict is an error like another: to be tried again, and nothing to tell of.
func TestApplyYields(t *testing.T) {
	const ours = `ClusterRegistration "one" does not follow the labels of its origin`
	annotation := conflictOf(".metadata.annotations.chandler.dev/copied-labels")
	cases := map[string]struct {
		err    error // of the first write
		again  error // of the second one
		writes int
		failed bool
		events []string
	}{
		"Label": {
			conflictOf(".metadata.labels.env"), nil, 2, false,
			[]string{`ClusterRegistration "one" has its own value for env; it is kept`},
		},
		"RestoredAndAdded": {annotation, nil, 1, true, []string{ours}},
		"RestoredAndChanged": {
			conflictOf(".metadata.labels.env", ".spec.originRef.name"), annotation, 2, true, []string{ours},
		},
		"Origin":       {conflictOf(".spec.originRef.name"), nil, 1, true, nil},
		"LongerLabel":  {conflictOf(".metadata.labels.environment"), nil, 1, true, nil},
		"NotAConflict": {apierrors.NewBadRequest("conflict with .metadata.labels.env"), nil, 1, true, nil},
		"Version": {
			apierrors.NewConflict(schema.GroupResource{}, "one", context.DeadlineExceeded), nil, 1, true, nil,
		},
		"None": {nil, nil, 1, false, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			writes := 0
			recorder := events.NewFakeRecorder(10)
			r := &Reconciler{Recorder: recorder, Clock: clock.RealClock{}, Client: interceptor.NewClient(nil, interceptor.Funcs{
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					writes++
					if writes == 1 {
						return tc.err
					}
					return tc.again
				},
			})}
			req := Request{Kind: origin.Secret, NamespacedName: types.NamespacedName{Namespace: "fleet", Name: "one"}}
			err := r.apply(t.Context(), req, &unstructured.Unstructured{}, nil, "one", map[string]string{"env": "prod"})
			if (err != nil) != tc.failed {
				t.Errorf("got error %v", err)
			}
			if writes != tc.writes {
				t.Errorf("%d writes, want %d", writes, tc.writes)
			}
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				_, text, _ := strings.Cut(e, "LabelConflict ")
				text, _, _ = strings.Cut(text, ":")
				got = append(got, text)
			}
			if d := cmp.Diff(tc.events, got); d != "" {
				t.Errorf("events: -want +got:\n%s", d)
			}
		})
	}
}

// conflictOf is the API server's answer to a server-side apply of fields that another writer has.
func conflictOf(fields ...string) error {
	var causes []metav1.StatusCause
	for _, f := range fields {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "kubectl-edit"`, Field: f})
	}
	return apierrors.NewApplyConflict(causes, "Apply failed: conflict with \"kubectl-edit\": "+strings.Join(fields, ", "))
}
