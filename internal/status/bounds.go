// SPDX-License-Identifier: Apache-2.0

package status

import (
	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/runbook"
)

// The bounds of the texts in a status, in characters. A text that a person reads in one place is short. A status that
// the API server rejects, or that etcd cannot hold, would hide everything else. The CRDs themselves accept 32,768
// characters for a message.
const (
	// MaxMessage is the longest message of a condition, without the address of a runbook.
	MaxMessage = 2048
	// MaxNote is the longest message about one add-on, one orphan, or one held removal.
	MaxNote = 512
	// MaxResult is the longest status.sets[].result: each registration has up to twenty.
	MaxResult = 256
)

// Bound shortens every text in a status that other people can make long. Summarize and all writers of a status call
// it, so that no controller has to. It leaves short texts alone, and changes nothing in a status that it has bounded
// before.
func Bound(o Object) {
	conditions := *o.GetConditions()
	for i := range conditions {
		conditions[i].Message = said(conditions[i].Message)
	}
	switch o := o.(type) {
	case *hubv1.AddonDelivery:
		for i := range o.Status.Addons {
			o.Status.Addons[i].Message = note(o.Status.Addons[i].Message)
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
		orphans[i].Message = note(orphans[i].Message)
	}
}

// said is the message of a condition as controllers see it: bounded, and without the address of a runbook, which is added when it is
// written.
func said(message string) string { return excerpt.Of(runbook.Plain(message), MaxMessage) }

// note is a message about one add-on or orphan. It may quote a condition.
func note(message string) string { return excerpt.Of(runbook.Plain(message), MaxNote) }

// AddRunbooks ends the message of each condition that needs a person with the address of its runbook. docs is where the pages are.
// The writer of a status calls it after Bound.
func AddRunbooks(o Object, docs string) {
	conditions := *o.GetConditions()
	for i := range conditions {
		conditions[i].Message = runbook.Add(docs, conditions[i].Reason, conditions[i].Message)
	}
}
