// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/documents"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/render"
)

// Reader reads what is known of a cluster.
type Reader struct {
	Client   client.Client
	Live     client.Reader
	Config   *hubconfig.Config
	Origins  *originreader.Reader
	Programs *programs.Cache
	Clock    clock.PassiveClock
	Tenure   *tenure.Tenure

	Sightings *Sightings
	Ledger    *Ledger
	Looks     *Looks
}

// Gather reads a cluster. It returns an error if too little could be read to decide anything. What could not be read of one
// delivery is noted at that delivery.
func (r *Reader) Gather(ctx context.Context, k types.NamespacedName) (*Cluster, error) {
	c, err := r.gather(ctx, k)
	if err == nil {
		r.Looks.Update(c.Key, func(map[string]look, bool) (map[string]look, bool) { return c.outside, len(c.outside) > 0 })
	}
	return c, err
}

func (r *Reader) gather(ctx context.Context, k types.NamespacedName) (*Cluster, error) {
	c := &Cluster{Key: k, Now: r.Clock.Now(), Began: r.Tenure.Since(r.Clock.Now()),
		Objects: map[plan.Key]*Object{}, Reach: map[string]match.Reach{},
		wasTeam: map[string]bool{}, outside: map[string]look{}}
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{index.DeliveryRegistration: k.String()},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the deliveries: %w", err)
	}
	reg := &hubv1.ClusterRegistration{}
	if err := r.Client.Get(ctx, k, reg); err == nil {
		c.Registration = reg
	} else if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the registration: %w", err)
	}
	if len(list.Items) == 0 {
		return c, nil
	}
	if err := r.gatherOrigin(ctx, c); err != nil {
		return nil, err
	}
	for i := range list.Items {
		d := r.gatherDelivery(ctx, c, &list.Items[i])
		if !d.Known() {
			c.Ignored = append(c.Ignored, d)
			continue
		}
		c.Deliveries = append(c.Deliveries, d)
	}
	if len(c.Deliveries) == 0 {
		return c, nil
	}
	if err := r.gatherObjects(ctx, c); err != nil {
		return nil, err
	}
	for _, d := range c.Deliveries {
		if err := r.gatherProgram(ctx, c, d); err != nil {
			d.Fail(err)
		}
		if d.Busy() {
			c.LookAgain(programs.Wait)
		}
	}
	return c, ctx.Err()
}

// gatherOrigin reads the object that expressions see as origin, and that has some of the cluster's variables. If it does not exist any
// more, or cannot be read, nothing is rendered: see originless.
func (r *Reader) gatherOrigin(ctx context.Context, c *Cluster) error {
	if c.Registration == nil || c.Registration.Spec.OriginRef == nil {
		return nil
	}
	kind, err := originreader.KindOf(c.Registration)
	if err != nil {
		return nil
	}
	obj, _, err := r.Origins.Get(ctx, kind, types.NamespacedName{Namespace: c.Key.Namespace, Name: c.Registration.Spec.OriginRef.Name})
	c.Origin = obj
	return err
}

// gatherDelivery reads the set of a delivery, and decides by it who made the delivery. in is the cache's own object,
// as are the set and the revision. They are not copied, since that would be most of the work, so no caller may write to
// them.
func (r *Reader) gatherDelivery(ctx context.Context, c *Cluster, in *hubv1.AddonDelivery) *Delivery {
	d := &Delivery{AddonDelivery: in.DeepCopy(), Before: in}
	from, err := r.ReachOf(ctx, c, in.Namespace)
	if err != nil {
		d.Verdict = provenance.Verdict{Standing: provenance.Held} // whether the hub made it is not known
		d.Fail(err)
		return d
	}
	set := &hubv1.AddonSet{}
	err = r.Client.Get(ctx, types.NamespacedName{Namespace: in.Namespace, Name: in.Spec.AddonSetRef.Name}, set, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil:
		d.Set = set
	case !apierrors.IsNotFound(err):
		if d.Verdict = provenance.Of(in, nil, c.Registration, from); provenance.Named(in) {
			d.Standing = provenance.Held // whether the set made it is not known
		}
		d.Fail(fmt.Errorf("read AddonSet %s: %w", d.SetKey(), err))
		return d
	}
	d.Verdict = provenance.Of(in, d.Set, c.Registration, from)
	if err := r.lookOutside(ctx, c, d); err != nil {
		d.Fail(err)
		return d
	}
	d.Selected = c.selects(d)
	if d.Leaving, err = r.leaves(ctx, d); err != nil {
		d.Leaving = false
		d.Fail(err)
	}
	return d
}

