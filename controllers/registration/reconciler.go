// SPDX-License-Identifier: Apache-2.0

// Package registration is the controller for one cluster's credentials. It finds and checks the kubeconfig, probes the
// cluster, collects facts, and takes its finalizer off the registration when no delivery is left. It is the only
// writer of a registration's status.
package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/expectations"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/pace"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/serving"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Reconciler works on one registration at a time.
type Reconciler struct {
	Client   client.Client
	Live     client.Reader
	Origins  *originreader.Reader
	Config   *hubconfig.Config
	Pool     *probe.Pool
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	// HubUID is the kube-system UID of the management cluster itself.
	HubUID types.UID
	// Tenure is that of this process; nil if nothing is known of it.
	Tenure *tenure.Tenure

	secrets      secretCache
	notes        notes
	waiting      pace.Waiting
	expectations expectations.Expectations[types.NamespacedName]
}

// Reconcile brings a registration's status, labels and finalizer up to date.
func (r *Reconciler) Reconcile(ctx context.Context, reg *hubv1.ClusterRegistration) (ctrl.Result, error) {
	return apply.Retried(r.reconcile(ctx, reg))
}

func (r *Reconciler) reconcile(ctx context.Context, reg *hubv1.ClusterRegistration) (ctrl.Result, error) {
	cached := func(expectations.Object) string { return reg.ResourceVersion }
	if !r.expectations.Satisfied(client.ObjectKeyFromObject(reg), cached, r.Clock.Now()) {
		return ctrl.Result{RequeueAfter: expectations.Wait}, nil
	}
	obj, verdict, err := r.origin(ctx, reg)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !reg.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, reg, obj, verdict)
	}
	if controllerutil.AddFinalizer(reg, hubv1.Finalizer) {
		return ctrl.Result{}, r.addFinalizer(ctx, reg)
	}
	before := reg.DeepCopy()
	reg.Status.Provider = provider(reg)
	seen(reg, obj, verdict)
	found, refused, err := r.access(ctx, reg, obj, verdict)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.expiry(ctx, reg); err != nil {
		return ctrl.Result{}, err
	}
	again, doubt, err := r.suspend(ctx, reg, obj, refused)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.dated(before, reg)
	sets, err := r.serves(ctx, reg)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.unregistering(reg, verdict)
	sets.Doubt = doubt
	sets.Unreadable(reg, obj)
	drained, failed := r.drain(ctx, reg, obj, sets)
	sets.Summarize(reg, serving.Access{Waiting: found.waiting, Refused: refused}, r.Clock.Now())
	wait := r.waiting.For(client.ObjectKeyFromObject(reg), pace.Registration(before, reg, sets.Lags()), pace.Delay(before), r.Clock.Now())
	if wait == 0 {
		if err := r.writeStatus(ctx, before, reg, obj); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: pace.Sooner(wait, drained, again, r.nextLook(reg))}, errors.Join(failed, found.unread, r.label(ctx, reg))
}

// serves says what is delivered to the cluster through a registration, and whether another registration has the cluster.
func (r *Reconciler) serves(ctx context.Context, reg *hubv1.ClusterRegistration) (*serving.Sets, error) {
	if err := r.duplicates(ctx, reg); err != nil {
		return nil, err
	}
	return r.sets(ctx, reg)
}

// writeStatus writes the status of a registration, and sends events about what has changed.
func (r *Reconciler) writeStatus(ctx context.Context, before, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured) error {
	if err := apply.Status(ctx, r.Client, before, reg); err != nil {
		return err
	}
	if reg.ResourceVersion != before.ResourceVersion {
		r.wrote(reg)
	}
	r.tellAll(before, reg, obj)
	return nil
}

// tellAll sends an event for each thing that has changed.
func (r *Reconciler) tellAll(before, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured) {
	r.tell(before, reg)
	r.tellSuspended(before, reg)
	r.tellDuplicates(before, reg)
	r.tellExpiry(before, reg)
	r.tellDrain(before, reg, obj)
}

// origin reads the origin of a registration, if it has one.
func (r *Reconciler) origin(ctx context.Context, reg *hubv1.ClusterRegistration) (*unstructured.Unstructured, origin.Verdict, error) {
	if reg.Spec.OriginRef == nil {
		return nil, origin.Verdict{Origin: teardown.OriginNone}, nil
	}
	kind, err := originreader.KindOf(reg)
	if err != nil {
		return nil, origin.Verdict{Origin: teardown.OriginUnknown}, nil // resolve says so in the status
	}
	return r.Origins.Get(ctx, kind, types.NamespacedName{Namespace: reg.Namespace, Name: reg.Spec.OriginRef.Name})
}

// seen notes that the hub sees the origin. A registration with a kubeconfig of its own outlives the Secret that it came from: then nothing
// asks for it any more, and the policies let its owner delete it.
func seen(reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured, verdict origin.Verdict) {
	switch kind, err := kindOf(reg); {
	case obj != nil:
		reg.Status.OriginUID, reg.Status.OriginSeenBy = obj.GetUID(), reg.UID
	case err == nil && !kind.IsCluster() && verdict.Origin == teardown.OriginGone && reg.Spec.KubeConfig != nil:
		reg.Status.OriginSeenBy = ""
	}
}

// provider says where a cluster comes from; "" if the hub does not know its kind of origin.
func provider(reg *hubv1.ClusterRegistration) string {
	name, _ := origin.Provider(&reg.Spec)
	return name
}

func (r *Reconciler) addFinalizer(ctx context.Context, reg *hubv1.ClusterRegistration) error {
	before := reg.DeepCopy()
	controllerutil.RemoveFinalizer(before, hubv1.Finalizer)
	// The list is replaced as a whole, so it must be the list that was read.
	err := r.Client.Patch(ctx, reg, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("add finalizer: %w", err))
	}
	return nil
}

