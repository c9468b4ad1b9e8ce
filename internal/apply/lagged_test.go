// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/chandler-hub/chandler/internal/apply"
)

func TestLagged(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "a", errors.New("it has changed"))
	other := errors.New("the API server is down")
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"conflict":         {conflict, true},
		"wrapped":          {fmt.Errorf("write status: %w", conflict), true},
		"several":          {errors.Join(conflict, errors.Join(fmt.Errorf("x: %w", conflict))), true},
		"something else":   {other, false},
		"both":             {errors.Join(conflict, other), false},
		"both, one inside": {errors.Join(conflict, errors.Join(other, conflict)), false},
	} {
		if got := apply.Lagged(tc.err); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestPasses(t *testing.T) {
	things := schema.GroupResource{Resource: "things"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"conflict":    {apierrors.NewConflict(things, "a", errors.New("it has changed")), true},
		"timeout":     {fmt.Errorf("update: %w", apierrors.NewTimeoutError("slow", 1)), true},
		"overloaded":  {apierrors.NewTooManyRequests("later", 1), true},
		"a webhook":   {apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		"not reached": {&url.Error{Op: "Patch", URL: "https://one", Err: errors.New("connection refused")}, true},
		"no time":     {fmt.Errorf("update: %w", context.DeadlineExceeded), true},
		"going":       {fmt.Errorf("HelmChart flux-system/a %w", apply.ErrBeingDeleted), true},
		"forbidden":   {apierrors.NewForbidden(things, "a", errors.New("a policy")), false},
		"invalid":     {apierrors.NewBadRequest("what is this"), false},
		"one of two":  {errors.Join(apierrors.NewTimeoutError("slow", 1), errors.New("x")), false},
	} {
		if got := apply.Passes(tc.err); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestRetried(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "a", errors.New("it has changed"))
	later := ctrl.Result{RequeueAfter: time.Minute}
	if got, err := apply.Retried(later, nil); got != later || err != nil {
		t.Errorf("done: %v, %v", got, err)
	}
	if got, err := apply.Retried(later, conflict); got.RequeueAfter <= 0 || got.RequeueAfter > time.Second || err != nil {
		t.Errorf("a conflict: %v, %v; want a retry soon, and no error", got, err)
	}
	if _, err := apply.Retried(later, errors.Join(conflict, errors.New("x"))); err == nil {
		t.Error("an error is lost behind a conflict")
	}
}
