// SPDX-License-Identifier: Apache-2.0

// Package crdschema validates objects by the schemas and the CEL rules of CRDs, as the API server does: by the API
// server's own libraries. It has our CRDs, and those of the Flux version that the project is tested with.
package crdschema

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/yamlfile"
)

// embedded are copies of CRDs. `make generate` writes them (hack/crds).
//
//go:embed crds
var embedded embed.FS

// Library has the schemas of some kinds. The kinds that it does not have are those of the CRDs that are built in. A nil
// Library has none of its own.
type Library struct {
	schemas map[schema.GroupVersionKind]*Schema
	// ID differs between libraries of different content; empty for none of its own.
	ID string
}

// Parse returns the library of some CRDs, each of which may hold several as YAML documents. Documents of other kinds are
// left out.
func Parse(files ...[]byte) (*Library, error) {
	l := &Library{schemas: map[schema.GroupVersionKind]*Schema{}}
	var parts []string
	for _, file := range files {
		for _, doc := range yamlfile.Split(file) {
			n, err := l.add(doc.Raw)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				parts = append(parts, string(doc.Raw))
			}
		}
	}
	if len(parts) > 0 {
		l.ID = identity.Hash(16, parts...)
	}
	return l, nil
}

// Of returns the library of some CRDs. If one of them cannot be read, it returns an error, and the library of the others.
func Of(crds []apiextensionsv1.CustomResourceDefinition) (*Library, error) {
	l := &Library{schemas: map[schema.GroupVersionKind]*Schema{}}
	var parts []string
	var errs []error
	for i := range crds {
		raw, err := json.Marshal(crds[i].Spec)
		if err == nil {
			_, err = l.Add(&crds[i])
		}
		errs, parts = append(errs, err), append(parts, string(raw)) // of one that cannot be read, some versions may count
	}
	if len(parts) > 0 {
		l.ID = identity.Hash(16, parts...)
	}
	return l, errors.Join(errs...)
}

// Hash returns what differs between libraries of different content; "" for none of its own.
func (l *Library) Hash() string {
	if l == nil {
		return ""
	}
	return l.ID
}

// add adds the served versions of a CRD, and returns how many there are.
func (l *Library) add(doc []byte) (int, error) {
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
	}
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return 0, fmt.Errorf("read a CRD: %w", err)
	}
	if head.Kind != "CustomResourceDefinition" {
		return 0, nil
	}
	if want := apiextensionsv1.SchemeGroupVersion.String(); head.APIVersion != want {
		return 0, fmt.Errorf("CRD %s is of %s: only %s can be read", head.Metadata.Name, head.APIVersion, want)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(doc, crd); err != nil {
		return 0, fmt.Errorf("read CRD %s: %w", head.Metadata.Name, err)
	}
	return l.Add(crd)
}

// Add adds the served versions of a CRD, and returns how many there are. A library is not added to once it is used.
func (l *Library) Add(crd *apiextensionsv1.CustomResourceDefinition) (int, error) {
	n := 0
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if !v.Served || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		s := &Schema{kind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}}
		if err := s.read(v.Schema.OpenAPIV3Schema, crd.Spec.Scope == apiextensionsv1.NamespaceScoped); err != nil {
			return n, fmt.Errorf("CRD %s: %w", crd.Name, err)
		}
		l.schemas[s.kind] = s
		n++
	}
	return n, nil
}

// Of returns the schema of a kind; nil if there is none.
func (l *Library) Of(kind schema.GroupVersionKind) *Schema {
	if l != nil {
		if s := l.schemas[kind]; s != nil {
			return s
		}
	}
	return builtIn(kind)
}

// Ours returns the schema of one of our own kinds that people write: AddonSet, ClusterRegistration or Team.
func Ours(kind string) *Schema { return builtIn(hubv1.GroupVersion.WithKind(kind)) }

// Built in are read when they are first asked for: most commands need few of them.
var builtIns sync.Map // of func() *Schema, by GroupVersionKind

func builtIn(kind schema.GroupVersionKind) *Schema {
	read, ok := builtIns.Load(kind)
	if !ok {
		read, _ = builtIns.LoadOrStore(kind, sync.OnceValue(func() *Schema {
			raw, err := embedded.ReadFile(path.Join("crds", strings.ToLower(kind.Kind)+"."+kind.Group+".json"))
			if err != nil {
				return nil
			}
			l, err := Parse(raw)
			if err != nil {
				panic(err) // a test reads every one of them
			}
			return l.schemas[kind]
		}))
	}
	return read.(func() *Schema)()
}

// BuiltIn returns the CRDs of Flux that are built in, without what is for people and without the status.
func BuiltIn() ([]apiextensionsv1.CustomResourceDefinition, error) {
	files, err := embedded.ReadDir("crds")
	if err != nil {
		return nil, fmt.Errorf("the CRDs that are built in: %w", err)
	}
	var out []apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		if strings.HasSuffix(file.Name(), "."+hubv1.GroupVersion.Group+".json") {
			continue
		}
		raw, err := embedded.ReadFile(path.Join("crds", file.Name()))
		if err != nil {
			return nil, fmt.Errorf("the CRDs that are built in: %w", err)
		}
		crd := apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(raw, &crd); err != nil {
			return nil, fmt.Errorf("CRD %s: %w", file.Name(), err)
		}
		out = append(out, crd)
	}
	return out, nil
}
