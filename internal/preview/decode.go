// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsjson "sigs.k8s.io/json"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/jsontype"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// strict decodes an object of the hub's own kinds into its type, and returns what does not fit, and what the API server would refuse.
func strict(u *unstructured.Unstructured, into any, schemas *crdschema.Library) []string {
	kind := u.GetKind()
	if v := u.GetAPIVersion(); v != hubv1.GroupVersion.String() {
		return []string{fmt.Sprintf("apiVersion: is %q; write %s", v, hubv1.GroupVersion)}
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return []string{"cannot be written as JSON"}
	}
	var problems []string
	if _, err := sigsjson.UnmarshalStrict(raw, into); err != nil {
		problems = []string{locate(u.Object, kind, err)}
	}
	return beside(refused(u, schemas, crdschema.Options{}), problems)
}

// locate finds the field that does not decode, since the decoder only sometimes names it. It tries each field alone,
// and goes down into the one that fails, until it finds a value of the wrong kind.
func locate(doc map[string]any, kind string, err error) string {
	at := child{value: doc, wrap: func(v any) any { return v }}
	for {
		next, e := failing(at, kind)
		if e == nil {
			return strings.Trim(at.path, ".") + ": " + plain(err)
		}
		at, err = next, e
	}
}

// failing returns the first field below a value that does not decode alone, with the error. It returns no error if
// all decode.
func failing(at child, kind string) (child, error) {
	for _, c := range children(at) {
		if err := decodes(kind, c.wrap(c.value)); err == nil {
			continue
		}
		empty := at.value
		switch at.value.(type) {
		case map[string]any:
			empty = map[string]any{}
		case []any:
			empty = []any{}
		}
		if decodes(kind, at.wrap(empty)) != nil {
			return child{}, nil
		}
		return c, decodes(kind, c.wrap(c.value))
	}
	return child{}, nil
}

func decodes(kind string, doc any) error {
	raw, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	var into any = &hubv1.ClusterRegistration{}
	switch kind {
	case setKind.Kind:
		into = &hubv1.AddonSet{}
	case teamKind.Kind:
		into = &hubv1.Team{}
	}
	_, err = sigsjson.UnmarshalStrict(raw, into)
	return err
}

// child is a value in a document. wrap returns a document that contains only a given value, at the same place.
type child struct {
	path  string
	value any
	wrap  func(any) any
}

func children(at child) []child {
	var out []child
	switch v := at.value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, child{at.path + "." + k, v[k], func(x any) any { return at.wrap(map[string]any{k: x}) }})
		}
	case []any:
		for i, x := range v {
			out = append(out, child{fmt.Sprintf("%s[%d]", at.path, i), x, func(x any) any { return at.wrap([]any{x}) }})
		}
	}
	return out
}

// plain rewords the decoder's error.
func plain(err error) string {
	text := strings.TrimPrefix(err.Error(), "json: ")
	if is, rest, ok := strings.Cut(text, " into Go "); ok {
		want := rest[strings.LastIndex(rest, " ")+1:]
		word := cmp.Or(jsontype.Name(want), jsontype.Object)
		if word == jsontype.Text {
			word = jsontype.Quoted
		}
		is = strings.TrimPrefix(is, "cannot unmarshal ")
		return fmt.Sprintf("is %s, and must be %s", cmp.Or(jsontype.Name(is), is), word)
	}
	if strings.HasPrefix(text, "parsing time ") {
		return "is no time; write one such as 2026-01-31T12:00:00Z"
	}
	return text
}

// names returns problems of an object's name and namespace. YAML reads y, no and 1 as something other than text.
func names(doc map[string]any) []string {
	m, ok := doc["metadata"].(map[string]any)
	if !ok && doc["metadata"] != nil {
		return []string{"metadata: must be an object"}
	}
	var problems []string
	for _, k := range []string{"name", "namespace"} {
		if _, ok := m[k].(string); !ok && m[k] != nil {
			problems = append(problems, fmt.Sprintf("metadata.%s: is %v, which is no text; put it in quotes", k, m[k]))
		}
	}
	return problems
}

// metadata returns problems of the labels and annotations of an object that is read as a map: a single value that is
// not a text would hide all others.
func metadata(u *unstructured.Unstructured) []string {
	var problems []string
	for _, field := range []string{"labels", "annotations"} {
		problems = append(problems, texts(u.Object, "metadata", field)...)
	}
	return problems
}

func texts(doc map[string]any, path ...string) []string {
	var problems []string
	m, _, err := unstructured.NestedMap(doc, path...)
	if err != nil {
		return []string{strings.Join(path, ".") + ": must be an object"}
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if _, ok := m[k].(string); !ok {
			problems = append(problems, fmt.Sprintf("%s.%s: must be %s", strings.Join(path, "."), k, jsontype.Quoted))
		}
	}
	return problems
}

func configMap(u *unstructured.Unstructured) (*document.Document, []string) {
	if problems := texts(u.Object, "data"); len(problems) > 0 {
		return nil, problems
	}
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	annotations, _, _ := unstructured.NestedStringMap(u.Object, "metadata", "annotations")
	d := document.ConfigMap(annotations, data)
	return &d, nil
}

// secret keeps the metadata of a Secret, the names of its keys, and what kinds of things it contains. It keeps nothing else
// of its content.
func secret(u *unstructured.Unstructured) (doc *document.Document, kept *unstructured.Unstructured, content string, problems []string) {
	if problems := metadata(u); len(problems) > 0 {
		return nil, nil, "", problems
	}
	data := map[string][]byte{}
	for _, field := range []string{"data", "stringData"} {
		m, _ := u.Object[field].(map[string]any)
		for k, v := range m {
			text, _ := v.(string)
			if raw, err := base64.StdEncoding.DecodeString(text); err == nil && field == "data" {
				text = string(raw)
			}
			data[k] = []byte(text)
		}
	}
	kind, _ := u.Object["type"].(string)
	of := document.Secret(u.GetLabels(), u.GetAnnotations(), corev1.SecretType(kind), data)
	d := SecretDocument(&of)
	kept = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": origin.Secret.Kind,
		"metadata": u.Object["metadata"]}}
	kept.SetAnnotations(WithoutCopies(kept.GetAnnotations(), true))
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err) // texts and bytes
	}
	sum := sha256.Sum256(raw)
	return &d, kept, string(sum[:]), nil
}
