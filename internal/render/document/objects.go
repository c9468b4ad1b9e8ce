// SPDX-License-Identifier: Apache-2.0

package document

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/fluxspec"
)

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
