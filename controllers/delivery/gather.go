// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/expectations"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
)

// cluster is everything that is known of one cluster. It was read at one moment.
type cluster struct {
	key key
	// now is that moment, for all decisions. If each decision read the clock, the time that the plan waits for could
	// pass while the reconcile runs, and the cluster would not be requeued for it.
	now time.Time
	// began is since when this process of the hub is at work; zero if that is not known.
	began        time.Time
	registration *hubv1.ClusterRegistration // nil if it does not exist
	origin       *unstructured.Unstructured // nil if there is none
	deliveries   []*delivery
	// ignored are deliveries that the hub did not make.
	ignored []*delivery
	// mayResume is true once something of this cluster has been resumed. again is after how long to requeue the cluster.
	mayResume bool
	again     time.Duration
	// foreign are HelmReleases for this cluster that are not the hub's.
	foreign []assembly.Foreign
	// objects are the Flux objects of this cluster that the hub made.
	objects map[plan.Key]*object
	// awaited are objects that no delivery wants now. They stay, because an add-on that cannot be delivered yet is to
	// take them over.
	awaited map[plan.Key]string
	// yields are objects that would stay as they are, but must go, because another set delivers what they have.
	yields map[plan.Key]bool
	// announced are the objects that are orphaned: what each leaves, or why that could not be written into the status.
	announced map[plan.Key]outcome
	// reach says how far the sets of a namespace reach, for those that have been looked at.
	reach map[string]match.Reach
	// wasTeam are the namespaces whose Team is not theirs any more, and from which it delivered here.
	wasTeam map[string]bool
	// outside says for each namespace out of reach whether Flux still reaches the cluster from there.
	outside map[string]look
	// mirrored are the namespaces in which the mirror that Flux needs is in place.
	mirrored map[string]bool
	// kept is what the hub keeps for the cluster beside the sets, by kind; see keptBeside.
	kept map[string][]metav1.PartialObjectMetadata
	// unmirrored are those in which an object that is not the hub's has its name, which the error names.
	unmirrored map[string]error
}

// delivery is one AddonDelivery, with what belongs to it.
type delivery struct {
	*hubv1.AddonDelivery
	before *hubv1.AddonDelivery
	set    *hubv1.AddonSet // nil if it does not exist
	// Verdict says whether the set's controller made it.
	provenance.Verdict
	// selected is true if its set selects the cluster now.
	selected bool
	// leaving is true if the set withdraws it. A delivery that a user deletes is made again, and nothing of it
	// leaves.
	leaving bool
	// wantedAgain is true if the set makes it again when it is gone.
	wantedAgain bool
	// program is nil if the revision cannot be rendered. What the delivery has delivered stays as it is then.
	program *compile.Program
	// unrenderable says why, with a reason.
	unrenderable, reason string
	// failed is the error of reading or rendering the delivery, if the hub tries again. Until then what it has delivered
	// stays as it is, and the cluster's other deliveries go on.
	failed error
	// frozen is true if another version of the hub made the revision. Existing objects stay as they are then, and
	// missing ones are made. stays names the add-ons that have an object.
	frozen bool
	stays  map[string]bool
	// target is what the delivery is rendered for, and result is what it renders to; nil if it cannot be rendered.
	target render.Target
	result *render.Result
	// unreadable are the overrides and variables of the cluster's owner that cannot be read.
	unreadable []string
	// assembly.Portion is what it may deliver.
	assembly.Portion
	// uncopied are the copies of what lies beside the cluster that could not be made.
	uncopied []uncopied
	// whole renders the result again, with the bodies that memory does not keep.
	whole func() (*render.Result, error)
}

// object is a Flux object.
type object struct {
	plan.Observed
	state   fluxstate.State
	uid     types.UID
	version string
	// uses are the sources and charts that it refers to, as index.Source writes them.
	uses []string
	// reads are the copies of what lies beside the cluster that it reads.
	reads []index.Read
	// lacks is one of those that Flux waits for and the hub has not made; "" for none.
	lacks string
	// refusal is what Flux says of one that it waits for and could not fetch; zero for none.
	refusal fluxstate.Refusal
	// deleted is when it was deleted; zero if it was not.
	deleted time.Time
	// delivery names the AddonDelivery, in the object's namespace.
	delivery string
	orphan   bool
	// adopter is the namespace of the delivery that takes over a hand-written object; "" if the object is the hub's.
	adopter string
	// chart is the HelmChart that helm-controller keeps for a hand-written HelmRelease: namespace/name.
	chart string
	// account is the ServiceAccount that Flux acts as on the cluster; "" for none.
	account string
	// kept is the Helm release that it goes on with, whatever its add-on's name; zero for none.
	kept hubv1.HelmReleaseIdentity
}

func (c *cluster) reachable() bool { return c.registration != nil && status.Online(c.registration) }

