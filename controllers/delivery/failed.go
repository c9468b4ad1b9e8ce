// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// fail notes what went wrong while a delivery was read or rendered. It is this delivery's own: what it has stays as it is, nobody takes
// that, and the other deliveries of the cluster go on. Else whoever writes one AddonSet would stop those of all others.
func (d *delivery) fail(err error) {
	d.result = nil
	if errors.As(err, &compile.Error{}) { // the set's or the cluster's to mend: trying again does not help
		d.reason, d.unrenderable = hubv1.RenderFailedReason, err.Error()
		return
	}
	d.failed, d.reason = err, hubv1.ReadFailedReason
	d.unrenderable = excerpt.Of(err.Error(), status.MaxNote) + "; what is delivered stays as it is, and this is tried again"
}

// retryFailed is how long a failed delivery waits at most for its next try while others of the cluster wait for a time to come.
const retryFailed = time.Minute

// retried returns what a reconcile returns that came to err. Deliveries that failed are tried again with the back-off of an error, unless
// another one waits for a time to come: the back-off would have it wait longer.
func (c *cluster) retried(ctx context.Context, after time.Duration, err error) (ctrl.Result, error) {
	var failed []error
	for _, d := range c.deliveries {
		if d.failed == nil {
			continue
		}
		failed = append(failed, d.failed)
		if err == nil && after > 0 {
			ctrl.LoggerFrom(ctx).WithValues(logkey.Set, d.SetKey().String()).Error(d.failed, "a delivery could not be read")
			after = min(after, retryFailed)
		}
	}
	if err == nil && after > 0 {
		return ctrl.Result{RequeueAfter: after}, nil
	}
	return apply.Retried(ctrl.Result{}, errors.Join(append(failed, err)...))
}
