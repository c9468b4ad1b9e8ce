// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// Orders are what people ask of a rollout. Each names the revision that it is about, so an order never applies to a
// revision that its author has not seen. An undo and a retry are about its content, whatever epoch renders that.
type Orders struct {
	approved map[string]bool
	expedite string
	retry    string
	undo     string
}

// Read returns the orders in the annotations of an AddonSet.
func Read(annotations map[string]string) Orders {
	o := Orders{approved: map[string]bool{}, expedite: annotations[hubv1.ExpediteAnnotation], retry: annotations[hubv1.RetryAnnotation],
		undo: annotations[hubv1.UndoAnnotation]}
	for text := range strings.SplitSeq(annotations[hubv1.ApproveAnnotation], ",") {
		o.approved[strings.TrimSpace(text)] = true
	}
	return o
}

// Approval returns the value of the annotation chandler.dev/approve that lets the wave after the given one begin.
func Approval(revision, wave string) string { return revision + "/" + wave }

// Expedition returns the value of the annotation chandler.dev/expedite that ends soaks and windows for a revision.
func Expedition(revision, reason string) string { return revision + ": " + reason }

// Retrial returns the value of the annotation chandler.dev/retry that rolls out a failed revision again. Each mark counts
// once; the time will do.
func Retrial(revision, mark string) string { return revision + "/" + mark }

// Undoing returns the value of the annotation chandler.dev/undo that goes from a revision back to another, wave by wave or
// now.
func Undoing(revision, to string, now bool) string {
	if now {
		return revision + "/" + to + "/now"
	}
	return revision + "/" + to
}

// Expedited returns whether soaks and windows are ended for a revision, and why.
func (o *Orders) Expedited(revision string) (reason string, ok bool) {
	of, reason, _ := strings.Cut(o.expedite, ":")
	return strings.TrimSpace(reason), o.expedite != "" && of == revision
}

// retried returns whether a revision is to be rolled out again. Like the failure, that is about its content.
func (o *Orders) retried(revision, last string) bool {
	of, _, _ := strings.Cut(o.retry, "/")
	return o.retry != "" && o.retry != last && identity.SameContent(of, revision)
}

// undone returns the revision that the clusters are to get instead of the given one; "" if no user wants that. It is about content: what is
// undone stays so if another epoch of the hub renders it.
func (o *Orders) undone(revision string) (to string, now bool) {
	parts := strings.Split(o.undo, "/")
	if len(parts) < 2 || !identity.SameContent(parts[0], revision) {
		return "", false
	}
	return parts[1], len(parts) > 2 && parts[2] == "now"
}

// Followed returns whether the hub has seen which revision is to be rolled out by these orders, if a set has a newest one and a
// state.
func (o *Orders) Followed(newest string, s *hubv1.RolloutStatus) bool {
	to, _ := o.undone(newest)
	switch {
	case o.retried(newest, s.Retried):
		return false
	case to != "":
		return identity.SameContent(to, s.Revision)
	}
	return newest == s.Revision || Barred(s, newest)
}

// Approves returns whether a user lets the wave after the given one begin.
func (o *Orders) Approves(revision, wave string) bool {
	return o.approved[Approval(revision, wave)]
}
