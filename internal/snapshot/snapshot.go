// SPDX-License-Identifier: Apache-2.0

// Package snapshot is what is known of a fleet, as a file: registrations, what they come from, and the ConfigMaps that sets refer to.
// With it CI needs no access to the hub. It has no credentials, and nothing that a Secret holds. It is pure.
package snapshot

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// Kind is the kind of the file. No API server has it: a fleet is not made by applying one.
const Kind = "FleetSnapshot"

// Snapshot is the file.
type Snapshot struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Taken is when it was exported.
	Taken metav1.Time `json:"taken"`
	// Hub are the flags that the hub publishes.
	Hub           map[string]string `json:"hub,omitempty"`
	Registrations []Registration    `json:"registrations"`
	Origins       []map[string]any  `json:"origins,omitempty"`
	ConfigMaps    []ConfigMap       `json:"configMaps,omitempty"`
	Secrets       []Secret          `json:"secrets,omitempty"`
}

// Registration is what a ClusterRegistration says of its cluster.
type Registration struct {
	Namespace   string                        `json:"namespace"`
	Name        string                        `json:"name"`
	Labels      map[string]string             `json:"labels,omitempty"`
	Annotations map[string]string             `json:"annotations,omitempty"`
	Spec        hubv1.ClusterRegistrationSpec `json:"spec"`
	Facts       Facts                         `json:"facts"`
}

