// SPDX-License-Identifier: Apache-2.0

// Package crdschema validates objects by the schema and the CEL rules of their CRD, as the API server would. Tests
// use it to check the manifests that we publish.
package crdschema

import (
	"context"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Schema is that of one CRD.
type Schema struct {
	open       validation.SchemaValidator
	structural *structural.Structural
	cel        *cel.Validator
}

// Read reads the schema of a CRD from its file: that of its first version.
func Read(file string) (*Schema, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	crd, in := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict(raw, crd); err != nil {
		return nil, err
	}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, in,
		nil); err != nil {
		return nil, err
	}
	s := &Schema{}
	if s.open, _, err = validation.NewSchemaValidator(in); err != nil {
		return nil, err
	}
	if s.structural, err = structural.NewStructural(in); err != nil {
		return nil, err
	}
	s.cel = cel.NewValidator(s.structural, true, apiservercel.PerCallLimit)
	return s, nil
}

// Check returns what the API server would refuse a new object for.
func (s *Schema) Check(ctx context.Context, text []byte) error {
	object := map[string]any{}
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &object); err != nil { // whole numbers are int64, as for the API server
		return err
	}
	errs := validation.ValidateCustomResource(nil, object, s.open)
	more, _ := s.cel.Validate(ctx, nil, s.structural, object, nil, apiservercel.RuntimeCELCostBudget)
	if all := append(errs, more...).ToAggregate(); all != nil {
		return all
	}
	return nil
}
