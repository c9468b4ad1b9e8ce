// SPDX-License-Identifier: Apache-2.0

// Package teardown decides how add-ons leave a cluster. It is a table of pure functions: facts in, a decision out.
// The I/O is in the delivery controller and the registration controller.
//
// Flux's two kinds behave in opposite ways when a cluster is gone: a Kustomization's finalizer never ends, and a
// HelmRelease forgets its release silently. So the hub never just deletes. Either it uninstalls: the object is not
// suspended, its kubeconfig works, and the cluster answers. Or it orphans: it suspends the object first, then deletes
// it, and reports it.
package teardown

import (
	"fmt"
	"time"

	"github.com/chandler-hub/chandler/internal/guard"
)

// Mode is what happens to the add-ons.
type Mode string

const (
	// Hold leaves everything as it is.
	Hold Mode = "Hold"
	// Uninstall deletes the Flux objects, in reverse order, and Flux removes what they applied.
	Uninstall Mode = "Uninstall"
	// Orphan suspends the Flux objects and deletes them: what they applied stays on the cluster.
	Orphan Mode = "Orphan"
	// Ask leaves everything as it is until the set's removal guard grants the removal.
	Ask Mode = "Ask"
	// Recreate releases the registration and leaves its deliveries as they are: discovery makes the registration again.
	Recreate Mode = "Recreate"
)

// Decision is a mode and the reason, for a status or an event.
type Decision struct {
	Mode   Mode
	Reason string
}

// Origin is what the hub knows about the object that a cluster comes from.
type Origin string

const (
	// OriginNone: the registration was written by hand and has no origin.
	OriginNone Origin = "None"
	// OriginUnknown: it could not be read (its CRD is not installed, or the informer has not synced).
	OriginUnknown Origin = "Unknown"
	// OriginGone: it was read as absent. An origin that only says how to reach a cluster is also gone while it is being
	// deleted.
	OriginGone Origin = "Gone"
	// OriginDeleting: it has a deletionTimestamp. Kamaji drops the tenant's database at that moment.
	OriginDeleting Origin = "Deleting"
	// OriginWanted: it exists, and says that it is to be registered.
	OriginWanted Origin = "Wanted"
	// OriginUnwanted: it exists, and does not say so, or not any more.
	OriginUnwanted Origin = "Unwanted"
)

// RegistrationFacts decide how a registration ends.
type RegistrationFacts struct {
	Origin Origin
	// IsCluster is true if the origin is the cluster, which lives and dies with it. A Secret only says how to reach one.
	IsCluster bool
	// Lost is true if the origin is no cluster, and has been missing for the grace.
	Lost bool
	// NamespaceDeleted is true if the registration's namespace is being deleted: nothing is made in it again.
	NamespaceDeleted bool
	// KindDeleted is true if the CRD of registrations is being deleted, and every registration with it.
	KindDeleted bool
	// Forced is true if a user wants it to go, whatever it waits for.
	Forced bool
	// Other says which other registration of the same cluster stays, and is served next; empty for none.
	Other string
	// Since is when it was deleted, or since when its origin cannot be read, if that was later. Now is the time of the decision, and Grace is
	// how long the hub waits for what cannot be known.
	Since, Now time.Time
	Grace      time.Duration
}

// Registration decides what a registration that is being deleted means for its add-ons.
func Registration(f RegistrationFacts) Decision {
	switch {
	case f.KindDeleted:
		return Decision{Recreate, "the CRD of ClusterRegistrations is being deleted"}
	case f.Origin == OriginDeleting:
		return Decision{Orphan, "its origin is being deleted, and the cluster with it"}
	case f.NamespaceDeleted && f.IsCluster:
		return Decision{Orphan, "its namespace is being deleted, and the cluster with it"}
	case f.Origin == OriginWanted && !f.NamespaceDeleted:
		return Decision{Recreate, "its origin still says that it is registered"}
	case f.Forced:
		return Decision{Orphan, "a user forces it"}
	case f.shared():
		return Decision{Orphan, f.Other}
	case f.NamespaceDeleted:
		return Decision{Uninstall, "its namespace is being deleted"}
	case f.Lost:
		return Decision{Orphan, fmt.Sprintf("the Secret that it came from has not been there for %s", f.Grace)}
	case f.Origin == OriginGone && f.IsCluster:
		return Decision{Orphan, "its origin is gone: the cluster is too, or it has moved to another management cluster"}
	case f.Origin == OriginUnknown && f.Now.Sub(f.Since) < f.Grace:
		return Decision{Hold, "its origin cannot be read"}
	case f.Origin == OriginUnknown:
		return Decision{Orphan, fmt.Sprintf("its origin could not be read for %s", f.Grace)}
	default:
		return Decision{Uninstall, "it is unregistered"}
	}
}

// shared returns whether another registration takes over what a registration has delivered. While the registration
// may be made again, that is not known.
func (f RegistrationFacts) shared() bool {
	return f.Other != "" && (f.NamespaceDeleted || f.Lost || f.Origin != OriginUnknown)
}

// OriginFacts are what is known of an origin that does not exist.
type OriginFacts struct {
	// Seen is true if the registration's status says that the hub has seen it. A registration that is restored from a
	// backup has no status.
	Seen bool
	// Kind is when the kind of the origin was installed; zero if it cannot be uninstalled. Registration is when the
	// registration was made.
	Kind, Registration time.Time
}