// unprobed is true if the hub cannot probe the cluster: Flux logs in by workload identity.
func (c *cluster) unprobed() bool {
	return c.registration != nil && c.registration.Status.UsesWorkloadIdentity()
}

// suspended returns the condition by which the registration controller asks for suspended objects; nil if it does not ask
// for that.
func (c *cluster) suspended() *metav1.Condition {
	if c.registration == nil {
		return nil
	}
	return status.Find(c.registration, hubv1.SuspendedCondition)
}

// paused returns whether the cluster's objects are suspended because a user, or the origin, wants that. A cluster
// that does not answer is not paused.
func (c *cluster) paused() bool {
	s := c.suspended()
	return s != nil && !hubv1.Tripped(s.Reason)
}

// replaced says why an object that was made for the cluster with a UID is to be orphaned: the present cluster is
// another one, or another registration of it is served. A paused cluster's suspended objects do no harm, so they
// stay. It returns "" if the object is this registration's.
func (c *cluster) replaced(uid string) string {
	switch {
	case uid != "" && c.registration != nil && c.registration.Status.ClusterID() != "" && uid != c.registration.Status.ClusterID():
		return plan.ReplacedReason
	case c.duplicate() && !c.paused():
		return c.otherHas()
	}
	return ""
}

// answered is true if the cluster has answered once, or cannot be probed, so that objects may be made for it.
func (c *cluster) answered() bool {
	return c.registration != nil && c.registration.Status.Credential != nil && c.registration.Status.ClusterID() != ""
}

func (r *Reconciler) gather(ctx context.Context, k key) (*cluster, error) {
	c := &cluster{key: k, now: r.Clock.Now(), began: r.Tenure.Since(r.Clock.Now()),
		objects: map[plan.Key]*object{}, reach: map[string]match.Reach{},
		wasTeam: map[string]bool{}, outside: map[string]look{},
		mirrored: map[string]bool{}}
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{index.DeliveryRegistration: k.String()},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the deliveries: %w", err)
	}
	reg := &hubv1.ClusterRegistration{}
	if err := r.Client.Get(ctx, k, reg); err == nil {
		c.registration = reg
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
			c.ignored = append(c.ignored, d)
			continue
		}
		c.deliveries = append(c.deliveries, d)
	}
	if len(c.deliveries) == 0 {
		return c, nil
	}
	if err := r.gatherObjects(ctx, c); err != nil {
		return nil, err
	}
	for _, d := range c.deliveries {
		if err := r.gatherProgram(ctx, c, d); err != nil {
			d.fail(err)
		}
		if d.busy() {
			c.lookAgain(programs.Wait)
		}
	}
	return c, ctx.Err()
}

// duplicate returns whether another registration has the cluster, so that nothing of this one may stay there.
func (c *cluster) duplicate() bool {
	return c.registration != nil && c.registration.Status.DuplicateOf != nil
}

// otherHas says which registration has the cluster.
func (c *cluster) otherHas() string {
	return fmt.Sprintf("ClusterRegistration %s has the cluster", c.registration.Status.DuplicateOf.Key())
}

// gatherOrigin reads the object that expressions see as origin, and that has some of the cluster's variables. If it does not exist any
// more, or cannot be read, nothing is rendered: see originless.
func (r *Reconciler) gatherOrigin(ctx context.Context, c *cluster) error {
	if c.registration == nil || c.registration.Spec.OriginRef == nil {
		return nil
	}
	kind, err := originreader.KindOf(c.registration)
	if err != nil {
		return nil
	}
	obj, _, err := r.Origins.Get(ctx, kind, types.NamespacedName{Namespace: c.key.Namespace, Name: c.registration.Spec.OriginRef.Name})
	c.origin = obj
	return err
}

// originless says that the origin of the cluster does not exist, or cannot be read; "" if it can, or if the registration names none.
// Nothing is rendered without it: what it does not say is unknown, and not absent.
func (c *cluster) originless() string {
	if c.registration == nil || c.registration.Spec.OriginRef == nil || c.origin != nil {
		return ""
	}
	ref := c.registration.Spec.OriginRef
	return fmt.Sprintf("%s %s/%s, the origin of the cluster, does not exist or cannot be read: what is delivered stays as it is, and the hub "+
		"makes and changes nothing until it can read the origin again. Bring the origin back, or delete ClusterRegistration %s",
		ref.Kind, c.key.Namespace, ref.Name, c.key)
}

