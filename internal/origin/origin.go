// SPDX-License-Identifier: Apache-2.0

// Package origin knows the objects that clusters come from: Kamaji's TenantControlPlane, Cluster API's Cluster, and plain
// Secrets. It is pure, and nothing outside it and discovery knows about them. Origins are read as unstructured: their APIs
// grow fields and states that no release of ours has seen, and an unknown one must not break anything.
package origin

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Kind is one kind of origin.
type Kind struct {
	schema.GroupKind
	// Provider is how the kind is called in labels and in status.
	Provider string
	// Flag is how --register-all calls it; empty if it may not be registered wholesale.
	Flag string
	// CRD is the name of the CustomResourceDefinition; empty for a Secret.
	CRD string
}

// IsCluster returns whether an origin of this kind is the cluster, which lives and dies with it. A Secret only says how to reach
// one.
func (k Kind) IsCluster() bool { return k.CRD != "" }

// Ignored says to the author of a registration why an origin of the same name is not registered, and how to go on.
func (k Kind) Ignored(name string) string {
	return fmt.Sprintf("%s %q of the same name asks to be registered, and is not: this registration has a spec.kubeConfig of its own. If it is that cluster, write %s here; else rename one of them",
		k.Kind, name, k.Written(name))
}

// Written is the reference to an origin as people write it into a registration.
func (k Kind) Written(name string) string {
	return fmt.Sprintf("spec.originRef: {apiGroup: %q, kind: %s, name: %s}", k.Group, k.Kind, name)
}

// The kinds of origins.
var (
	Kamaji = Kind{schema.GroupKind{Group: "kamaji.clastix.io", Kind: "TenantControlPlane"}, "Kamaji", "kamaji", "tenantcontrolplanes.kamaji.clastix.io"}
	// ClusterAPI serves v1beta1 and v1beta2 alike: whichever the API server prefers is read.
	ClusterAPI = Kind{schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}, "ClusterAPI", "capi", "clusters.cluster.x-k8s.io"}
	Secret     = Kind{schema.GroupKind{Kind: "Secret"}, "Secret", "", ""}

	// Kinds are all of them.
	Kinds = []Kind{Kamaji, ClusterAPI, Secret}
)

