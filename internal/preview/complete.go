// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// The kinds of the objects that others than this package make.
var (
	SetKind          = setKind
	TeamKind         = teamKind
	RegistrationKind = registrationKind
)

// HasClusters returns whether there is any cluster in the fleet.
func (f *Fleet) HasClusters() bool { return len(f.members) > 0 }

// ReadBy has a fleet read the ConfigMaps and Secrets that are not in its files.
func (f *Fleet) ReadBy(read func(namespace string, ref document.Ref) document.Document) {
	f.read = read
}

// SourcesBy has a fleet read the Flux sources that are not in its files.
func (f *Fleet) SourcesBy(read func(kind, namespace, name string) map[string]any) {
	f.readSource = read
}

// Source returns the spec of a Flux source that the hub does not make; nil if it is not known. An object of the files without a namespace
// gets one from whatever applies it.
func (f *Fleet) Source(kind, namespace, name string) map[string]any {
	for _, ns := range []string{namespace, ""} {
		if spec, ok := f.specs[key{schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: kind}, ns, name}]; ok {
			return spec
		}
	}
	if f.readSource == nil {
		return nil
	}
	spec := f.readSource(kind, namespace, name)
	f.specs[key{schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: kind}, namespace, name}] = spec
	return spec
}

// Document returns a ConfigMap, or what is known of a Secret, that something in a namespace refers to.
func (f *Fleet) Document(namespace string, ref document.Ref) document.Document {
	return f.document(namespace, ref)
}

// HasSecret returns whether the files have a Secret.
func (f *Fleet) HasSecret(namespace, name string) bool {
	return f.documents[f.original("Secret", namespace, name)].Found
}

// Pin says what a revision of a set, as namespace/name, holds in place of what floats.
func (f *Fleet) Pin(set string, pins *compile.Pins) {
	if f.pins == nil {
		f.pins = map[string]*compile.Pins{}
	}
	f.pins[set] = pins
}

// SecretDocument returns what is known of a Secret, without its version.
func SecretDocument(of *document.Document) document.Document {
	doc := *of
	doc.Found, doc.Version = true, "preview"
	return doc
}

// IsCluster returns whether an object is a cluster, or says something about one.
func IsCluster(o *Object) bool { return o.Registration != nil || o.Origin != nil }

// IsDelivered returns whether an object says what clusters get.
func IsDelivered(o *Object) bool { return o.Set != nil || o.Team != nil }

// Complete returns objects, and those of others that they do not have by kind, namespace and name. What others have found out about a
// cluster counts for the registration in the files.
func Complete(objects, others []Object, which func(*Object) bool) []Object {
	there := map[key]int{}
	out := slices.Clone(objects)
	for i := range out {
		there[out[i].key()] = i
	}
	for i := range others {
		o := &others[i]
		at, known := there[o.key()]
		switch {
		case !which(o):
		case !known:
			out = append(out, *o)
		case out[at].Registration != nil && out[at].Registration.Status.ClusterUID == "":
			reg := out[at].Registration.DeepCopy()
			reg.Status = o.Registration.Status
			if minor := o.Registration.Labels[hubv1.KubernetesMinorLabel]; minor != "" {
				setLabel(reg, hubv1.KubernetesMinorLabel, minor)
			}
			out[at].Registration = reg
		}
	}
	return out
}
