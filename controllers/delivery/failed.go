// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/internal/apply"
)

// retried returns the result of a reconcile that ended with err. Failed deliveries are tried again with an error's
// back-off, unless another delivery is requeued for a fixed time: the back-off could be longer than that.
func (c *cluster) retried(ctx context.Context, after time.Duration, err error) (ctrl.Result, error) {
	var failed []error
	for _, d := range c.Deliveries {
		if d.Failed == nil || d.Busy() {
			continue
		}
		failed = append(failed, d.Failed)
		if err == nil && after > 0 {
			ctrl.LoggerFrom(ctx).WithValues(logkey.Set, d.SetKey().String()).Error(d.Failed, "a delivery could not be read")
			after = min(after, observed.RetryFailed)
		}
	}
	if err == nil && after > 0 {
		return ctrl.Result{RequeueAfter: after}, nil
	}
	return apply.Retried(ctrl.Result{}, errors.Join(append(failed, err)...))
}
