// SPDX-License-Identifier: Apache-2.0

package crdschema

import (
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/memory"
)

// Schema is that of one version of a CRD.
type Schema struct {
	kind       schema.GroupVersionKind
	namespaced bool
	open       validation.SchemaValidator
	structural *structural.Structural
	// cel compiles the rules when they are first needed, since that takes long. It returns nil if there are none.
	cel func() *cel.Validator
	// pointed is true if a rule of the schema reports another field than that which it stands at.
	pointed bool
	passed  memory.Recent[string, struct{}]
}

func (s *Schema) read(props *apiextensionsv1.JSONSchemaProps, namespaced bool) error {
	in := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, in, nil)
	if err != nil {
		return err
	}
	// The schema of the status is for those who write it. It is not looked at here.
	delete(in.Properties, "status")
	in.Required = slices.DeleteFunc(in.Required, func(name string) bool { return name == "status" })
	if s.open, _, err = validation.NewSchemaValidator(in); err != nil {
		return err
	}
	if s.structural, err = structural.NewStructural(in); err != nil {
		return err
	}
	s.namespaced = namespaced
	s.pointed = pointed(s.structural)
	s.cel = sync.OnceValue(func() *cel.Validator { return cel.NewValidator(s.structural, true, apiservercel.PerCallLimit) })
	return nil
}

func pointed(s *structural.Structural) bool {
	if s == nil {
		return false
	}
	for _, r := range s.XValidations {
		if r.FieldPath != "" {
			return true
		}
	}
	for name := range s.Properties {
		if p := s.Properties[name]; pointed(&p) {
			return true
		}
	}
	return pointed(s.Items) || s.AdditionalProperties != nil && pointed(s.AdditionalProperties.Structural)
}

// Options say what is not known of an object yet.
type Options struct {
	// Partial is true for what is merged into something else. It may lack fields, except in items of lists, which are
	// merged as a whole.
	Partial bool
	// Holes are the paths of values that only stand for others, such as spec.path or spec.valuesFrom[0].name.
	Holes []string
}

// Check returns what the API server would refuse a new object for, and the fields that it would drop, in the order of their
// paths. It changes the object: it drops these fields and fills in defaults. The status is not looked at. Numbers are int64
// or float64.
func (s *Schema) Check(object map[string]any, o Options) []Problem {
	delete(object, "status")
	c := checker{s: s, object: object, o: o}
	c.unknownFields()
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
	if !o.Partial {
		c.add(s.metadata(object))
	}
	c.add(validation.ValidateCustomResource(nil, object, s.open))
	c.add(objectmeta.Validate(nil, object, s.structural, false))
	c.add(listtype.ValidateListSetsAndMaps(nil, s.structural, object))
	// The API server does not evaluate rules either if something else is wrong: they may fail for that.
	if rules := s.cel(); rules != nil && !o.Partial && !c.blocked {
		c.rules = true
		errs, _ := rules.Validate(context.Background(), nil, s.structural, object, nil, apiservercel.RuntimeCELCostBudget)
		c.add(slices.DeleteFunc(errs, notCompiled))
	}
	slices.SortStableFunc(c.out, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return c.out
}

// notCompiled returns whether an error is of a rule that cannot be compiled. The API server has compiled it: it is a later one
// than our libraries, and knows functions that they do not. Such a rule refuses nothing here.
func notCompiled(e *field.Error) bool {
	return strings.HasPrefix(e.Detail, "rule compile error: ") || strings.HasPrefix(e.Detail, "rule compiler initialization error: ")
}

// Refuses returns what the API server would refuse a new object for, in its own words; nil for nothing. It leaves out what Check
// adds: fields that would be dropped, and metadata.
func (s *Schema) Refuses(text []byte) error {
	object := map[string]any{}
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &object); err != nil { // whole numbers are int64, as for the API server
		return err
	}
	delete(object, "status")
	defaulting.Default(object, s.structural)
	errs := validation.ValidateCustomResource(nil, object, s.open)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if rules := s.cel(); rules != nil {
		more, _ := rules.Validate(context.Background(), nil, s.structural, object, nil, apiservercel.RuntimeCELCostBudget)
		errs = append(errs, more...)
	}
	if err := errs.ToAggregate(); err != nil {
		return err
	}
	return nil
}

// metadata returns what is wrong with the metadata.
func (s *Schema) metadata(object map[string]any) field.ErrorList {
	u := &unstructured.Unstructured{Object: object}
	return apivalidation.ValidateObjectMetaAccessor(u, s.namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// checker collects the problems of one object.
type checker struct {
	s      *Schema
	object map[string]any
	o      Options
	out    []Problem
	// misspelt are the fields below which there is one that the schema does not have.
	misspelt []string
	// blocked is true once something is wrong. rules is true while rules are evaluated.
	blocked, rules bool
}

func (c *checker) unknownFields() {
	paths := pruning.PruneWithOptions(c.object, c.s.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range paths {
		parent, _ := split(path)
		c.out, c.misspelt = append(c.out, Problem{path, c.s.unknown(path)}), append(c.misspelt, parent)
	}
}

func (c *checker) add(errs field.ErrorList) {
	for _, e := range errs {
		path := strings.TrimPrefix(strings.ReplaceAll(e.Field, ".[", "["), ".")
		if path == "<nil>" {
			path = ""
		}
		if c.excused(path, e.Type) {
			continue
		}
		c.blocked = true
		p := Problem{path, c.s.reword(path, e, c.rules)}
		if !slices.Contains(c.out, p) {
			c.out = append(c.out, p)
		}
	}
}

// excused returns whether an error says nothing, because of what is not known yet.
func (c *checker) excused(path string, what field.ErrorType) bool {
	if what == field.ErrorTypeRequired {
		parent, _ := split(path)
		if c.o.Partial && !strings.Contains(path, "[") || slices.Contains(c.misspelt, parent) { // it is there, under a wrong name
			return true
		}
	}
	if c.rules && c.s.pointed && len(c.o.Holes) > 0 {
		return true
	}
	return slices.ContainsFunc(c.o.Holes, func(hole string) bool {
		return below(path, hole) || c.rules && below(hole, path)
	})
}

// below returns whether a path is another one, or leads into it.
func below(path, top string) bool {
	rest, ok := strings.CutPrefix(path, top)
	return ok && (rest == "" || top == "" || rest[0] == '.' || rest[0] == '[')
}
