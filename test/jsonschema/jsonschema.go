// SPDX-License-Identifier: Apache-2.0

// Package jsonschema checks the JSON that the command line writes against the schemas in docs.
package jsonschema

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
)

// Checker returns a function that returns why a text is not JSON of a schema; nil if it is. The schema is JSON too, with the keywords
// that a CRD may have. A schema that cannot be read ends the test.
func Checker(t testing.TB, schema []byte) func(text string) error {
	t.Helper()
	published, in := &apiextensionsv1.JSONSchemaProps{}, &apiextensions.JSONSchemaProps{}
	if err := json.Unmarshal(schema, published); err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(published, in, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(in)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return err
		}
		return validation.ValidateCustomResource(nil, v, validator).ToAggregate()
	}
}
