// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// fail records an error of reading or rendering a delivery. It concerns this delivery only: what it has delivered
// stays as it is, no other set takes that, and the cluster's other deliveries go on. Otherwise the author of one
// AddonSet could stop all others.
func (d *delivery) fail(err error) {
	d.result = nil
	if compile.Waits(err) {
		d.reason, d.unrenderable = hubv1.FactUnknownReason, err.Error()
		return
	}
	if errors.As(err, &compile.Error{}) { // the set's or the cluster's to mend: trying again does not help
		d.reason, d.unrenderable = hubv1.RenderFailedReason, err.Error()
		return
	}
	d.failed, d.reason = err, hubv1.ReadFailedReason
	d.unrenderable = excerpt.Of(err.Error(), status.MaxNote) + "; what is delivered stays as it is, and this is tried again"
}

// busy returns whether what a delivery wants is not known only because other sets are being compiled. It fails for now, and that is no
// failure: its status stays as it is, and no error counts it.
func (d *delivery) busy() bool { return errors.Is(d.failed, programs.ErrBusy) }

// retryFailed is how long a failed delivery waits at most for its next try, while other deliveries of the cluster are
// requeued for later.
const retryFailed = time.Minute

// retried returns the result of a reconcile that ended with err. Failed deliveries are tried again with an error's
// back-off, unless another delivery is requeued for a fixed time: the back-off could be longer than that.
func (c *cluster) retried(ctx context.Context, after time.Duration, err error) (ctrl.Result, error) {
	var failed []error
	for _, d := range c.deliveries {
		if d.failed == nil || d.busy() {
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
