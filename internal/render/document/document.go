// SPDX-License-Identifier: Apache-2.0

// Package document describes the ConfigMaps and Secrets that sets refer to: what rendering may know of them, and the objects that they
// hold. Nothing secret of a Secret is in a Document.
package document

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
)

// Ref names a ConfigMap or Secret.
type Ref struct {
	Kind, Name string
	// Namespace is empty for the set's own.
	Namespace string
}

// In returns the namespace of what a set of a namespace refers to, and a Ref without one.
func (r Ref) In(set string) (namespace string, ref Ref) {
	return cmp.Or(r.Namespace, set), Ref{Kind: r.Kind, Name: r.Name}
}

// Document is a ConfigMap or Secret. It never holds anything secret of a Secret.
type Document struct {
	// Found is false if the object does not exist.
	Found bool
	// Version changes when the content changes.
	Version string
	// Keys of its data, sorted.
	Keys []string
	// CRDs is true if its objects include a CustomResourceDefinition.
	CRDs bool
	// Objects are those that its keys hold. Those of a Secret are compared, and never told.
	Objects map[string][]ObjectID
	// Data of a ConfigMap.
	Data map[string]string
	// Type of a Secret.
	Type string
	// Binary are those of a Secret's keys whose values are not text.
	Binary []string
	// SharedWith are the namespaces with which its owner shares it.
	SharedWith []string
	// Credential says what a Secret is by which its reader can log in to a cluster; empty if it is none.
	Credential string
}

// Copy is an object beside a cluster that Flux reads for an add-on.
type Copy struct {
	// Ref is the object. Its Namespace is that of the registration.
	Ref
	// As is the name of the copy in the set's namespace. It is of the same kind.
	As string
	// Keys are those that the add-on uses, sorted.
	Keys []string
}

// SharedWith returns the namespaces with which the owner of a ConfigMap or Secret shares the object.
func SharedWith(annotations map[string]string) []string {
	return strings.FieldsFunc(annotations[hubv1.ShareAnnotation], func(r rune) bool { return r == ',' || r == ' ' })
}

// crd matches a text in YAML or JSON whose objects include a CustomResourceDefinition. It may match one without: the release for them is
// then empty.
var crd = regexp.MustCompile(`(?m)["']?kind["']?\s*:\s*["']?CustomResourceDefinition\b`)

// ConfigMap returns the document of an existing ConfigMap with these annotations and data. Its version is a hash of the data.
func ConfigMap(annotations, data map[string]string) Document {
	d := Document{Found: true, Data: data, SharedWith: SharedWith(annotations)}
	for k := range data {
		d.Keys = append(d.Keys, k)
	}
	slices.Sort(d.Keys)
	d.CRDs = slices.ContainsFunc(d.Keys, func(k string) bool { return crd.MatchString(data[k]) })
	d.Objects = held(maps.All(data))
	parts := make([]string, 0, 2*len(d.Keys))
	for _, k := range d.Keys {
		parts = append(parts, k, data[k])
	}
	d.Version = identity.Hash(16, parts...)
	return d
}

// held returns the objects that the keys of a ConfigMap or Secret hold.
func held[T string | []byte](data iter.Seq2[string, T]) map[string][]ObjectID {
	out := map[string][]ObjectID{}
	for k, v := range data {
		if ids := inText(string(v)); len(ids) > 0 {
			out[k] = ids
		}
	}
	return out
}

// kubeConfig are the fields that a kubeconfig has, in YAML or JSON.
var kubeConfig = []*regexp.Regexp{regexp.MustCompile(`\bclusters["']?\s*:`), regexp.MustCompile(`\bcontexts["']?\s*:`),
	regexp.MustCompile(`\busers["']?\s*:`)}

