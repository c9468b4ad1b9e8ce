// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// Message says what the guard of a set holds, and how to go on either way: on the set itself, where the approval of exactly this is.
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

// WholeSet is what the guard holds on a cluster that the whole set is to leave.
const WholeSet = "the removal of all its add-ons from this cluster"

// MessageHere says on one cluster what the guard of a set holds there. The command looks the hash up: with the hash itself, the status of each
// cluster would be written again for each cluster that joins.
func MessageHere(set *hubv1.AddonSet, what string) string {
	lookup := fmt.Sprintf("$(kubectl get addonset -n %s %s -o jsonpath='{.status.heldRemovals.hash}')", set.Namespace, set.Name)
	return fmt.Sprintf("the removal guard of AddonSet %s/%s holds %s, with what else the set is to take away. If all of that is meant: %s",
		set.Namespace, set.Name, what, approval(set, lookup))
}

func approval(set *hubv1.AddonSet, hash string) string {
	return fmt.Sprintf("kubectl annotate addonset -n %s %s --overwrite %s=%s", set.Namespace, set.Name, hubv1.ApproveRemovalAnnotation, hash)
}