// Facts are what the hub has found out about a cluster.
type Facts struct {
	Provider          string `json:"provider,omitempty"`
	Endpoint          string `json:"endpoint,omitempty"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	ClusterUID        string `json:"clusterUID,omitempty"`
	Nodes             *int32 `json:"nodes,omitempty"`
}

// ConfigMap is one that a set refers to.
type ConfigMap struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Data      map[string]string `json:"data,omitempty"`
	// SharedWith are the namespaces with which its owner shares it.
	SharedWith []string `json:"sharedWith,omitempty"`
}

// Secret says of one that a set refers to which keys it has, and what decides whether and how it is copied or taken apart.
type Secret struct {
	Namespace  string   `json:"namespace"`
	Name       string   `json:"name"`
	Type       string   `json:"type,omitempty"`
	Keys       []string `json:"keys,omitempty"`
	CRDs       bool     `json:"crds,omitempty"`
	Binary     []string `json:"binary,omitempty"`
	Credential string   `json:"credential,omitempty"`
	SharedWith []string `json:"sharedWith,omitempty"`
}

// Ref names a document that a set refers to. Its own Ref has no namespace.
type Ref struct {
	Namespace string
	document.Ref
}

// Of returns the snapshot of a fleet. documents are what its sets refer to.
func Of(objects []preview.Object, documents map[Ref]document.Document, hub map[string]string, now time.Time) *Snapshot {
	s := &Snapshot{APIVersion: hubv1.GroupVersion.String(), Kind: Kind, Taken: metav1.NewTime(now.UTC().Truncate(time.Second)), Hub: hub,
		Registrations: []Registration{}}
	for i := range objects {
		switch o := &objects[i]; {
		case o.Registration != nil && o.Registration.DeletionTimestamp == nil:
			s.Registrations = append(s.Registrations, registration(o.Registration))
		case o.Origin != nil:
			s.Origins = append(s.Origins, known(o.Origin))
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(documents), compare) {
		doc := documents[ref]
		switch {
		case !doc.Found:
		case ref.Kind == "ConfigMap":
			s.ConfigMaps = append(s.ConfigMaps, ConfigMap{ref.Namespace, ref.Name, doc.Data, doc.SharedWith})
		default:
			s.Secrets = append(s.Secrets, Secret{ref.Namespace, ref.Name, doc.Type, doc.Keys, doc.CRDs, doc.Binary, doc.Credential, doc.SharedWith})
		}
	}
	slices.SortFunc(s.Registrations, func(a, b Registration) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return s
}

func compare(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// registration leaves out how the hub logs in to the cluster, but for a workload identity, which is no credential.
func registration(reg *hubv1.ClusterRegistration) Registration {
	out := Registration{Namespace: reg.Namespace, Name: reg.Name, Labels: reg.Labels,
		Annotations: preview.WithoutCopies(reg.Annotations, false), Spec: *reg.Spec.DeepCopy(),
		Facts: Facts{Provider: reg.Status.Provider, Endpoint: reg.Status.Endpoint, KubernetesVersion: reg.Status.KubernetesVersion,
			ClusterUID: string(reg.Status.ClusterUID), Nodes: reg.Status.Nodes}}
	if kc := out.Spec.KubeConfig; kc != nil && kc.WorkloadIdentity == nil {
		out.Spec.KubeConfig = nil
	}
	return out
}

// known keeps what expressions can read; of a Secret that is its labels and what is the hub's: it is not known what tools keep in
// the annotations of one.
func known(u *unstructured.Unstructured) map[string]any {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetLabels(u.GetLabels())
	annotations := preview.WithoutCopies(u.GetAnnotations(), false)
	if u.GroupVersionKind().GroupKind() == origin.Secret.GroupKind {
		maps.DeleteFunc(annotations, func(name, _ string) bool { return !preview.IsOurs(name) })
	}
	out.SetAnnotations(annotations)
	if uid := u.GetUID(); uid != "" {
		out.SetUID(uid)
	}
	for _, part := range []string{"spec", "status"} {
		if v, ok := u.Object[part]; ok && u.GetAPIVersion() != "v1" {
			out.Object[part] = v
		}
	}
	return out.Object
}

// Write returns the file.
func (s *Snapshot) Write() ([]byte, error) {
	raw, err := yaml.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the snapshot: %w", err)
	}
	return append([]byte("# What is known of a fleet, for `chandler diff --fleet`. It has no credentials. Do not apply it.\n"), raw...), nil
}

// Read reads a file; nil if it is something else.
func Read(name string, raw []byte) (*Snapshot, error) {
	if !bytes.Contains(raw, []byte(Kind)) {
		return nil, nil
	}
	converted, err := yaml.YAMLToJSON(raw)
	if err != nil {
		return nil, nil //nolint:nilerr // several documents, or none: its next reader says what is wrong
	}
	var is metav1.TypeMeta
	if utiljson.Unmarshal(converted, &is) != nil || is.Kind != Kind {
		return nil, nil
	}
	if is.APIVersion != hubv1.GroupVersion.String() {
		return nil, fmt.Errorf("%s: this FleetSnapshot is of %s, and this program reads %s: export it again", name, is.APIVersion,
			hubv1.GroupVersion)
	}
	s := &Snapshot{}
	if err := utiljson.Unmarshal(converted, s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// Objects returns what the hub would read.
func (s *Snapshot) Objects(file string) []preview.Object {
	var out []preview.Object
	add := func(o preview.Object) {
		o.File = file
		out = append(out, o)
	}
	for i := range s.Registrations {
		r := &s.Registrations[i]
		reg := &hubv1.ClusterRegistration{Spec: r.Spec}
		reg.Namespace, reg.Name, reg.Labels, reg.Annotations = r.Namespace, r.Name, r.Labels, r.Annotations
		reg.Status.Provider, reg.Status.Endpoint, reg.Status.KubernetesVersion = r.Facts.Provider, r.Facts.Endpoint, r.Facts.KubernetesVersion
		reg.Status.ClusterUID, reg.Status.Nodes = types.UID(r.Facts.ClusterUID), r.Facts.Nodes
		add(preview.Object{Kind: preview.RegistrationKind, Namespace: r.Namespace, Name: r.Name, Registration: reg})
	}
	for _, o := range s.Origins {
		u := &unstructured.Unstructured{Object: o}
		add(preview.Object{Kind: u.GroupVersionKind().GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Origin: u})
	}
	for _, m := range s.ConfigMaps {
		doc := document.ConfigMap(nil, m.Data)
		doc.SharedWith = m.SharedWith
		add(preview.Object{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: m.Namespace, Name: m.Name, Document: &doc})
	}
	for _, m := range s.Secrets {
		doc := preview.SecretDocument(&document.Document{Type: m.Type, Keys: m.Keys, CRDs: m.CRDs, Binary: m.Binary, Credential: m.Credential,
			SharedWith: m.SharedWith})
		add(preview.Object{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: m.Namespace, Name: m.Name, Document: &doc})
	}
	return merged(out)
}

// merged makes one object of a Secret that is an origin and that a set refers to.
func merged(objects []preview.Object) []preview.Object {
	at := map[string]int{}
	var out []preview.Object
	for _, o := range objects {
		k := o.Kind.String() + " " + o.Namespace + "/" + o.Name
		if i, there := at[k]; there {
			out[i].Document = o.Document
			continue
		}
		at[k] = len(out)
		out = append(out, o)
	}
	return out
}
