// SPDX-License-Identifier: Apache-2.0

// Package origin knows the kinds of objects that clusters come from: Kamaji's TenantControlPlane, Cluster API's
// Cluster, plain Secrets, and ClusterProfiles. It is pure. Each kind has a file of its own and is listed in Kinds. No other package
// knows the fields of a kind.
//
// Origins are read as unstructured objects. Their APIs grow fields and states that this hub does not know, and an
// unknown field must not break anything.
package origin

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/breaker"
)

// Kinds are the kinds of origins.
var Kinds = []Kind{Kamaji, ClusterAPI, Secret, ClusterProfile}

// Kind is one kind of origin. Kinds are comparable.
type Kind struct {
	schema.GroupKind
	// Provider is the name of the kind in labels and in status.
	Provider string
	// Flag is the name of the kind for --register-all; "" if it cannot be registered wholesale.
	Flag string
	// CRD is the name of the CustomResourceDefinition; empty for a Secret.
	CRD string

	points bool // it only says how to reach a cluster
	traits traits
}

// traits are what differs between kinds of origins. A kind embeds plain, and implements what differs from it.
type traits interface {
	// kubeConfig returns where an origin's kubeconfig is, or a *NotReady.
	kubeConfig(obj *unstructured.Unstructured) (Source, error)
	// usualSecret returns the name of the Secret that usually holds the kubeconfig of an origin of that name, for
	// callers that have not read the origin yet.
	usualSecret(name string) string
	// network returns what an origin says about its cluster's network.
	network(obj *unstructured.Unstructured) Network
	// version returns the version of Kubernetes that an origin asks for; empty if it does not say.
	version(obj *unstructured.Unstructured) string
	// state returns the word by which an origin's controller describes the state of its cluster.
	state(obj *unstructured.Unstructured) string
	// still returns the state in which nothing can be applied to the cluster because somebody chose so.
	still(obj *unstructured.Unstructured) breaker.State
	// maintenance returns what the origin's controller is doing with the cluster, or that it is paused.
	maintenance(obj *unstructured.Unstructured) breaker.State
	// refuse returns why an origin must not be registered, because another object registers its cluster; "" if it
	// may.
	refuse(obj *unstructured.Unstructured, clusterExists func(name string) bool) string
	// noKubeConfig returns why an origin has no kubeconfig that the hub can take, and will not have one as it is; "" if it may.
	noKubeConfig(obj *unstructured.Unstructured) string
	// silent returns whether an origin has not said yet how to reach its cluster, so that nobody knows whether the hub can.
	silent(obj *unstructured.Unstructured) bool
}

// plain is a kind of origin that tells only where its kubeconfig is.
type plain struct{}

func (plain) network(*unstructured.Unstructured) Network                  { return Network{} }
func (plain) version(*unstructured.Unstructured) string                   { return "" }
func (plain) state(*unstructured.Unstructured) string                     { return "" }
func (plain) still(*unstructured.Unstructured) breaker.State              { return breaker.State{} }
func (plain) maintenance(*unstructured.Unstructured) breaker.State        { return breaker.State{} }
func (plain) refuse(*unstructured.Unstructured, func(string) bool) string { return "" }
func (plain) noKubeConfig(*unstructured.Unstructured) string              { return "" }
func (plain) silent(*unstructured.Unstructured) bool                      { return false }

// Silent returns whether an origin has not said yet how to reach its cluster. Nothing is registered of it before.
func (k Kind) Silent(obj *unstructured.Unstructured) bool { return k.traits.silent(obj) }

// KindOf returns the kind that a reference names.
func KindOf(ref hubv1.OriginReference) (Kind, error) {
	known := make([]string, len(Kinds))
	for i, k := range Kinds {
		if k.Group == ref.APIGroup && k.Kind == ref.Kind {
			return k, nil
		}
		known[i] = k.GroupKind.String()
	}
	return Kind{}, fmt.Errorf("spec.originRef: the hub does not know kind %q of group %q; write %s", ref.Kind, ref.APIGroup,
		strings.Join(known[:len(known)-1], ", ")+" or "+known[len(known)-1])
}

// IsCluster returns whether an origin of this kind is the cluster itself, so that both are created and deleted
// together. A Secret or a ClusterProfile only says how to reach a cluster.
func (k Kind) IsCluster() bool { return !k.points }

// Reference returns the reference to an origin of this kind.
func (k Kind) Reference(name string) hubv1.OriginReference {
	return hubv1.OriginReference{APIGroup: k.Group, Kind: k.Kind, Name: name}
}

// RegistrationNames returns the names under which an origin of a kind may be registered: the first, and that with the kind if another
// origin has the first.
func RegistrationNames(k Kind, first string) [2]string {
	return [2]string{first, first + "-" + strings.ToLower(k.Kind)}
}

