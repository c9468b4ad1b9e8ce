// SPDX-License-Identifier: Apache-2.0

package planned

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/plan"
)

// Wanted returns the delivery that wants an object, and what it wants.
func (c *Cluster) Wanted(k plan.Key) (*Delivery, *assembly.Wanted) {
	for _, d := range c.Deliveries {
		for i := range d.Wanted {
			if assembly.Key(&d.Wanted[i].Object) == k {
				return d, &d.Wanted[i]
			}
		}
	}
	return nil, nil
}

// errOtherwise says that a ConfigMap or Secret has changed since the outline of an object was planned with. What comes of it now is not
// written: the removal guard has not been asked about that, and it would be noted as what was planned. It is a conflict, so it is tried
// again.
func errOtherwise(w *assembly.Wanted) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: w.Kind}, w.Name, errors.New("what it is rendered from has changed meanwhile"))
}

// Complete renders an object again if memory holds only its outline.
func (c *Cluster) Complete(d *Delivery, w *assembly.Wanted) error {
	if w.Object.Object != nil {
		return nil
	}
	whole, err := d.whole()
	if err != nil {
		return err
	}
	for i := range whole.Objects {
		if o := &whole.Objects[i]; o.Addon == w.Addon {
			if !w.Complete(o) {
				return errOtherwise(w)
			}
			return nil
		}
	}
	return fmt.Errorf("add-on %q does not render any more", w.Addon)
}
