// SPDX-License-Identifier: Apache-2.0

// Package discovery turns origins into ClusterRegistrations and keeps their labels in step. It knows Kamaji, Cluster
// API and Secrets; the controllers after it do not. It owns originRef and the copied labels through a field manager of
// its own. It never forces ownership, so a field of a registration that somebody else has set stays.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/demise"
	"github.com/chandler-hub/chandler/controllers/expectations"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Reconciler works on one origin at a time.
type Reconciler struct {
	Client   client.Client
	Live     client.Reader
	Origins  *originreader.Reader
	Config   *hubconfig.Config
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	// Tenure is that of this process.
	Tenure *tenure.Tenure

	expectations expectations.Expectations[Request]
}

// Request names an origin.
type Request struct {
	Kind origin.Kind
	types.NamespacedName
}

// Reconcile makes, keeps or removes the registration of an origin.
func (r *Reconciler) Reconcile(ctx context.Context, req Request) (reconcile.Result, error) {
	obj, verdict, err := r.Origins.Get(ctx, req.Kind, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	reg, err := r.find(ctx, req)
	if err != nil {
		return reconcile.Result{}, err
	}
	if verdict.NoKubeConfig && reg != nil && reg.Spec.KubeConfig != nil { // somebody who may write registrations has said how to get in
		verdict = origin.Verdict{Origin: teardown.OriginWanted, By: verdict.By}
	}
	if !r.expectations.Satisfied(req, version(reg), r.Clock.Now()) {
		return reconcile.Result{RequeueAfter: expectations.Wait}, nil
	}
	if verdict.Copied && reg != nil {
		// Somebody may have written a label right before the deletion, or with it. What a set selects by it stays then.
		if err := r.ensure(ctx, req, obj, verdict, reg); err != nil {
			return reconcile.Result{}, err
		}
	}
	if obj == nil || verdict.Origin == teardown.OriginGone {
		return r.absent(ctx, req, verdict, reg)
	}
	switch verdict.Origin {
	case teardown.OriginWanted:
		return reconcile.Result{}, r.ensure(ctx, req, obj, verdict, reg)
	case teardown.OriginDeleting:
		return reconcile.Result{}, r.remove(ctx, obj, reg, "its origin is being deleted")
	}
	if verdict.Refused != "" {
		r.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, hubv1.NotRegisteredEvent, "Register", "not registered: %s",
			excerpt.Of(verdict.Refused, 900))
	}
	if reg == nil || verdict.Refused != "" && !verdict.AtOnce {
		return reconcile.Result{}, nil
	}
	if verdict.AtOnce && !reg.SawOrigin() {
		return reconcile.Result{}, nil // the registration controller has not looked yet how to reach the cluster; that wakes us
	}
	if verdict.AtOnce {
		return reconcile.Result{}, r.remove(ctx, obj, reg, fmt.Sprintf("label %s is \"false\"", hubv1.RegisterLabel))
	}
	return r.removeAfterDelay(ctx, req, obj, reg)
}

// version returns a function that returns the resourceVersion of a registration, "" if it does not exist.
func version(reg *hubv1.ClusterRegistration) func(expectations.Object) string {
	return func(expectations.Object) string {
		if reg == nil {
			return ""
		}
		return reg.ResourceVersion
	}
}

