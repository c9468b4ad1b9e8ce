// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"errors"
	"slices"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/status"
)

// Delivery is one AddonDelivery, with what belongs to it.
type Delivery struct {
	*hubv1.AddonDelivery
	// Before is the delivery as it was read.
	Before *hubv1.AddonDelivery
	Set    *hubv1.AddonSet // nil if it does not exist
	// Verdict says whether the set's controller made it.
	provenance.Verdict
	// Selected is true if its set selects the cluster now.
	Selected bool
	// Leaving is true if the set withdraws it. A delivery that a user deletes is made again, and nothing of it
	// leaves.
	Leaving bool
	// WantedAgain is true if the set makes it again when it is gone.
	WantedAgain bool
	// Program is nil if the revision cannot be rendered. What the delivery has delivered stays as it is then.
	Program *compile.Program
	// Unrenderable says why, with a reason.
	Unrenderable, UnrenderableReason string
	// Failed is the error of reading or rendering the delivery, if the hub tries again. Until then what it has delivered
	// stays as it is, and the cluster's other deliveries go on.
	Failed error
	// Frozen is true if another version of the hub made the revision. Existing objects stay as they are then, and
	// missing ones are made.
	Frozen bool
}

// Addon returns the status of an add-on before this pass, or nil.
func (d *Delivery) Addon(name string) *hubv1.AddonStatus {
	for i := range d.Before.Status.Addons {
		if d.Before.Status.Addons[i].Name == name {
			return &d.Before.Status.Addons[i]
		}
	}
	return nil
}

// Was returns the status of an add-on before this pass; zero if there is none.
func (d *Delivery) Was(addon string) hubv1.AddonStatus {
	if s := d.Addon(addon); s != nil {
		return *s
	}
	return hubv1.AddonStatus{}
}

// Fail records an error of reading or rendering a delivery. It concerns this delivery only: what it has delivered
// stays as it is, no other set takes that, and the cluster's other deliveries go on. Otherwise the author of one
// AddonSet could stop all others.
func (d *Delivery) Fail(err error) {
	if compile.Waits(err) {
		d.UnrenderableReason, d.Unrenderable = hubv1.FactUnknownReason, err.Error()
		return
	}
	if errors.As(err, &compile.Error{}) { // the set's or the cluster's to mend: trying again does not help
		d.UnrenderableReason, d.Unrenderable = hubv1.RenderFailedReason, err.Error()
		return
	}
	d.Failed, d.UnrenderableReason = err, hubv1.ReadFailedReason
	d.Unrenderable = excerpt.Of(err.Error(), status.MaxNote) + "; what is delivered stays as it is, and this is tried again"
}

// Busy returns whether what a delivery wants is not known only because other sets are being compiled. It fails for now, and that is no
// failure: its status stays as it is, and no error counts it.
func (d *Delivery) Busy() bool { return errors.Is(d.Failed, programs.ErrBusy) }

// Has returns whether a delivery's revision has an add-on, as far as it can be read.
func (d *Delivery) Has(addon string) bool { return d.Program == nil || d.Program.Has(addon) }

// Unread returns whether a delivery counts, and it is not known what is in its revision.
func (d *Delivery) Unread() bool {
	return d.Program == nil && !d.Leaving && d.Set != nil &&
		(d.Failed != nil || d.UnrenderableReason == hubv1.RevisionNotFoundReason || d.UnrenderableReason == hubv1.InvalidSpecReason)
}

// ReadyBefore returns whether a delivery was Ready last before a time.
func (d *Delivery) ReadyBefore(t time.Time) bool {
	return d.Status.ReadyTime != nil && d.Status.ReadyTime.Time.Before(t)
}

// Announced returns whether the status says already that an object is orphaned.
func (d *Delivery) Announced(k plan.Key, addon string) bool {
	s := d.Addon(addon)
	return s != nil && s.State == hubv1.AddonOrphaned && s.Kind == k.Kind && s.Object == k.Name
}

// ForGood returns whether the status says that an object is orphaned, and names no other object that takes over its workload.
func (d *Delivery) ForGood(k plan.Key, addon string) bool {
	return d.Announced(k, addon) && d.Addon(addon).TakenOverBy == nil
}

// Granted returns whether the removal guard of the set grants a removal.
func (d *Delivery) Granted(removal string) bool {
	off := d.Set != nil && d.Set.Spec.RemovalGuard != nil && d.Set.Spec.RemovalGuard.Mode == hubv1.RemovalGuardOff
	return off || d.Leaving || slices.Contains(d.Spec.Removals, removal)
}
