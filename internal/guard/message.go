// SPDX-License-Identifier: Apache-2.0

package guard

// Every message about a held removal is in this file.

import (
	"fmt"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// Message says on the set what its guard holds, and how to approve or undo it. Only this message contains the hash to
// approve.
func Message(set *hubv1.AddonSet, window time.Duration) string {
	held := set.Status.HeldRemovals
	undo := "if not, undo the edit"
	if set.DeletionTimestamp != nil {
		undo = "if not, set spec.deletionPolicy to Orphan, and apply the set again when it is gone: it goes on with what runs"
	}
	keep := "They keep their add-ons"
	if held.Count == 1 {
		keep = "It keeps its add-ons"
	}
	message := fmt.Sprintf("%s would lose add-ons, or have them reinstalled, which is more than go without approval within %s: %s. "+
		"%s. If this is intended: %s, or %s; %s", status.Count(held.Count, "cluster"), excerpt.Duration(window),
		status.List(held.Sample, int(held.Count)), keep,
		tool(set), approval(set, held.Hash), undo)
	if given := set.Annotations[hubv1.ApproveRemovalAnnotation]; given != "" {
		message += fmt.Sprintf(". The present approval, %q, is for another list of removals", given)
	}
	return message
}

// WholeSet describes a held removal of a whole set from a cluster.
const WholeSet = "the removal of all its add-ons from this cluster"

// MessageHere says on one cluster what the guard of a set holds there. The command in it looks the hash up: if the
// message had the hash itself, each cluster that joins the held removals would change the status of all others.
func MessageHere(set *hubv1.AddonSet, what string) string {
	return fmt.Sprintf("the removal guard of AddonSet %s/%s holds %s, together with the other removals of that set. If all of them are "+
		"intended: %s, or %s",
		set.Namespace, set.Name, what, tool(set), Command(set))
}

// SomeAddons describes held removals of some add-ons of a set from a cluster.
const SomeAddons = "what add-ons here wait for"

// DropHeld says on an add-on that the guard holds its removal.
const DropHeld = "it is not wanted here any more; its AddonSet's removal guard has not granted its removal yet"

// ReinstallHeld says on an add-on that the guard holds an edit for which Flux would reinstall it. from and to say where.
func ReinstallHeld(from, to string) string {
	return fmt.Sprintf("Flux would uninstall %s and install %s; the AddonSet's removal guard has not granted that yet", from, to)
}

// tool is how the command line approves what is held: it shows all of it first, and asks.
func tool(set *hubv1.AddonSet) string {
	return fmt.Sprintf("chandler removals approve %s/%s", set.Namespace, set.Name)
}

func approval(set *hubv1.AddonSet, hash string) string {
	return fmt.Sprintf("kubectl annotate addonset -n %s %s --overwrite %s=%s", set.Namespace, set.Name, hubv1.ApproveRemovalAnnotation, hash)
}

// Command approves all that the guard of a set holds then. It looks the hash up.
func Command(set *hubv1.AddonSet) string {
	return approval(set, fmt.Sprintf("$(kubectl get addonset -n %s %s -o jsonpath='{.status.heldRemovals.hash}')", set.Namespace, set.Name))
}