// absent handles an origin that does not exist. Absence alone removes nothing: the origin may be about to be restored
// from a backup. An origin that the hub saw in this management cluster was deleted while no hub ran, or was moved
// away. A Secret is not the cluster itself, so the hub waits for it.
func (r *Reconciler) absent(ctx context.Context, req Request, verdict origin.Verdict,
	reg *hubv1.ClusterRegistration) (reconcile.Result, error) {
	if reg == nil || reg.DeletionTimestamp != nil || verdict.Origin != teardown.OriginGone {
		return reconcile.Result{}, nil
	}
	why := fmt.Sprintf("%s %q, which it came from, was deleted", req.Kind.Kind, req.Name)
	if !req.Kind.IsCluster() {
		if left, ok := r.left(reg, hubv1.OriginMissingReason, r.Config.TeardownGrace); !ok || left > 0 {
			return reconcile.Result{RequeueAfter: left}, nil
		}
		why = fmt.Sprintf("%s %q, which it came from, has not been there for %s", req.Kind.Kind, req.Name, r.Config.TeardownGrace)
	}
	deleted, err := r.Origins.Deleted(ctx, req.Kind, reg, req.Name)
	if err != nil || !deleted {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.remove(ctx, reg, reg, why)
}

// left returns how much is left of a delay that the registration controller counts in a condition; false if it does not
// count one, or has not written that yet. It begins anew with each process: while none was at work, the label or the Secret may have been
// there again.
func (r *Reconciler) left(reg *hubv1.ClusterRegistration, reason string, delay time.Duration) (time.Duration, bool) {
	c := status.Find(reg, hubv1.UnregisteringCondition)
	if c == nil || c.Reason != reason {
		return 0, false
	}
	if left := delay - r.Tenure.Worked(c.LastTransitionTime.Time, r.Clock.Now()); left > 0 {
		return left + 10*time.Millisecond, true
	}
	return 0, true
}

// find returns the registration of an origin, or nil.
func (r *Reconciler) find(ctx context.Context, req Request) (*hubv1.ClusterRegistration, error) {
	regs := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, regs, client.InNamespace(req.Namespace),
		client.MatchingFields{index.RegistrationOrigin: index.Origin(req.Kind.Reference(req.Name))}); err != nil {
		return nil, fmt.Errorf("find the registration: %w", err)
	}
	if len(regs.Items) == 0 {
		return nil, nil
	}
	return regs.Items[0].DeepCopy(), nil
}

// ensure makes the registration or brings it up to date.
func (r *Reconciler) ensure(ctx context.Context, req Request, obj *unstructured.Unstructured, verdict origin.Verdict,
	reg *hubv1.ClusterRegistration) error {
	if reg != nil && status.Goes(reg) {
		return nil // made again when it is gone; the registration controller lets it go
	}
	if reg == nil && req.Kind.Silent(obj) {
		return nil // what it says wakes us
	}
	first := verdict.RegistrationName(req.Name)
	name, fresh, err := r.name(ctx, req, first, reg)
	if byHand := (writtenByHand{}); errors.As(err, &byHand) {
		r.tellByHand(req, obj, byHand)
		return nil
	}
	if err != nil || name == "" {
		if name == "" && err == nil {
			r.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, hubv1.NotRegisteredEvent, "Register",
				"not registered: ClusterRegistrations %q and %q belong to other origins", first, secondName(req.Kind, first))
		}
		return err
	}
	desired := origin.CopiedLabels(verdict.By.Over(obj.GetLabels()))
	desired[hubv1.NameLabel] = name
	if len(name) > 63 {
		delete(desired, hubv1.NameLabel)
	}
	desired[hubv1.ProviderLabel] = req.Kind.Provider
	if upToDate(reg, desired) {
		return nil
	}
	if err := r.mayRegister(ctx, fresh); err != nil {
		return err
	}
	if err := r.apply(ctx, req, obj, reg, name, desired); apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // nothing is made here any more, and the origin goes too
	} else if err != nil {
		return err
	}
	if fresh {
		by := ""
		if verdict.By != nil {
			by = fmt.Sprintf(", by rule %q", verdict.By.Rule)
		}
		log.FromContext(ctx).Info("registered a cluster", logkey.Cluster, req.Namespace+"/"+name)
		r.Recorder.Eventf(obj, nil, corev1.EventTypeNormal, hubv1.RegisteredEvent, "Register", "registered as ClusterRegistration %q%s", name, by)
	}
	return nil
}

// mayRegister returns an error while the CRD of registrations is being deleted. Kubernetes 1.30 lets a server-side apply make an object
// then, and waits for that to go before the CRD may.
func (r *Reconciler) mayRegister(ctx context.Context, fresh bool) error {
	if !fresh {
		return nil
	}
	going, err := demise.AnyKind(ctx, r.Live, demise.Registrations)
	if err == nil && going {
		err = errors.New("nothing is registered while the CRD of ClusterRegistrations is being deleted")
	}
	return err
}