// gatherDelivery reads the set of a delivery, and decides by it who made the delivery. in is the cache's own object,
// as are the set and the revision. They are not copied, since that would be most of the work, so no caller may write to
// them.
func (r *Reconciler) gatherDelivery(ctx context.Context, c *cluster, in *hubv1.AddonDelivery) *delivery {
	d := &delivery{AddonDelivery: in.DeepCopy(), before: in}
	from, err := r.reachOf(ctx, c, in.Namespace)
	if err != nil {
		d.Verdict = provenance.Verdict{Standing: provenance.Held} // whether the hub made it is not known
		d.fail(err)
		return d
	}
	set := &hubv1.AddonSet{}
	err = r.Client.Get(ctx, types.NamespacedName{Namespace: in.Namespace, Name: in.Spec.AddonSetRef.Name}, set, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil:
		d.set = set
	case !apierrors.IsNotFound(err):
		if d.Verdict = provenance.Of(in, nil, c.registration, from); provenance.Named(in) {
			d.Standing = provenance.Held // whether the set made it is not known
		}
		d.fail(fmt.Errorf("read AddonSet %s: %w", d.SetKey(), err))
		return d
	}
	d.Verdict = provenance.Of(in, d.set, c.registration, from)
	if err := r.lookOutside(ctx, c, d); err != nil {
		d.fail(err)
		return d
	}
	d.selected = c.selects(d)
	if d.leaving, err = r.leaves(ctx, d); err != nil {
		d.leaving = false
		d.fail(err)
	}
	return d
}

// revision reads a revision, live if the cache does not have it: the delivery that names it may have been faster. While it is not known
// what the delivery takes over from others, they would remove it.
func (r *Reconciler) revision(ctx context.Context, name types.NamespacedName) (*appsv1.ControllerRevision, error) {
	revision := &appsv1.ControllerRevision{}
	err := r.Client.Get(ctx, name, revision, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		revision = &appsv1.ControllerRevision{}
		err = r.Live.Get(ctx, name, revision)
	}
	return revision, err
}

// gatherProgram reads the revision of a delivery, if anything may be made for it.
func (r *Reconciler) gatherProgram(ctx context.Context, c *cluster, d *delivery) error {
	if d.leaving || d.failed != nil {
		return nil
	}
	d.wantedAgain = c.wantsAgain(d)
	if d.reason, d.unrenderable = c.refusal(d); d.reason != "" {
		return nil
	}
	in := d.AddonDelivery
	d.frozen = !strings.HasSuffix(in.Spec.RevisionName, fmt.Sprintf("-e%d", render.Epoch))
	revision, err := r.revision(ctx, types.NamespacedName{Namespace: in.Namespace, Name: in.Spec.RevisionName})
	if apierrors.IsNotFound(err) {
		d.reason, d.unrenderable = hubv1.RevisionNotFoundReason,
			fmt.Sprintf("ControllerRevision %q does not exist; what is delivered stays as it is", in.Spec.RevisionName)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read ControllerRevision %s: %w", in.Spec.RevisionName, err)
	}
	if !metav1.IsControlledBy(revision, d.set) {
		d.reason, d.unrenderable = hubv1.RevisionNotFoundReason, fmt.Sprintf(
			"ControllerRevision %q does not belong to AddonSet %s; what is delivered stays as it is", in.Spec.RevisionName, d.SetKey())
		return nil
	}
	author := c.reach[in.Namespace].Author(in.Spec.AddonSetRef.Name)
	name := "" // a revision never changes
	if revision.UID != "" {
		name = "revision " + string(revision.UID)
	}
	d.program, err = r.Programs.Get(name, author, func() ([]byte, error) {
		return revision.Data.Raw, genuine(revision, author.Set)
	})
	if errors.Is(err, programs.ErrBusy) {
		return err
	}
	if err != nil {
		// The set compiled when the revision was made. A flag of the hub has changed since.
		d.reason, d.unrenderable = hubv1.InvalidSpecReason, err.Error()
	}
	return nil
}

// version returns the resourceVersion that an object had when it was read; "" if it does not exist.
func (c *cluster) version(o expectations.Object) string {
	if o.Kind == deliveryKind {
		if d := c.delivery(o.Namespace, o.Name); d != nil {
			return d.ResourceVersion
		}
		return ""
	}
	if there := c.objects[plan.Key{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}]; there != nil {
		return there.version
	}
	return ""
}

// deliveryKind is the kind of a delivery in expectations.Object.
const deliveryKind = "AddonDelivery"

// delivery returns the delivery with a name, or nil.
func (c *cluster) delivery(namespace, name string) *delivery {
	for _, d := range c.deliveries {
		if d.Namespace == namespace && d.Name == name {
			return d
		}
	}
	return nil
}

// addon returns the status of an add-on before this pass, or nil.
func (d *delivery) addon(name string) *hubv1.AddonStatus {
	for i := range d.before.Status.Addons {
		if d.before.Status.Addons[i].Name == name {
			return &d.before.Status.Addons[i]
		}
	}
	return nil
}

// was returns the status of an add-on before this pass; zero if there is none.
func was(d *delivery, addon string) hubv1.AddonStatus {
	if s := d.addon(addon); s != nil {
		return *s
	}
	return hubv1.AddonStatus{}
}