// revision reads a revision, live if the cache does not have it: the delivery that names it may have been faster. While it is not known
// what the delivery takes over from others, they would remove it.
func (r *Reader) revision(ctx context.Context, name types.NamespacedName) (*appsv1.ControllerRevision, error) {
	revision := &appsv1.ControllerRevision{}
	err := r.Client.Get(ctx, name, revision, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		revision = &appsv1.ControllerRevision{}
		err = r.Live.Get(ctx, name, revision)
	}
	return revision, err
}

// gatherProgram reads the revision of a delivery, if anything may be made for it.
func (r *Reader) gatherProgram(ctx context.Context, c *Cluster, d *Delivery) error {
	if d.Leaving || d.Failed != nil {
		return nil
	}
	d.WantedAgain = c.WantsAgain(d)
	if d.UnrenderableReason, d.Unrenderable = c.refusal(d); d.UnrenderableReason != "" {
		return nil
	}
	in := d.AddonDelivery
	d.Frozen = !strings.HasSuffix(in.Spec.RevisionName, fmt.Sprintf("-e%d", render.Epoch))
	revision, err := r.revision(ctx, types.NamespacedName{Namespace: in.Namespace, Name: in.Spec.RevisionName})
	if apierrors.IsNotFound(err) {
		d.UnrenderableReason, d.Unrenderable = hubv1.RevisionNotFoundReason,
			fmt.Sprintf("ControllerRevision %q does not exist; what is delivered stays as it is", in.Spec.RevisionName)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read ControllerRevision %s: %w", in.Spec.RevisionName, err)
	}
	if !metav1.IsControlledBy(revision, d.Set) {
		d.UnrenderableReason, d.Unrenderable = hubv1.RevisionNotFoundReason, fmt.Sprintf(
			"ControllerRevision %q does not belong to AddonSet %s; what is delivered stays as it is", in.Spec.RevisionName, d.SetKey())
		return nil
	}
	author := c.Reach[in.Namespace].Author(in.Spec.AddonSetRef.Name)
	name := "" // a revision never changes
	if revision.UID != "" {
		name = "revision " + string(revision.UID)
	}
	d.Program, err = r.Programs.Get(name, author, func() ([]byte, error) {
		return revision.Data.Raw, genuine(revision, author.Set)
	})
	if errors.Is(err, programs.ErrBusy) {
		return err
	}
	if err != nil {
		// The set compiled when the revision was made. A flag of the hub has changed since.
		d.UnrenderableReason, d.Unrenderable = hubv1.InvalidSpecReason, err.Error()
	}
	return nil
}

// genuine returns an error if a revision's content does not match its name. A revision never changes, so this is
// checked once.
func genuine(revision *appsv1.ControllerRevision, set string) error {
	hash, err := compile.ContentHash(revision.Data.Raw)
	if err != nil {
		return err
	}
	if !identity.SameContent(revision.Name, identity.Revision(set, hash, render.Epoch)) {
		return fmt.Errorf("ControllerRevision %q does not hold what its name says: the hub did not make it; what is delivered "+
			"stays as it is. Delete it", revision.Name)
	}
	return nil
}

// From is where documents are read.
func (r *Reader) From() documents.From { return documents.From{Cached: r.Client, Live: r.Live} }