// name returns the name that the registration of an origin has or may take: the first, or that with the kind if another
// origin has it; "" if both are taken. fresh is true if there is no registration of that name yet. A registration keeps its name, whatever
// a rule says now.
func (r *Reconciler) name(ctx context.Context, req Request, first string,
	reg *hubv1.ClusterRegistration) (name string, fresh bool, err error) {
	if reg != nil {
		return reg.Name, false, nil
	}
	want := req.Kind.Reference(req.Name)
	for _, name := range origin.RegistrationNames(req.Kind, first) {
		there := &hubv1.ClusterRegistration{}
		// Read live: two origins of one name may have been labelled in one commit.
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: req.Namespace, Name: name}, there)
		switch {
		case apierrors.IsNotFound(err):
			return name, true, nil
		case err != nil:
			return "", false, fmt.Errorf("look for registration %s: %w", name, err)
		case there.Spec.OriginRef == nil && there.Spec.KubeConfig != nil:
			return "", false, writtenByHand{there}
		case there.Spec.OriginRef == nil || *there.Spec.OriginRef == want:
			return name, false, nil // kept in Git by somebody, without the origin
		}
	}
	return "", false, nil
}

// writtenByHand returns whether a registration has a kubeconfig of its own and no origin: somebody has registered a
// cluster by hand. It may be another cluster than the origin's, or the same one; only that person knows. So the
// registration is left alone, and the origin is not registered, since its cluster could be registered twice.
type writtenByHand struct{ *hubv1.ClusterRegistration }

func (w writtenByHand) Error() string { return "written by hand" }

// tellByHand sends an event to both.
func (r *Reconciler) tellByHand(req Request, obj *unstructured.Unstructured, w writtenByHand) {
	r.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, hubv1.NotRegisteredEvent, "Register",
		"not registered: ClusterRegistration %q was written by hand, with a spec.kubeConfig of its own. If it is this cluster, "+
			"write %s into it; else give it another name", w.Name, req.Kind.Written(req.Name))
	r.Recorder.Eventf(w.ClusterRegistration, nil, corev1.EventTypeWarning, hubv1.NotRegisteredEvent, "Register",
		"%s", req.Kind.Ignored(req.Name))
}

// upToDate returns whether a registration has every label, and has no other copied ones. A label that another writer
// owns with another value is marked in the annotation. It counts as long as it exists.
func upToDate(reg *hubv1.ClusterRegistration, desired map[string]string) bool {
	if reg == nil {
		return false
	}
	var theirs []string
	for _, k := range strings.Split(reg.Annotations[hubv1.CopiedAnnotation], ",") {
		if k, marked := strings.CutPrefix(k, origin.KeptMark); marked {
			theirs = append(theirs, k)
		}
	}
	if reg.Annotations[hubv1.CopiedAnnotation] != copiedLabels(desired, theirs) {
		return false
	}
	for k, v := range desired {
		has, there := reg.Labels[k]
		if has != v && !(there && slices.Contains(theirs, k)) {
			return false
		}
	}
	return true
}

// copiedLabels returns the value of the annotation that lists the copied labels, and marks those that another writer owns.
func copiedLabels(desired map[string]string, theirs []string) string {
	marked := make(map[string]string, len(desired))
	for k := range desired {
		if slices.Contains(theirs, k) {
			k = origin.KeptMark + k
		}
		marked[k] = ""
	}
	return keys(marked)
}

