// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// Message says on the set what its guard holds, and how to approve or undo it. Only this message contains the hash to
// approve.
func Message(set *hubv1.AddonSet) string {
	held := set.Status.HeldRemovals
	undo := "if not, undo the edit"
	if set.DeletionTimestamp != nil {
		undo = "if not, set spec.deletionPolicy to Orphan, and apply the set again when it is gone: it goes on with what runs"
	}
	message := fmt.Sprintf("%d clusters are to lose add-ons, or to have them reinstalled, which is more than go by themselves in an hour: %s. "+
		"They keep them. If it is meant: %s; %s", held.Count, status.List(held.Sample, int(held.Count)), approval(set, held.Hash), undo)
	if given := set.Annotations[hubv1.ApproveRemovalAnnotation]; given != "" {
		message += fmt.Sprintf(". The approval that is there, %q, is for another list", given)
	}
	return message
}

// WholeSet describes a held removal of a whole set from a cluster.
const WholeSet = "the removal of all its add-ons from this cluster"

// MessageHere says on one cluster what the guard of a set holds there. The command in it looks the hash up: if the
// message had the hash itself, each cluster that joins the held removals would change the status of all others.
func MessageHere(set *hubv1.AddonSet, what string) string {
	lookup := fmt.Sprintf("$(kubectl get addonset -n %s %s -o jsonpath='{.status.heldRemovals.hash}')", set.Namespace, set.Name)
	return fmt.Sprintf("the removal guard of AddonSet %s/%s holds %s, with what else the set is to take away. If all of that is meant: %s",
		set.Namespace, set.Name, what, approval(set, lookup))
}

func approval(set *hubv1.AddonSet, hash string) string {
	return fmt.Sprintf("kubectl annotate addonset -n %s %s --overwrite %s=%s", set.Namespace, set.Name, hubv1.ApproveRemovalAnnotation, hash)
}
