// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// cluster is everything that is known of one cluster, read at one moment.
type cluster struct {
	key          key
	registration *hubv1.ClusterRegistration // nil if it is not there
	deliveries   []*delivery
	// objects are the Flux objects of this cluster that the hub made.
	objects map[plan.Key]*object
	// mirrored are the namespaces in which the kubeconfig mirror is in place.
	mirrored map[string]bool
}

// delivery is one AddonDelivery with what belongs to it.
type delivery struct {
	*hubv1.AddonDelivery
	before *hubv1.AddonDelivery
	set    *hubv1.AddonSet // nil if it is not there
	// program is nil if the revision cannot be rendered: what the delivery has stays as it is.
	program *compile.Program
	// unrenderable says why, with a reason.
	unrenderable, reason string
	// wanted are the objects that it won, and lost says of the other add-ons to whom they were lost.
	wanted []render.Object
	lost   map[string]string
}

// object is a Flux object that is there.
type object struct {
	plan.Observed
	state fluxstate.State
	// delivery names the AddonDelivery, in the object's namespace.
	delivery string
	orphan   bool
}

func (c *cluster) reachable() bool {
	return c.registration != nil && status.IsTrue(c.registration, hubv1.ReachableCondition)
}

// answered is true if the cluster has answered once, so that objects may be made for it.
func (c *cluster) answered() bool {
	return c.registration != nil && c.registration.Status.Credential != nil && c.registration.Status.ClusterUID != ""
}

func (r *Reconciler) gather(ctx context.Context, k key) (*cluster, error) {
	c := &cluster{key: k, objects: map[plan.Key]*object{}, mirrored: map[string]bool{}}
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{index.DeliveryRegistration: k.String()}); err != nil {
		return nil, fmt.Errorf("list the deliveries: %w", err)
	}
	if len(list.Items) == 0 {
		return c, nil
	}
	reg := &hubv1.ClusterRegistration{}
	if err := r.Client.Get(ctx, k, reg); err == nil {
		c.registration = reg
	} else if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the registration: %w", err)
	}
	for i := range list.Items {
		d, err := r.gatherDelivery(ctx, &list.Items[i])
		if err != nil {
			return nil, err
		}
		c.deliveries = append(c.deliveries, d)
	}
	return c, r.gatherObjects(ctx, c)
}

func (r *Reconciler) gatherDelivery(ctx context.Context, in *hubv1.AddonDelivery) (*delivery, error) {
	d := &delivery{AddonDelivery: in, before: in.DeepCopy(), lost: map[string]string{}}
	set := &hubv1.AddonSet{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: in.Namespace, Name: in.Spec.AddonSetRef.Name}, set)
	switch {
	case err == nil:
		d.set = set
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read the set: %w", err)
	}
	if in.DeletionTimestamp != nil {
		return d, nil
	}
	if !strings.HasSuffix(in.Spec.RevisionName, fmt.Sprintf("-e%d", render.Epoch)) {
		d.reason, d.unrenderable = hubv1.FrozenReason, "the revision was made by another version of the hub; it stays as it is until the set changes"
		return d, nil
	}
	revision := &appsv1.ControllerRevision{}
	err = r.Client.Get(ctx, types.NamespacedName{Namespace: in.Namespace, Name: in.Spec.RevisionName}, revision)
	if apierrors.IsNotFound(err) {
		d.reason, d.unrenderable = hubv1.RevisionNotFoundReason, fmt.Sprintf("ControllerRevision %q is not there; what is delivered stays as it is", in.Spec.RevisionName)
		return d, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the revision: %w", err)
	}
	author := fluxspec.Author{Namespace: in.Namespace, Platform: r.Config.IsPlatform(in.Namespace)}
	if d.program, err = r.programs.get(revision, author); err != nil {
		// The set compiled when the revision was made: a flag of the hub has changed since.
		d.reason, d.unrenderable = hubv1.InvalidSpecReason, err.Error()
	}
	return d, nil
}

