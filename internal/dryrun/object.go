// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"errors"
	"fmt"

	"github.com/fluxcd/pkg/ssa"
	ssaerrors "github.com/fluxcd/pkg/ssa/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/excerpt"
)

// What Flux and Helm read on an object.
const (
	hookAnnotation      = "helm.sh/hook"
	policyAnnotation    = "helm.sh/resource-policy"
	pruneAnnotation     = "kustomize.toolkit.fluxcd.io/prune"
	applyAnnotation     = "kustomize.toolkit.fluxcd.io/ssa"
	forceAnnotation     = "kustomize.toolkit.fluxcd.io/force"
	reconcileAnnotation = "kustomize.toolkit.fluxcd.io/reconcile"
)

// look looks at one object. What it returns has no outcome if there is nothing to say of it.
func (j *job) look(ctx context.Context) diff.TriedObject {
	u := j.object
	out := diff.TriedObject{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		Set: j.part.Set, Addon: j.part.Addon}
	if j.over {
		out.Outcome, out.Reason = diff.TriedUnknown, fmt.Sprintf("only the first %d objects of a cluster are tried", j.limits.Objects)
		return out
	}
	if why := left(u); why != "" && !j.goes {
		out.Outcome, out.Reason = diff.TriedLeft, why
		return out
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err := j.part.Client.Get(ctx, client.ObjectKeyFromObject(u), live)
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	switch {
	case j.goes:
		out.Outcome, out.Reason = j.leaves(live, err)
	case err != nil:
		out.Outcome, out.Reason = j.failed(ctx, err)
	case j.once && live != nil:
		out.Outcome = diff.TriedUnchanged
	case j.part.Anew && live != nil:
		out.Outcome, out.Reason = diff.TriedRecreated, "Flux uninstalls the add-on and installs it again; what comes then is not tried"
	default:
		j.applied(ctx, live, &out)
	}
	return out
}

// left says why Flux does not apply an object as a part of the rest; "" if it does.
func left(u *unstructured.Unstructured) string {
	a := u.GetAnnotations()
	switch {
	case a[hookAnnotation] != "":
		return "a hook of Helm: " + excerpt.Cut(excerpt.Line(a[hookAnnotation]), 60)
	case a[reconcileAnnotation] == "disabled" || u.GetLabels()[reconcileAnnotation] == "disabled":
		return reconcileAnnotation + ": disabled"
	case a[applyAnnotation] == "Ignore":
		return applyAnnotation + ": Ignore"
	}
	return ""
}

// leaves says what becomes of an object that is not applied any more.
func (j *job) leaves(live *unstructured.Unstructured, err error) (diff.Outcome, string) {
	switch {
	case meta.IsNoMatchError(cause(err)) || err == nil && live == nil:
		return "", ""
	case err != nil:
		return diff.TriedUnknown, "it goes, and it is not known whether it is there: " + j.words(err)
	case left(j.object) != "": // Helm does not delete the objects of hooks with the release
		return "", ""
	case live.GetAnnotations()[policyAnnotation] == "keep" || j.object.GetAnnotations()[policyAnnotation] == "keep":
		return diff.TriedKept, policyAnnotation + ": keep"
	case live.GetAnnotations()[pruneAnnotation] == "disabled" || live.GetLabels()[pruneAnnotation] == "disabled":
		return diff.TriedKept, pruneAnnotation + ": disabled"
	}
	return diff.TriedRemoved, ""
}

// applied tries an object that is there, or not yet.
func (j *job) applied(ctx context.Context, live *unstructured.Unstructured, out *diff.TriedObject) {
	if live != nil && j.object.GetAnnotations()[applyAnnotation] == "IfNotPresent" {
		out.Outcome, out.Reason = diff.TriedLeft, applyAnnotation+": IfNotPresent"
		return
	}
	manager := ssa.NewResourceManager(j.part.Client, nil, ssa.Owner{Field: j.part.Manager})
	entry, before, after, err := manager.Diff(ctx, j.object.DeepCopy(), ssa.DiffOptions{})
	switch {
	case err != nil && live != nil && j.recreates(live) && ssaerrors.IsImmutableError(cause(err)):
		out.Outcome, out.Reason = diff.TriedRecreated, "Flux deletes it and makes it anew: "+j.words(err)
	case err != nil:
		out.Outcome, out.Reason = j.failed(ctx, err)
	case entry.Action == ssa.CreatedAction && live == nil:
		out.Outcome = diff.TriedCreated
	case entry.Action == ssa.ConfiguredAction && before != nil && after != nil && live != nil:
		out.Fields, out.More = diff.ObjectFields(live.Object, after.Object, j.limits.Fields)
		if out.Outcome = diff.TriedChanged; len(out.Fields) == 0 {
			out.Outcome = diff.TriedUnchanged
		}
		if clientSide(live, j.part.Manager) {
			out.Reason = "it was applied client-side: fields that the change drops may go without being told here"
		}
	case entry.Action == ssa.UnchangedAction:
		out.Outcome = diff.TriedUnchanged
	default:
		out.Outcome, out.Reason = diff.TriedUnknown, "it came or went meanwhile"
	}
}

// recreates returns whether Flux deletes an object that it may not change.
func (j *job) recreates(live *unstructured.Unstructured) bool {
	for _, u := range []*unstructured.Unstructured{j.object, live} {
		if u.GetAnnotations()[forceAnnotation] == "enabled" || u.GetLabels()[forceAnnotation] == "enabled" {
			return true
		}
	}
	return j.part.Recreate
}

// clientSide returns whether a manager has applied an object by an update, as Helm 3 does, and never by server-side apply.
func clientSide(live *unstructured.Unstructured, manager string) bool {
	updated := false
	for _, f := range live.GetManagedFields() {
		if f.Manager != manager || f.Subresource != "" {
			continue
		}
		if f.Operation == metav1.ManagedFieldsOperationApply {
			return false
		}
		updated = true
	}
	return updated
}

// failed says what an error means: that Flux would fail too, that something has to be there first, or that it is not known.
func (j *job) failed(ctx context.Context, err error) (diff.Outcome, string) {
	u := j.object
	status := apierrors.APIStatus(nil)
	switch {
	case meta.IsNoMatchError(cause(err)) && j.coming.kind(u.GroupVersionKind().GroupKind()):
		return diff.TriedLater, "it cannot be tried before its CustomResourceDefinition is there, which comes with the change"
	case meta.IsNoMatchError(cause(err)):
		gvk := u.GroupVersionKind()
		return diff.TriedRefused, "the cluster has no " + gvk.GroupKind().String() + " in version " + gvk.Version
	case ctx.Err() != nil:
		return diff.TriedUnknown, "the time was over"
	case !errors.As(err, &status):
		return diff.TriedUnknown, "the cluster did not answer: " + j.words(err)
	case missing(status.Status(), "namespaces", u.GetNamespace()) && j.coming.namespace(u.GetNamespace()):
		return diff.TriedLater, "it cannot be tried before namespace " + u.GetNamespace() + " is there, which comes with the change"
	case unable(status.Status()):
		return diff.TriedUnknown, j.words(err)
	}
	return diff.TriedRefused, j.words(err)
}

// missing returns whether what an API server has not found is something other than the object itself.
func missing(s metav1.Status, resource, name string) bool {
	return s.Reason == metav1.StatusReasonNotFound && s.Details != nil && s.Details.Kind == resource && s.Details.Name == name
}

// unable returns whether an API server could not try, rather than that it refuses. A webhook that fails to answer may answer Flux.
func unable(s metav1.Status) bool {
	switch s.Reason {
	case metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout, metav1.StatusReasonTooManyRequests,
		metav1.StatusReasonServiceUnavailable, metav1.StatusReasonInternalError, metav1.StatusReasonUnauthorized:
		return true
	}
	return s.Reason == metav1.StatusReasonBadRequest && dryRunless(s.Message)
}

// words are those of the API server, as far as they can be shown.
func (j *job) words(err error) string {
	reason := string(apierrors.ReasonForError(cause(err)))
	status := apierrors.APIStatus(nil)
	switch {
	case reason != "":
	case errors.As(err, &status):
		reason = fmt.Sprintf("error %d", status.Status().Code)
	default:
		reason = "an error"
	}
	return diff.Sayable(j.object.Object, reason, cause(err).Error(), j.limits.Message)
}

// cause takes away what the library says before the words of the API server.
func cause(err error) error {
	var dry *ssaerrors.DryRunErr
	if errors.As(err, &dry) {
		return dry.Unwrap()
	}
	return err
}
