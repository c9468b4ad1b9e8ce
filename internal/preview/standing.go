// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/breaker"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/status"
)

// standing is what the hub does with a cluster as a whole.
type standing struct {
	// nothing says why nothing is delivered at all; empty if something is.
	nothing string
	// paused says why what is there stays as it is, and nothing is made; empty if it is not so. ends says when that is over.
	paused, ends string
	// dump is true if the files have what the hub has made: what they do not have is not there.
	dump bool
	// live are the hub's objects for the cluster, and foreign those of others, as far as the files have them.
	live    []assembly.Live
	foreign []assembly.Foreign
	// adopted are the hand-written objects of the files.
	adopted map[plan.Key]bool
	// said are the objects of which something has been said.
	said map[plan.Key]bool
}

func (r *renderer) standing(m *member) *standing {
	s := &standing{live: r.live(m), foreign: r.foreign(m), adopted: r.handWritten(), dump: r.fleet.dump()}
	s.paused, s.ends = r.paused(m)
	if s.nothing = m.unserved(); s.nothing == "" {
		s.nothing = r.drained(m)
	}
	return s
}

func (m *member) kind() (origin.Kind, error) {
	if m.registration.Spec.OriginRef == nil {
		return origin.Secret, nil
	}
	return origin.KindOf(*m.registration.Spec.OriginRef)
}

// paused says why the Flux objects of a cluster are suspended, and until when: by what the registration and its origin say, and by what
// the hub has found out about a cluster that does not answer.
func (r *renderer) paused(m *member) (why, ends string) {
	switch status.Reason(m.registration, hubv1.KubeConfigValidCondition) {
	case hubv1.OriginNotFoundReason, hubv1.OriginKindNotInstalledReason:
		return "suspended: the hub cannot read the origin of the cluster", "when the hub can read the origin"
	}
	was := status.Find(m.registration, hubv1.SuspendedCondition)
	facts := breaker.Facts{Pause: m.registration.Spec.Pause, Answered: true, Now: r.options.Now}
	if was != nil && hubv1.Tripped(was.Reason) {
		hangs := was.Reason == hubv1.FluxHangsReason
		facts.Down, facts.Refused, facts.Open, facts.OpenSince = !hangs, was.Reason == hubv1.CredentialRefusedReason, was.Reason, facts.Now
		if hangs {
			facts.Waiting = facts.Now
		}
	}
	if kind, err := m.kind(); err == nil && m.origin != nil {
		facts.Expected, facts.Maintenance = kind.Still(m.origin), kind.Maintenance(m.origin)
	}
	switch d := breaker.Decide(facts); {
	case d.Reason == "":
		return "", ""
	case hubv1.Tripped(d.Reason):
		return "suspended: " + d.Message, "when the cluster answers"
	default:
		return "paused: " + d.Message, "when the pause ends"
	}
}

// drained says that the add-ons of a cluster are uninstalled before it is deleted; "" if that is not so.
func (r *renderer) drained(m *member) string {
	kind, err := m.kind()
	if err != nil || m.origin == nil {
		return ""
	}
	d := drain.Decide(drain.Facts{Spec: m.registration.Spec.DrainBeforeDeletion, Kind: kind, Origin: m.origin, Now: r.options.Now})
	if d.Reason == "" && !(d.Keep && drain.Requested(m.registration)) {
		return ""
	}
	return fmt.Sprintf("drained: %s %q has annotation %s, so its add-ons are uninstalled before it is deleted", kind.Kind, m.origin.GetName(),
		hubv1.DrainAnnotation)
}

// unserved says which other registration has the cluster; "" if this one has it. Only a status says that two are of one cluster.
func (m *member) unserved() string {
	holder := m.registration.Status.DuplicateOf
	if holder == nil {
		return ""
	}
	return fmt.Sprintf("not served: ClusterRegistration %s has the cluster, so nothing is delivered through this one", holder.Key())
}
