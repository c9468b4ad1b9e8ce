// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// ApproveHeld approves what removal guards hold, as a user does who has meant it: of two or three clusters, one may lose an add-on in an
// hour.
func ApproveHeld(ctx context.Context, c client.Client) error {
	list := &hubv1.AddonSetList{}
	if err := c.List(ctx, list); err != nil {
		return err
	}
	var errs []error
	for i := range list.Items {
		set := &list.Items[i]
		held := set.Status.HeldRemovals
		if held == nil || set.Annotations[hubv1.ApproveRemovalAnnotation] == held.Hash {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hubv1.ApproveRemovalAnnotation, held.Hash)
		errs = append(errs, client.IgnoreNotFound(c.Patch(ctx, set, client.RawPatch(types.MergePatchType, patch))))
	}
	return errors.Join(errs...)
}