// Secret returns the document of an existing Secret, which has nothing of its values. Its version is the caller's to say.
func Secret(labels, annotations map[string]string, kind corev1.SecretType, data map[string][]byte) Document {
	d := Document{Found: true, Keys: slices.Sorted(maps.Keys(data)), Type: string(cmp.Or(kind, corev1.SecretTypeOpaque)),
		SharedWith: SharedWith(annotations)}
	d.Objects = held(maps.All(data))
	for _, k := range d.Keys {
		v := data[k]
		d.CRDs = d.CRDs || crd.Match(v)
		if bytes.ContainsRune(v, utf8.RuneError) { // that is also what stands for anything else
			d.Binary = append(d.Binary, k)
		}
		if !slices.ContainsFunc(kubeConfig, func(field *regexp.Regexp) bool { return !field.Match(v) }) { // it has all of them
			d.Credential = fmt.Sprintf("has a kubeconfig in key %q", k)
		}
	}
	switch _, registers := labels[hubv1.RegisterLabel]; {
	case labels[hubv1.ClusterKeyLabel] != "" || labels[hubv1.CopyLabel] != "":
		d.Credential = "is the hub's copy of a kubeconfig"
	case registers:
		d.Credential = "registers a cluster"
	case kind == corev1.SecretTypeServiceAccountToken, kind == corev1.SecretTypeBootstrapToken:
		d.Credential = "has a token of the management cluster"
	}
	return d
}

// ObjectID is what an API server knows an object by: all versions of a group are one. Namespace is empty if the object names none.
type ObjectID struct{ Group, Kind, Namespace, Name string }

func (id ObjectID) String() string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return fmt.Sprintf("%s %s/%s", id.Kind, id.Namespace, id.Name)
}

// In returns the identity of an object that is delivered to a namespace.
func (id ObjectID) In(namespace string) ObjectID {
	if fluxspec.IsClusterScoped(id.Group, id.Kind) {
		namespace, id.Namespace = "", ""
	}
	id.Namespace = cmp.Or(id.Namespace, namespace)
	return id
}

// Identify returns the identity of an object. What is an expression in it is taken as a text.
func Identify(o map[string]any) ObjectID {
	u := unstructured.Unstructured{Object: o}
	apiVersion := u.GetAPIVersion() // it may be an expression, which is no group yet
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok && !strings.Contains(apiVersion, "<<") {
		group = ""
	}
	return ObjectID{group, u.GetKind(), u.GetNamespace(), u.GetName()}
}

// Identities returns those of an object, or of the items of a list. What has no kind or name has none.
func Identities(v any) []ObjectID { return identities(nil, v, "", "") }

// identities adds those of an object, or of the items of a list. Items may leave out what follows from the list.
func identities(ids []ObjectID, v any, apiVersion, kind string) []ObjectID {
	if list, ok := v.([]any); ok {
		for _, x := range list {
			ids = identities(ids, x, apiVersion, kind)
		}
		return ids
	}
	o, ok := v.(map[string]any)
	if !ok {
		return ids
	}
	if own, _ := o["kind"].(string); own != "" {
		kind = own
	}
	if own, _ := o["apiVersion"].(string); own != "" {
		apiVersion = own
	}
	if items, ok := o["items"].([]any); ok && strings.HasSuffix(kind, "List") {
		if kind == "List" {
			apiVersion = ""
		}
		return identities(ids, items, apiVersion, strings.TrimSuffix(kind, "List"))
	}
	id := Identify(o)
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group = ""
	}
	if id.Group, id.Kind = group, kind; id.Kind != "" && id.Name != "" {
		ids = append(ids, id)
	}
	return ids
}

// separator stands between documents, as for the chart that delivers them (package manifestchart).
var separator = regexp.MustCompile(`(?m)^(?:---(?:[ \t]+|#.*$|$)|\.\.\.(?:[ \t]+|$))`)

// inText returns the identities of the objects in a text of YAML or JSON documents. It leaves out what cannot be read: Helm tells of that.
func inText(text string) []ObjectID {
	var ids []ObjectID
	for _, part := range separator.Split(strings.ReplaceAll(text, "\r\n", "\n"), -1) {
		var v any
		if strings.Contains(part, "kind") && yaml.Unmarshal([]byte(part), &v) == nil {
			ids = identities(ids, v, "", "")
		}
	}
	return ids
}