// KindOf returns the kind that a reference names.
func KindOf(ref hubv1.OriginReference) (Kind, error) {
	for _, k := range Kinds {
		if k.Group == ref.APIGroup && k.Kind == ref.Kind {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("spec.originRef: kind %q of group %q is none that the hub knows: %s, %s or Secret", ref.Kind, ref.APIGroup, Kamaji.GroupKind, ClusterAPI.GroupKind)
}

// WorkloadIdentity is the provider, as Kind.Provider, of a cluster that was registered by hand with a workload identity.
const WorkloadIdentity = "WorkloadIdentity"

// Provider says where the cluster of a registration comes from; one that was registered by hand comes from the Secret that it names,
// or from none.
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

// Reference returns the reference to an origin of this kind.
func (k Kind) Reference(name string) hubv1.OriginReference {
	return hubv1.OriginReference{APIGroup: k.Group, Kind: k.Kind, Name: name}
}

// Source says where an origin's kubeconfig is.
type Source struct {
	// Secret is the Secret's name, in the origin's namespace.
	Secret string
	// Key is the only key that may be read, if somebody named one.
	Key string
	// Candidates are keys to try, in order; the first that the cluster answers to is used. Empty means the usual ones.
	Candidates []string
}

// NotReady says why an origin has no kubeconfig yet. It is not a failure.
type NotReady struct{ Message string }

func (e *NotReady) Error() string { return e.Message }

// KubeConfig returns where the kubeconfig of an origin is, or *NotReady.
func KubeConfig(k Kind, obj *unstructured.Unstructured) (Source, error) {
	switch k.GroupKind {
	case Kamaji.GroupKind:
		return kamajiKubeConfig(obj)
	case ClusterAPI.GroupKind:
		return clusterAPIKubeConfig(obj)
	default:
		return Source{Secret: obj.GetName(), Key: obj.GetAnnotations()[hubv1.KubeConfigKeyAnnotation]}, nil
	}
}

// kamajiKeyAnnotation is Kamaji's own (api/v1alpha1/types.go, KubeconfigSecretKeyAnnotation).
const kamajiKeyAnnotation = "kamaji.clastix.io/kubeconfig-secret-key"

// kamajiKubeConfig reads status.kubeconfig.admin.secretName. Its Secret holds the admin twice: admin.svc names the Service,
// which is what a hub beside Kamaji reaches best, and admin.conf the address that nodes use. Which of them works depends on
// where the hub runs, so both are candidates, and the probe decides.
//
// The status word is not asked: Kamaji says Ready only when every replica is, so an API server that answers may be called
// NotReady, and v1.0.0 says Ready at zero replicas. The probe knows better.
func kamajiKubeConfig(obj *unstructured.Unstructured) (Source, error) {
	secret, _, _ := unstructured.NestedString(obj.Object, "status", "kubeconfig", "admin", "secretName")
	if secret == "" {
		state, _, _ := unstructured.NestedString(obj.Object, "status", "kubernetesResources", "version", "status")
		if state == "" {
			state = "without a status yet"
		}
		return Source{}, &NotReady{fmt.Sprintf("TenantControlPlane %q has no status.kubeconfig.admin.secretName; it is %s", obj.GetName(), state)}
	}
	if key := obj.GetAnnotations()[kamajiKeyAnnotation]; key != "" {
		return Source{Secret: secret, Key: key}, nil
	}
	return Source{Secret: secret, Candidates: []string{"admin.svc", "admin.conf"}}, nil
}

// clusterAPIKubeConfig follows the contract of Cluster API: Secret <cluster>-kubeconfig, key value
// (util/secret/consts.go), there once the control plane is initialized. That status is sticky, and v1beta1 and v1beta2
// keep it in different places.
func clusterAPIKubeConfig(obj *unstructured.Unstructured) (Source, error) {
	initialized, _, _ := unstructured.NestedBool(obj.Object, "status", "initialization", "controlPlaneInitialized")
	ready, _, _ := unstructured.NestedBool(obj.Object, "status", "controlPlaneReady")
	if !initialized && !ready {
		phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
		if phase == "" {
			phase = "without a phase yet"
		}
		return Source{}, &NotReady{fmt.Sprintf("the control plane of Cluster %q is not initialized yet; the Cluster is %s", obj.GetName(), phase)}
	}
	return Source{Secret: obj.GetName() + "-kubeconfig", Key: "value"}, nil
}

// foreignMarks are labels by which other tools, or this one, own objects. A copied mark would let that tool prune the
// registration, and so strip a cluster.
var foreignMarks = struct {
	prefixes []string
	domains  []string
	exact    map[string]bool
}{
	prefixes: []string{"argocd.argoproj.io/", "applyset.kubernetes.io/", "helm.sh/", "kapp.k14s.io/", "chandler.dev/"},
	domains:  []string{".toolkit.fluxcd.io/"},
	exact: map[string]bool{
		"app.kubernetes.io/instance": true, "app.kubernetes.io/managed-by": true, "app.kubernetes.io/part-of": true,
	},
}

// MirroredLabels returns the labels of an origin that its registration gets.
func MirroredLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		if !isForeignMark(k) {
			out[k] = v
		}
	}
	return out
}

func isForeignMark(key string) bool {
	if foreignMarks.exact[key] {
		return true
	}
	for _, p := range foreignMarks.prefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	for _, d := range foreignMarks.domains {
		if domain, _, ok := strings.Cut(key, "/"); ok && strings.HasSuffix(domain+"/", d) {
			return true
		}
	}
	return false
}
