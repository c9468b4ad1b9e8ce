// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chandler-hub/chandler/internal/hubconfig"
)

// Facts are what is known of a hub. What was not read is nil or zero, and Unread says so.
type Facts struct {
	// Now is the time of the API server, or of the caller if the server did not say.
	Now time.Time
	// Unread is what could not be read.
	Unread []Unread

	// HubNamespace is where the hub should be.
	HubNamespace string
	// PlatformNamespaces and Shards are what the hub was started with, or the defaults. TenantShards is true if clusters that are registered
	// outside of the platform namespaces have shards of their own.
	PlatformNamespaces []string
	Shards             []string
	TenantShards       bool
	// FluxNamespace is where Flux should be.
	FluxNamespace string
	// Epoch is that of this command line.
	Epoch int

	Hub    Hub
	Clock  Clock
	CRDs   CRDs
	Policy Policies
	Rights Rights
	Flux   Flux
	Access Access
	Fleet  Fleet
	// Sources are Flux sources that fail and that are in use, with Flux's words; SourcesRead is how many were looked at, and
	// SourcesReady how many of these Flux has fetched.
	Sources                   []Source
	SourcesRead, SourcesReady int
}

// Unread is something that could not be found out.
type Unread struct {
	Check Check
	// What and why.
	What string
	// Remedy is what lets the caller find out.
	Remedy string
}

// Skip notes what could not be found out.
func (f *Facts) Skip(check Check, what, remedy string) {
	for _, u := range f.Unread {
		if u.Check == check && u.What == what {
			return
		}
	}
	f.Unread = append(f.Unread, Unread{check, what, remedy})
}

// Workload is a Deployment with its pods.
type Workload struct {
	Namespace, Name string
	// Component is helm-controller, kustomize-controller, source-controller or hub.
	Component string
	// Version is the tag of its image.
	Version         string
	Args            []string
	ServiceAccount  string
	Replicas, Ready int32
	Pods            []Pod
}

// Pod is one of a workload's.
type Pod struct {
	Name     string
	Restarts int32
	// Ended is why it ended last, such as OOMKilled; EndedAt is when.
	Ended   string
	EndedAt time.Time
	// Waiting is why it does not run, such as CrashLoopBackOff.
	Waiting string
}

// Hub is what shows that a hub runs.
type Hub struct {
	// Published are the namespaces with a ConfigMap chandler-hub.
	Published []string
	// Lease is the one by which hubs agree who works; nil if there is none.
	Lease *Lease
	// Workloads are Deployments with the labels of a hub, of all namespaces.
	Workloads []Workload
	// Read: the Lease, and Deployments and ConfigMaps of all namespaces, could be looked at, or at least those of the hub's.
	Read bool
}

// Lease says which hub works.
type Lease struct {
	// Installation is the namespace of the hub that has it.
	Installation, Holder string
	Renewed              time.Time
	// Lasts is for how long a holder may be silent.
	Lasts time.Duration
}

// Alive returns whether there is a Lease, and its holder renews it.
func (l *Lease) Alive(now time.Time) bool {
	return l != nil && l.Holder != "" && now.Sub(l.Renewed) <= l.Lasts
}

// Of returns the namespace of the hub that has the Lease; "" if there is none, or that hub has been silent for so long that another one may
// take the Lease.
func (l *Lease) Of(now time.Time) string {
	if l == nil || now.Sub(l.Renewed) > hubconfig.Silence {
		return ""
	}
	return l.Installation
}

// Clock compares clocks. Without Server nothing is known.
type Clock struct {
	Server, Caller time.Time
	// Trip is how long the API server took to answer.
	Trip time.Duration
}

// CRDs are those that are installed, by name. Wanted are ours, of this version; FluxWanted are Flux's, of the version that the hub
// is tested with.
type CRDs struct {
	Read               bool
	Installed          map[string]*apiextensionsv1.CustomResourceDefinition
	Wanted, FluxWanted []apiextensionsv1.CustomResourceDefinition
}

// Policies are the admission policies of this version, and those that are installed.
type Policies struct {
	Read            bool
	Wanted          []admissionv1.ValidatingAdmissionPolicy
	WantedBindings  []admissionv1.ValidatingAdmissionPolicyBinding
	Installed       []admissionv1.ValidatingAdmissionPolicy
	InstalledBounds []admissionv1.ValidatingAdmissionPolicyBinding
}

// Right is one verb on one resource.
type Right struct{ Verb, Group, Resource, Subresource, Namespace, Name string }

// Rights are those that the hub's ServiceAccount lacks.
type Rights struct {
	Read    bool
	Account string
	Asked   int
	Lacks   []Right
	// Everything: it may do whatever it likes.
	Everything bool
}

// Flux are its controllers.
type Flux struct {
	Read      bool
	Workloads []Workload
	// Kinds are HelmReleases and Kustomizations.
	Kinds []Kind
}

// Kind counts the objects of a kind.
type Kind struct {
	Kind, Component string
	Count           int64
	// Interval is the median of a sample, and Observed how many of the sample Flux has reconciled as they are now.
	Interval time.Duration
	Observed int
}

// Access is who may read Secrets in a platform namespace.
type Access struct {
	Read bool
	// Readers are by namespace, and a reader of all namespaces is in each.
	Readers []Reader
}

// Reader is a user or a group that may read Secrets.
type Reader struct {
	Subject rbacv1.Subject
	// Namespace is a platform namespace; empty for all.
	Namespace string
	// Binding gives it.
	Binding string
	// Everything: he may do anything at all there.
	Everything bool
}

// Source is a Flux source that fails.
type Source struct {
	Name, Reason, Message string
	// Users are the add-ons that have it, as far as they were looked at.
	Users []string
}
