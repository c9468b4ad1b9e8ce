// SPDX-License-Identifier: Apache-2.0

// Package flux describes the Flux objects that sets are rendered to, and what clusters share of them: what an object is known by, its hash,
// what it is delivered after, and how it becomes a manifest.
package flux

import (
	"encoding/json"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/merge"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// Object is the Flux object of one add-on.
type Object struct {
	Addon string
	Kind  string
	// Form is the kind of the add-on's body.
	Form string
	// DependsOn names the add-ons that must come before it.
	DependsOn []hubv1.AddonReference
	// Release is set for a HelmRelease.
	Release hubv1.HelmReleaseIdentity
	// DefaultRelease is true if Release follows from the add-on's name and body, so that it need not be stored. It
	// is also true for a Kustomization, which has no release.
	DefaultRelease bool
	// Chart is the name of the chart, if Flux would reinstall a release that runs another chart; empty if it would
	// upgrade the release in place.
	Chart string
	// TargetNamespace is where a Kustomization puts objects without a namespace. NamePrefix and NameSuffix are what
	// it adds to names.
	TargetNamespace, NamePrefix, NameSuffix string
	// Path is the folder that a Kustomization applies.
	Path string
	// Once is true if the objects are applied once and then left alone.
	Once bool
	// MovedFrom and Adopt name what it takes over.
	MovedFrom []hubv1.MovedAddon
	Adopt     *Adopt
	// Namespace and Name of the Flux object.
	Namespace, Name string
	// Object is the Flux object before it is linked: only the fields that the hub owns. Nil in a Skeleton.
	Object *unstructured.Unstructured
	// Hash covers everything that is applied. It is set once the object is linked.
	Hash string
	// Shared are the objects that it refers to and that clusters share, sources before charts.
	Shared []Shared
	// Copies are the hub's copies of what lies beside the cluster that it refers to.
	Copies []document.Copy
	// Trace records who set each field of the add-on's body. Only with Explain.
	Trace *merge.Trace

	bodyHash     string
	dependencies []Dependency
	sets         []string
}

// Adopt names a Flux object that a user wrote by hand.
type Adopt struct{ Kind, Namespace, Name string }

// Shared is a HelmChart, source or ServiceAccount. All clusters for which it is rendered the same share it.
type Shared struct {
	Object *unstructured.Unstructured
	// Hash covers everything that is applied. The hub updates its object if that has another one.
	Hash string
	// InPlace is true if its name does not depend on its content.
	InPlace bool
	// Yields is true if an object of that name that the hub has not made serves as well, and stays as it is.
	Yields bool
}

// GroupVersionKind returns the full kind of a Flux object.
func GroupVersionKind(kind string) schema.GroupVersionKind {
	if kind == fluxspec.HelmReleaseKind {
		return helmv2.GroupVersion.WithKind(kind)
	}
	return kustomizev1.GroupVersion.WithKind(kind)
}

// Seal takes the hash of the body, which Link needs. It returns an error if the body is too large, and leaves the hash as it was.
func (o *Object) Seal() error {
	hash, err := digest(o.Object)
	if err == nil {
		o.bodyHash = hash
	}
	return err
}

// Dependency is an object on the same cluster that must come before another one.
type Dependency struct {
	// Addon is its name.
	Addon string
	// Namespace and Name are those of its Flux object, if Flux orders the two; empty if the hub does.
	Namespace, Name string
}

// Link sets what an object is delivered after, and gives it its final hash. sets names AddonSets that must come
// before it as a whole.
func (o *Object) Link(dependencies []Dependency, sets []string) {
	o.dependencies, o.sets = dependencies, sets
	o.Hash = o.bodyHash
	if len(dependencies)+len(sets) > 0 {
		o.Hash = identity.Hash(16, o.bodyHash, fmt.Sprint(dependencies), strings.Join(sets, ","))
	}
}

// Manifest returns the linked object, ready to be applied.
func (o *Object) Manifest() *unstructured.Unstructured {
	u := o.Object.DeepCopy()
	u.SetName(o.Name) // an add-on may go on with an object that was made for another one
	var refs []any
	var names []string
	for _, d := range o.dependencies {
		names = append(names, d.Addon)
		if d.Name == "" {
			continue
		}
		ref := map[string]any{"name": d.Name}
		if d.Namespace != o.Namespace {
			ref["namespace"] = d.Namespace
		}
		refs = append(refs, ref)
	}
	if len(refs) > 0 {
		u.Object["spec"].(map[string]any)["dependsOn"] = refs
	}
	for _, s := range o.sets {
		names = append(names, plan.SetBefore(identity.LabelValue(s)))
	}
	a := u.GetAnnotations()
	a[hubv1.HashAnnotation] = o.Hash
	if len(names) > 0 {
		a[hubv1.DependsOnAnnotation] = strings.Join(names, ",")
	}
	u.SetAnnotations(a)
	return u
}

// Skeleton returns the object without its body, for callers that remember what was rendered and do not need every
// byte.
func (o *Object) Skeleton() Object {
	out := *o
	out.Object, out.Trace, out.Shared = nil, nil, nil
	return out
}

// Complete gives a skeleton the body of the same object, which was rendered again. It returns false if that came out otherwise now.
func (o *Object) Complete(whole *Object) bool {
	if o.bodyHash != whole.bodyHash {
		return false
	}
	o.Object, o.Trace, o.Shared = whole.Object, whole.Trace, whole.Shared
	return true
}

// An object is delivered after so much at most: sixteen add-ons and sixteen sets, as the API has it, and the definitions of the add-on
// itself.
const (
	maxDependsOn       = 16 + 16 + 1
	maxDependsOnLength = maxDependsOn * (len("set/") + 63 + len(","))
)

// ParseDependsOn parses what Manifest wrote into DependsOnAnnotation. It returns nothing if that is more than a set can have: another
// writer has written it then, and the plan goes through each name of each object that leaves.
func ParseDependsOn(names string) []string {
	if names == "" || len(names) > maxDependsOnLength || strings.Count(names, ",") >= maxDependsOn {
		return nil
	}
	return strings.Split(names, ",")
}

// PlaceholderServiceAccount returns what stands, on the management cluster, for a ServiceAccount that Flux impersonates on a cluster.
func PlaceholderServiceAccount(hubID, namespace, name string) (Shared, error) {
	u := &unstructured.Unstructured{Object: map[string]any{"automountServiceAccountToken": false}}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "chandler", hubv1.SourceLabel: hubID})
	hash, err := Stamp(u)
	return Shared{Object: u, Hash: hash, Yields: true}, err
}