// Deleted returns whether a missing origin was deleted, rather than not restored yet: the hub has seen it, and its
// kind is the same one as then. A kind that was installed later has lost its objects together with the old one.
func Deleted(f OriginFacts) bool {
	return f.Seen && !f.Kind.IsZero() && !f.Kind.After(f.Registration)
}

// Facts decide how one add-on is removed.
type Facts struct {
	// RegistrationFound is false if the registration does not exist.
	RegistrationFound bool
	// Orphaned says why the registration orphans everything, because its cluster goes or a user forces it; empty if it does not.
	Orphaned string
	// Reachable is true if the cluster answered the last probe.
	Reachable bool
	// Unprobed is true if the hub cannot probe the cluster: then Reachable only says that Flux has not failed there.
	// Deleted is when the Flux object was deleted, for Flux to uninstall; zero if it has not been.
	Unprobed bool
	Deleted  time.Time
	// Orphan is true if the add-on, its set or its registration has deletionPolicy Orphan.
	Orphan bool
	// Since is when the removal was requested. Silent is since when the cluster does not answer; zero if that is not
	// known. Now is the time of the decision, and Grace is how long the hub waits for a cluster that does not answer.
	Since, Silent, Now time.Time
	Grace              time.Duration
	// Paused is true while the cluster is held as it is, by spec.pause or a state that its origin chose.
	Paused bool
	// Settle is how long any removal waits. If an add-on moves to another set, it leaves the old set first, and the hub
	// may see the new one a moment later. So does a hub that starts: Began is since when it is at work, zero if that is not known.
	Settle time.Duration
	Began  time.Time
	// Awaited says which add-on is to take it over and cannot be delivered now; empty for none.
	Awaited string
	// Rightless says that what Flux needs to uninstall it is not on the cluster, and does not come again; empty if it does.
	Rightless string
	// Guarded is true until the set's removal guard grants the removal.
	Guarded bool
}

// DeletedSuspended says why an add-on is an orphan whose Flux object a user has deleted: Flux removes nothing of what is suspended.
const DeletedSuspended = "its Flux object was deleted, and Flux has not removed it: it was suspended"

// Addon decides how an add-on leaves a cluster.
func Addon(f Facts) Decision {
	switch {
	case f.Orphaned != "":
		return Decision{Orphan, f.Orphaned}
	case f.Orphan:
		return Decision{Orphan, "its deletionPolicy is Orphan"}
	case f.Paused:
		return Decision{Hold, "the cluster is paused; it leaves when that is over"}
	case f.Reachable && f.Awaited != "":
		return Decision{Hold, f.Awaited}
	case f.Reachable && f.settling() > 0:
		return Decision{Hold, fmt.Sprintf("leaves %s after it was dropped, unless it is wanted again or something takes it over", f.Settle)}
	case f.Guarded && (f.Reachable || f.waited() >= f.Grace):
		return Decision{Ask, guard.DropHeld}
	case f.Reachable && f.Unprobed && !f.Deleted.IsZero() && f.Now.Sub(f.Deleted) >= f.uninstallTime():
		return Decision{Orphan, fmt.Sprintf("Flux has not uninstalled it within %s, and the hub cannot ask the cluster", f.uninstallTime())}
	case f.Reachable && f.Rightless != "" && f.Now.Sub(f.Since) >= f.Grace:
		return Decision{Orphan, f.Rightless}
	case f.Reachable:
		return Decision{Uninstall, ""}
	case f.waited() >= f.Grace:
		return Decision{Orphan, fmt.Sprintf("the cluster has not answered for %s", f.Grace)}
	case !f.RegistrationFound:
		return Decision{Hold, "its registration does not exist"}
	default:
		return Decision{Hold, fmt.Sprintf("the cluster does not answer; the add-on is orphaned when it has not for %s", f.Grace)}
	}
}

// leastUninstallTime applies if the hub does not wait for clusters that do not answer: an uninstallation takes its
// time even so.
const leastUninstallTime = 10 * time.Minute

// uninstallTime is how long Flux has to uninstall an add-on from a cluster that the hub cannot probe. A deleted
// Kustomization does not say why it still exists, so only time can show that its cluster is gone.
func (f Facts) uninstallTime() time.Duration { return max(f.Grace, leastUninstallTime) }

// Wait returns after how long Addon may decide otherwise because of time alone, or 0 for never.
func Wait(f Facts) time.Duration {
	switch d := Addon(f); {
	case d.Mode == Uninstall && f.Unprobed && !f.Deleted.IsZero():
		return f.uninstallTime() - f.Now.Sub(f.Deleted)
	case d.Mode == Uninstall && f.Rightless != "":
		return f.Grace - f.Now.Sub(f.Since)
	case d.Mode != Hold || f.Paused || f.Reachable && f.Awaited != "":
		return 0
	}
	if f.Reachable {
		return f.settling()
	}
	return f.Grace - f.waited()
}

// settling is how much longer a removal waits for something that may take the add-on over. While no hub was at work, it was not seen what
// came. What Flux uninstalls already waits for nothing.
func (f Facts) settling() time.Duration {
	since := f.Since
	if f.Began.After(since) && f.Deleted.IsZero() {
		since = f.Began
	}
	return f.Settle - f.Now.Sub(since)
}

// waited is how long a removal has waited for a cluster that does not answer. The time in which the cluster answered
// does not count: a cluster that stops answering in the middle of a long uninstallation has all of its grace.
func (f Facts) waited() time.Duration {
	if f.Silent.After(f.Since) {
		return f.Now.Sub(f.Silent)
	}
	return f.Now.Sub(f.Since)
}
