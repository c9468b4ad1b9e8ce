// SPDX-License-Identifier: Apache-2.0

package plan

import (
	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Key names a Flux object.
type Key struct{ Kind, Namespace, Name string }

func (k Key) String() string { return k.Kind + " " + k.Namespace + "/" + k.Name }

// KeyOf returns the key of an object that a status names.
func KeyOf(ref *hubv1.FluxObjectReference) Key { return Key{ref.Kind, ref.Namespace, ref.Name} }

// Reference returns the key as a status names the object.
func (k Key) Reference() *hubv1.FluxObjectReference {
	return &hubv1.FluxObjectReference{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}
}

// Desired is an object that the cluster should have.
type Desired struct {
	Key    Key
	Addon  string
	Hash   string
	Labels map[string]string
	// Release is set for a HelmRelease.
	Release hubv1.HelmReleaseIdentity
	// Recorded is true if the status says which release it goes on with, or its add-on's name does.
	Recorded bool
	// Predecessors are objects of other namespaces, or written by hand, whose workload it takes over.
	Predecessors []Key
	// Gate says what it waits for before it is created or updated; empty for nothing.
	Gate string
	// Once is true if it is created, and never updated.
	Once bool
	// Content is what a Kustomization is to apply.
	Content
	// Chart is the chart of a HelmRelease, if Flux reinstalls when the chart changes; empty if Flux would upgrade in
	// place.
	Chart string
	// MayReinstall is true if the set's removal guard grants an edit for which Flux uninstalls the workload and installs
	// it anew.
	MayReinstall bool
}

// Observed is an existing object: one of the hub's, or one that a user wrote by hand and that is taken over.
type Observed struct {
	Key   Key
	Addon string
	// Set is the AddonSet that delivers it.
	Set    string
	Hash   string
	Labels map[string]string
	// Release is what a HelmRelease asks for. InstalledAs is what Flux has installed, if that is another one; zero if
	// not, or not known.
	Release, InstalledAs hubv1.HelmReleaseIdentity
	// Content is what a Kustomization asks for.
	Content
	// Mark is what Desired.Mark has noted on a Kustomization, and AppliedAs is what ReadMark returns for it.
	AppliedAs, Mark string
	// Chart is the chart that a HelmRelease asks for, and Installed is the one that Flux has installed, each by its
	// name; empty if that is not known.
	Chart, Installed string
	// Foreign is true if it is not the hub's.
	Foreign bool
	// Generation is the object's. Applied is its generation after the hub's last write; 0 if that is not known.
	Generation, Applied int64
	// DependsOn names the add-ons that this one was delivered after, and sets in the form of SetBefore.
	DependsOn []string
	// NeededBy names what acts on the cluster with rights that this object brings, in words; empty if nothing does. It
	// is uninstalled after that has gone.
	NeededBy string
	// Replaced says why it is to be orphaned, whatever is desired: it was made for a cluster that was behind the
	// registration before, or another registration of the cluster is served. It is empty if neither is so.
	Replaced string
	// Suspended is true if Flux leaves it alone, and Held if the hub has asked for that.
	Deleting, Suspended, Held bool
}
