// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	annotation := apierrors.NewApplyConflict(nil, `conflict with "kubectl-create": .metadata.annotations.chandler.dev/copied-labels`)
	cases := map[string]struct {
		err    error // of the first write
		again  error // of the second one
		writes int
		failed bool
		events []string
	}{
		"Label": {
			apierrors.NewApplyConflict(nil, `Apply failed with 1 conflict: conflict with "kubectl-edit": .metadata.labels.env`), nil, 2, false,
			[]string{`ClusterRegistration "one" has its own value for env; it is kept`},
		},
		"RestoredAndAdded": {annotation, nil, 1, true, []string{ours}},
		"RestoredAndChanged": {
			apierrors.NewApplyConflict(nil, `conflict with "kubectl-create": .metadata.labels.env`), annotation, 2, true, []string{ours},
		},
		"Origin": {apierrors.NewApplyConflict(nil, `Apply failed with 1 conflict: conflict with "flux": .spec.originRef.name`), nil, 1, true, nil},
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