// unregistering sets the condition that the origin has lost its label, or is a Secret that does not exist, and since
// when. Discovery counts its delay from there.
func (r *Reconciler) unregistering(reg *hubv1.ClusterRegistration, verdict origin.Verdict) {
	var reason, message string
	switch {
	case verdict.Origin == teardown.OriginUnwanted && !verdict.AtOnce && verdict.Refused == "":
		reason, message = hubv1.LabelRemovedReason,
			fmt.Sprintf("label %s is gone from %s %q: it is unregistered %s after that, unless the label comes back",
				hubv1.RegisterLabel, reg.Spec.OriginRef.Kind, reg.Spec.OriginRef.Name, r.Config.DeselectionDelay)
		if len(r.Config.Origins.Rules) > 0 { // nothing notes by which of both it was registered
			message = fmt.Sprintf("%s %q has no label %s, and no registration rule matches it: it is unregistered %s after that, unless "+
				"either comes back", reg.Spec.OriginRef.Kind, reg.Spec.OriginRef.Name, hubv1.RegisterLabel, r.Config.DeselectionDelay)
		}
	case verdict.Origin == teardown.OriginGone && missing(reg):
		reason, message = hubv1.OriginMissingReason,
			fmt.Sprintf("Secret %q, which it came from, is gone or is being deleted: its add-ons are served on with the hub's own "+
				"copy of the kubeconfig, "+
				"and are orphaned %s after that, unless it comes back", reg.Spec.OriginRef.Name, r.Config.TeardownGrace)
	}
	if was := status.Reason(reg, hubv1.UnregisteringCondition); was != reason {
		status.Clear(reg, hubv1.UnregisteringCondition) // each delay runs from its own beginning
	}
	if reason != "" {
		status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, reason, message, r.Clock.Now())
	}
}

// missing returns whether the hub has seen an origin that does not exist now, and that is a Secret. Without it the hub does not
// know how to reach the cluster, or, once the registration is deleted, whether the registration is made again.
func missing(reg *hubv1.ClusterRegistration) bool {
	kind, err := kindOf(reg)
	return err == nil && !kind.IsCluster() && reg.SawOrigin() && (reg.Spec.KubeConfig == nil || reg.DeletionTimestamp != nil)
}

// label sets the label that a probe found out, and, on a registration without an origin, those that discovery sets on
// others. It has a field manager of its own, because discovery owns the rest.
func (r *Reconciler) label(ctx context.Context, reg *hubv1.ClusterRegistration) error {
	want := map[string]string{}
	if minor := kubernetesMinor(reg.Status.KubernetesVersion); minor != "" {
		want[hubv1.KubernetesMinorLabel] = minor
	}
	if reg.Spec.OriginRef == nil {
		want[hubv1.ProviderLabel] = provider(reg)
		if len(reg.Name) <= validation.LabelValueMaxLength {
			want[hubv1.NameLabel] = reg.Name
		}
	}
	// The version was known once, if a kubeconfig was in use before.
	stale := reg.Status.UsesWorkloadIdentity() && reg.Labels[hubv1.KubernetesMinorLabel] != ""
	if !stale && !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(k string) bool { return reg.Labels[k] != want[k] }) {
		return nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(hubv1.GroupVersion.WithKind("ClusterRegistration"))
	u.SetNamespace(reg.Namespace)
	u.SetName(reg.Name)
	u.SetUID(reg.UID) // never make a registration that has gone meanwhile
	u.SetLabels(want)
	u.Object["spec"] = map[string]any{}
	err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(hubv1.FieldManager),
		client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("label the registration: %w", err)
	}
	r.wrote(u)
	return nil
}

// wrote expects to see a registration as it was written.
func (r *Reconciler) wrote(reg client.Object) {
	r.expectations.Expect(client.ObjectKeyFromObject(reg), "ClusterRegistration", reg, r.Clock.Now())
}

func (r *Reconciler) tell(before, after *hubv1.ClusterRegistration) {
	was, is := status.Find(before, hubv1.ReachableCondition), status.Find(after, hubv1.ReachableCondition)
	if is != nil && (was == nil || was.Status != is.Status) {
		switch is.Status {
		case metav1.ConditionTrue:
			r.Recorder.Eventf(after, nil, corev1.EventTypeNormal, hubv1.ReachableCondition, "Probe", "%s", is.Message)
		case metav1.ConditionFalse:
			r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, hubv1.ClusterUnreachableReason, "Probe", "%s: %s", is.Reason, is.Message)
		}
	}
	if a, b := before.Status.ClusterID(), after.Status.ClusterID(); a != "" && b != "" && a != b {
		how := fmt.Sprintf("kube-system has UID %s, and had %s", b, a)
		if before.Status.UsesWorkloadIdentity() || after.Status.UsesWorkloadIdentity() {
			how = "it is named in another way, and the hub cannot ask whether it is the same"
		}
		r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, hubv1.ClusterReplacedEvent, "Probe",
			"another cluster is behind this registration: %s. What was delivered stays on the old one, and is delivered to the new one", how)
	}
	if a, b := before.Status.Credential, after.Status.Credential; a != nil && b != nil && a.Fingerprint != b.Fingerprint {
		r.Recorder.Eventf(after, nil, corev1.EventTypeNormal, hubv1.KubeConfigChangedEvent, "Resolve", "%s changed", credentialText(b))
	}
}

func credentialText(c *hubv1.CredentialStatus) string {
	if c.WorkloadIdentity != "" {
		return "the workload identity of provider " + c.WorkloadIdentity
	}
	return fmt.Sprintf("the kubeconfig in Secret %q, key %q,", c.SecretName, c.Key)
}
