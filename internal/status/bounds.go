// SPDX-License-Identifier: Apache-2.0

package status

import (
	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
)

// The bounds of the texts in a status, in characters. A text that a person reads in one place is short. A status that
// the API server rejects, or that etcd cannot hold, would hide everything else. The CRDs themselves accept 32,768
// characters for a message.
const (
	// MaxMessage is the longest message of a condition.
	MaxMessage = 2048
	// MaxNote is the longest message about one add-on, one orphan, or one held removal.
	MaxNote = 512
	// MaxResult is the longest status.sets[].result: each registration has up to twenty.
	MaxResult = 256
)

// Bound shortens every text in a status that other people can make long. Summarize and all writers of a status call
// it, so that no room has to. It leaves short texts alone, and changes nothing in a status that it has bounded
// before.
func Bound(o Object) {
	conditions := *o.GetConditions()
	for i := range conditions {
		conditions[i].Message = excerpt.Of(conditions[i].Message, MaxMessage)
	}
	switch o := o.(type) {
	case *hubv1.AddonDelivery:
		for i := range o.Status.Addons {
			o.Status.Addons[i].Message = excerpt.Of(o.Status.Addons[i].Message, MaxNote)
		}
	case *hubv1.AddonSet:
		boundOrphans(o.Status.Orphans)
		if held := o.Status.HeldRemovals; held != nil {
			for i := range held.Sample {
				held.Sample[i] = excerpt.Of(held.Sample[i], MaxNote)
			}
		}
	case *hubv1.ClusterRegistration:
		boundOrphans(o.Status.Orphans)
		for i := range o.Status.Sets {
			o.Status.Sets[i].Result = excerpt.Of(o.Status.Sets[i].Result, MaxResult)
		}
	}
}

func boundOrphans(orphans []hubv1.Orphan) {
	for i := range orphans {
		orphans[i].Message = excerpt.Of(orphans[i].Message, MaxNote)
	}
}
