// SPDX-License-Identifier: Apache-2.0

package status

import (
	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
)

// The bounds of what a status says, in characters. What a person reads in one place is short; and a status that the API server
// refuses, or that etcd cannot hold, would keep all else from being told. The CRDs themselves take 32,768 characters for a message.
const (
	// MaxMessage is the longest message of a condition.
	MaxMessage = 2048
	// MaxNote is the longest message about one add-on, one orphan, or one removal that is held.
	MaxNote = 512
	// MaxResult is the longest status.sets[].result: there are up to twenty, and each registration has them.
	MaxResult = 256
)

// Bound shortens everything in a status that other people can make long. Summarize and whoever writes a status
// call it, so that no room has to think of it. What is short enough stays as it is: a status that is bounded again is the same.
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
