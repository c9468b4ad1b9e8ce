// SPDX-License-Identifier: Apache-2.0

// Package jsontype has the words for the types of JSON values, so that all messages call them the same.
package jsontype

import (
	"encoding/json"
	"strings"
)

// Names of types, as messages write them: "is NAME, and must be NAME".
const (
	Text    = "a text"
	Boolean = "true or false"
	Whole   = "a whole number"
	Number  = "a number"
	List    = "a list"
	Object  = "an object"
	Null    = "null"
)

// Quoted is what to write where a text is wanted: YAML reads on, yes, 1 and 1.5 as something else.
const Quoted = Text + "; put it in quotes"

// Name returns the name of a type, which is called as in OpenAPI or in an error of Go's decoder; "" for any other.
func Name(called string) string {
	switch called {
	case "string":
		return Text
	case "boolean", "bool":
		return Boolean
	case "integer", "int", "int32", "int64":
		return Whole
	case "number", "float64":
		return Number
	case "array":
		return List
	case "object":
		return Object
	case "null":
		return Null
	}
	if strings.HasPrefix(called, "[]") {
		return List
	}
	return ""
}

// Of returns the name of a value's type; "" for what JSON does not have.
func Of(v any) string {
	switch v.(type) {
	case nil:
		return Null
	case string:
		return Text
	case bool:
		return Boolean
	case int, int32, int64, float64, json.Number:
		return Number
	case []any:
		return List
	case map[string]any:
		return Object
	}
	return ""
}