func (r *Reconciler) gatherObjects(ctx context.Context, c *cluster) error {
	selector := client.MatchingFields{index.ClusterKey: identity.ClusterKey(r.Config.HubID, c.key)}
	releases := &helmv2.HelmReleaseList{}
	if err := r.Client.List(ctx, releases, selector, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the HelmReleases: %w", err)
	}
	for i := range releases.Items {
		r.observe(c, &releases.Items[i], fluxspec.HelmReleaseKind)
	}
	kustomizations := &kustomizev1.KustomizationList{}
	if err := r.Client.List(ctx, kustomizations, selector, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the Kustomizations: %w", err)
	}
	for i := range kustomizations.Items {
		r.observe(c, &kustomizations.Items[i], fluxspec.KustomizationKind)
	}
	return nil
}

func (r *Reconciler) observe(c *cluster, obj client.Object, kind string) {
	a := obj.GetAnnotations()
	k := plan.Key{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
	o := &object{state: fluxstate.Of(obj), delivery: a[hubv1.DeliveryAnnotation], orphan: a[hubv1.DeletionPolicyAnnotation] == string(hubv1.DeletionPolicyOrphan)}
	o.Observed = plan.Observed{
		Key: k, Addon: obj.GetLabels()[hubv1.AddonLabel], Hash: a[hubv1.HashAnnotation], Labels: obj.GetLabels(),
		Generation: obj.GetGeneration(), Deleting: o.state.Deleting, Suspended: o.state.Suspended,
	}
	if d := a[hubv1.DependsOnAnnotation]; d != "" {
		o.DependsOn = strings.Split(d, ",")
	}
	if d := c.delivery(k.Namespace, o.delivery); d != nil {
		if s := d.addon(o.Addon); s != nil && s.Object == k.Name && s.Kind == kind {
			o.Applied = s.AppliedGeneration
		}
	}
	o.Applied = r.ledger.applied(k, obj.GetUID(), o.Applied)
	c.objects[k] = o
}

// delivery returns the delivery of a name, or nil.
func (c *cluster) delivery(namespace, name string) *delivery {
	for _, d := range c.deliveries {
		if d.Namespace == namespace && d.Name == name {
			return d
		}
	}
	return nil
}

// addon returns what the status said of an add-on before, or nil.
func (d *delivery) addon(name string) *hubv1.AddonStatus {
	for i := range d.before.Status.Addons {
		if d.before.Status.Addons[i].Name == name {
			return &d.before.Status.Addons[i]
		}
	}
	return nil
}

// planInput puts together what a plan is computed from.
func (c *cluster) planInput(now time.Time, grace time.Duration) plan.Input {
	in := plan.Input{MayCreate: c.answered(), Frozen: map[plan.Key]bool{}}
	for _, d := range c.deliveries {
		for _, o := range d.wanted {
			in.Desired = append(in.Desired, plan.Desired{Key: keyOf(o), Addon: o.Addon, Hash: o.Hash, Labels: o.Object.GetLabels()})
		}
	}
	for k, o := range c.objects {
		in.Observed = append(in.Observed, o.Observed)
		d := c.delivery(k.Namespace, o.delivery)
		in.Frozen[k] = d == nil || d.DeletionTimestamp == nil && d.program == nil
	}
	in.Removal = func(o plan.Observed) teardown.Decision { return teardown.Addon(c.removal(o, now, grace)) }
	return in
}

// removal gathers the facts by which an object leaves.
func (c *cluster) removal(o plan.Observed, now time.Time, grace time.Duration) teardown.Facts {
	obj := c.objects[o.Key]
	f := teardown.Facts{RegistrationFound: c.registration != nil, Reachable: c.reachable(), Orphan: obj.orphan, Since: now, Now: now, Grace: grace}
	d := c.delivery(o.Key.Namespace, obj.delivery)
	if d != nil {
		f.Orphan = f.Orphan || d.set != nil && d.set.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan
		switch s := d.addon(o.Addon); {
		case d.DeletionTimestamp != nil:
			f.Since = d.DeletionTimestamp.Time
		case s != nil && s.State == hubv1.AddonRemoving && s.Since != nil:
			f.Since = s.Since.Time
		}
	}
	if reg := c.registration; reg != nil {
		f.Orphan = f.Orphan || reg.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan
		u := status.Find(reg, hubv1.UnregisteringCondition)
		f.OriginDeleted = u != nil && u.Reason == hubv1.OriginDeletedReason
	}
	return f
}

func keyOf(o render.Object) plan.Key {
	return plan.Key{Kind: o.Kind, Namespace: o.Object.GetNamespace(), Name: o.Object.GetName()}
}