func keys(m map[string]string) string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// apply writes the fields that discovery owns. Labels that somebody else has set to another value are theirs: they are left
// out, and an event says so. An origin that is being deleted has no registration made.
func (r *Reconciler) apply(ctx context.Context, req Request, obj *unstructured.Unstructured, reg *hubv1.ClusterRegistration, name string,
	desired map[string]string) error {
	ref := req.Kind.Reference(req.Name)
	write := func(labels map[string]string, theirs []string) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(hubv1.GroupVersion.WithKind("ClusterRegistration"))
		u.SetNamespace(req.Namespace)
		u.SetName(name)
		if obj.GetDeletionTimestamp() != nil {
			u.SetUID(reg.UID)
		}
		u.SetLabels(labels)
		u.SetFinalizers([]string{hubv1.Finalizer}) // the registration controller's, and one write less than if it did
		u.SetAnnotations(map[string]string{hubv1.CopiedAnnotation: copiedLabels(desired, theirs)})
		originRef := map[string]any{"kind": ref.Kind, "name": ref.Name}
		if ref.APIGroup != "" {
			originRef["apiGroup"] = ref.APIGroup
		}
		u.Object["spec"] = map[string]any{"originRef": originRef}
		if err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(hubv1.DiscoveryFieldManager)); err != nil {
			return err
		}
		r.expectations.Expect(req, "ClusterRegistration", u, r.Clock.Now())
		return nil
	}
	err := write(desired, nil)
	if left, theirs := without(desired, err); len(theirs) > 0 {
		if err = write(left, theirs); err == nil {
			r.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, hubv1.LabelConflictEvent, "Register",
				"ClusterRegistration %q has its own value for %s; it is kept", name, strings.Join(theirs, ", "))
		}
	}
	if slices.Contains(conflicts(err), ".metadata.annotations."+hubv1.CopiedAnnotation) {
		r.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, hubv1.LabelConflictEvent, "Register",
			"ClusterRegistration %q does not follow the labels of its origin: another writer has its annotation %s, as a backup that was restored "+
				"may. Remove the annotation from it, and the labels that the annotation lists: the hub writes them again", name, hubv1.CopiedAnnotation)
	}
	if err != nil {
		return fmt.Errorf("apply ClusterRegistration %s/%s: %w", req.Namespace, name, err)
	}
	return nil
}

// without returns the labels that are in no conflict, and the names of those that are.
func without(labels map[string]string, conflict error) (left map[string]string, theirs []string) {
	left = map[string]string{}
	fields := conflicts(conflict)
	for k, v := range labels {
		if slices.Contains(fields, ".metadata.labels."+k) {
			theirs = append(theirs, k)
			continue
		}
		left[k] = v
	}
	slices.Sort(theirs)
	return left, theirs
}

// conflicts returns the fields that belong to another writer, such as ".metadata.labels.env", according to the API server's answer to a
// server-side apply.
func conflicts(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// removeAfterDelay removes a registration whose origin lost its label some time ago, or was matched by a rule for the last time then. The
// registration controller notes since when, in a condition.
func (r *Reconciler) removeAfterDelay(ctx context.Context, req Request, obj *unstructured.Unstructured,
	reg *hubv1.ClusterRegistration) (reconcile.Result, error) {
	if left, ok := r.left(reg, hubv1.LabelRemovedReason, r.Config.DeselectionDelay); !ok || left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil // or the condition is not written yet, which wakes us
	}
	return reconcile.Result{}, r.remove(ctx, obj, reg, r.Config.Origins.Unasked(req.Kind))
}

// remove deletes a registration, with an event about its origin, if that exists.
func (r *Reconciler) remove(ctx context.Context, obj client.Object, reg *hubv1.ClusterRegistration, why string) error {
	if reg == nil || reg.DeletionTimestamp != nil {
		return nil
	}
	// Exactly the object that was decided on, and no other that took its place.
	err := r.Client.Delete(ctx, reg, client.Preconditions{UID: &reg.UID})
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("delete ClusterRegistration %s/%s: %w", reg.Namespace, reg.Name, err))
	}
	log.FromContext(ctx).Info("unregistering a cluster", logkey.Cluster, client.ObjectKeyFromObject(reg).String(), "why", why)
	r.Recorder.Eventf(obj, nil, corev1.EventTypeNormal, hubv1.UnregisteredReason, "Unregister",
		"ClusterRegistration %q is unregistered: %s", reg.Name, why)
	return nil
}