// KubeconfigKey is the key of a kubeconfig copy: the first key that Flux looks for (fluxcd/pkg/runtime/client).
const KubeconfigKey = "value"

// FormatRelease formats a release for an annotation. ParseRelease parses it.
func FormatRelease(id hubv1.HelmReleaseIdentity) string {
	return id.Name + "," + id.Namespace + "," + id.StorageNamespace
}

// ParseRelease parses what FormatRelease wrote. It returns false for any other text.
func ParseRelease(s string) (hubv1.HelmReleaseIdentity, bool) {
	parts := strings.Split(s, ",")
	if len(parts) != 3 {
		return hubv1.HelmReleaseIdentity{}, false
	}
	return hubv1.HelmReleaseIdentity{Name: parts[0], Namespace: parts[1], StorageNamespace: parts[2]}, true
}

// digest returns the hash of an object.
func digest(u *unstructured.Unstructured) (string, error) {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return "", fmt.Errorf("hash the object: %w", err)
	}
	if len(raw) > fluxspec.MaxObject {
		return "", fmt.Errorf("the generated object has %d bytes, and %d are the most; move what is large into a source or a ConfigMap", len(raw),
			fluxspec.MaxObject)
	}
	return identity.Hash(16, string(raw)), nil
}

// Stamp writes the hash of an object into its annotations, and returns it. It returns an error if the object is too large.
func Stamp(u *unstructured.Unstructured) (string, error) {
	hash, err := digest(u)
	if err != nil {
		return "", err
	}
	a := u.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[hubv1.HashAnnotation] = hash
	u.SetAnnotations(a)
	return hash, nil
}