// Written returns the reference to an origin in the form in which people write it into a registration.
func (k Kind) Written(name string) string {
	return fmt.Sprintf("spec.originRef: {apiGroup: %q, kind: %s, name: %s}", k.Group, k.Kind, name)
}

// Ignored tells the author of a registration why the hub ignores an origin of the same name, and what to do.
func (k Kind) Ignored(name string) string {
	return fmt.Sprintf("%s %q of the same name is labelled, but the hub does not register it, because this registration has a "+
		"spec.kubeConfig of its own. If it is that cluster, write %s here; else rename one of them",
		k.Kind, name, k.Written(name))
}

// KubeConfig returns where the kubeconfig of an origin is, or *NotReady.
func (k Kind) KubeConfig(obj *unstructured.Unstructured) (Source, error) {
	return k.traits.kubeConfig(obj)
}

// UsualSecret returns the name of the Secret that usually holds an origin's kubeconfig, for callers that have not
// read the origin.
func (k Kind) UsualSecret(name string) string { return k.traits.usualSecret(name) }

// Network returns what an origin says about its cluster's network; the zero value if it says nothing.
func (k Kind) Network(obj *unstructured.Unstructured) Network {
	if obj == nil {
		return Network{}
	}
	return k.traits.network(obj)
}

// KubernetesVersion returns the version that an origin asks for; "" if it does not say. The cluster may run another
// one.
func (k Kind) KubernetesVersion(obj *unstructured.Unstructured) string {
	if obj == nil {
		return ""
	}
	return k.traits.version(obj)
}

// State returns the word by which the origin's own controller describes the state of its cluster; "" if there is
// none. The hub only compares it: when it changes, the hub probes the cluster.
func (k Kind) State(obj *unstructured.Unstructured) string {
	if obj == nil {
		return ""
	}
	return k.traits.state(obj)
}

// Still returns the state in which an origin says that nothing can be applied to its cluster. Somebody chose this
// state; it is not a failure. A word that the hub does not know gives no state.
func (k Kind) Still(obj *unstructured.Unstructured) breaker.State {
	if obj == nil {
		return breaker.State{}
	}
	return k.traits.still(obj)
}

// Maintenance returns what the origin's own controller is doing with the cluster, or that it is paused. The hub goes
// on serving the cluster, and expects failed probes.
func (k Kind) Maintenance(obj *unstructured.Unstructured) breaker.State {
	if obj == nil {
		return breaker.State{}
	}
	return k.traits.maintenance(obj)
}

// Flags returns the names, for --register-all, of the kinds that can be registered wholesale.
func Flags() []string {
	var flags []string
	for _, k := range Kinds {
		if k.Flag != "" {
			flags = append(flags, k.Flag)
		}
	}
	return flags
}

// WorkloadIdentity is the provider, as in Kind.Provider, of a cluster that somebody registered by hand with a
// workload identity.
const WorkloadIdentity = "WorkloadIdentity"

// Provider returns where the cluster of a registration comes from. A cluster that was registered by hand comes from
// the Secret that it names, or has no origin.
func Provider(spec *hubv1.ClusterRegistrationSpec) (string, error) {
	if spec.OriginRef != nil {
		kind, err := KindOf(*spec.OriginRef)
		return kind.Provider, err
	}
	if spec.KubeConfig != nil && spec.KubeConfig.WorkloadIdentity != nil {
		return WorkloadIdentity, nil
	}
	return Secret.Provider, nil
}

// Providers returns all values that Provider may return.
func Providers() []string {
	providers := make([]string, 0, len(Kinds)+1)
	for _, k := range Kinds {
		providers = append(providers, k.Provider)
	}
	return append(providers, WorkloadIdentity)
}

// Source says where an origin's kubeconfig is.
type Source struct {
	// Secret is the Secret's name, in the origin's namespace.
	Secret string
	// Key is the only key that may be read; "" if nobody named one.
	Key string
	// Context is the context of the kubeconfig to use; "" for its current one.
	Context string
	// Candidates are the keys to try, in order. The hub uses the first one with which the cluster answers. Empty
	// means the usual keys.
	Candidates []string
}

// NotReady says why an origin has no kubeconfig yet. It is not a failure.
type NotReady struct{ Message string }

func (e *NotReady) Error() string { return e.Message }

// Network is what an origin says about its cluster's network. Fields that it does not say are zero.
type Network struct {
	// Host and Port are where nodes reach the API server; "" and 0 if unknown.
	Host                   string
	Port                   int64
	PodCIDRs, ServiceCIDRs []string
}
