// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/render"
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
func (f *Fleet) ReadBy(read func(namespace string, ref render.Ref) render.Document) { f.read = read }

// Pin says what a revision of a set, as namespace/name, holds in place of what floats.
func (f *Fleet) Pin(set string, pins *compile.Pins) {
	if f.pins == nil {
		f.pins = map[string]*compile.Pins{}
	}
	f.pins[set] = pins
}

// SecretDocument returns what is known of a Secret, without its version.
func SecretDocument(of *render.Document) render.Document {
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
