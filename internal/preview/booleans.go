// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-hub/chandler/internal/yamlfile"
)

// booleans are the words of YAML 1.1, which kubectl and the hub read, that are texts in YAML 1.2. In another case, such as oN, they are
// texts in both.
var booleans = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

// Booleans returns a warning for each word without quotes that becomes true or false, such as y, in the objects of our own kinds of a
// file. A variable or value of an add-on may have any type, so that nothing refuses it there.
func Booleans(name string, raw []byte) []string {
	b := booleanFinder{file: name}
	for _, d := range yamlfile.Split(raw) {
		var n yaml.Node
		if yaml.Unmarshal(d.Raw, &n) == nil && len(n.Content) == 1 { // what does not parse is told by Parse
			b.line = d.Line
			b.objects(n.Content[0])
		}
	}
	return b.found
}

type booleanFinder struct {
	file string
	// line is that on which the document begins, counted from 0, and object is the one that is looked into.
	line   int
	object string
	found  []string
}

// objects looks into an object, or into the items of a list.
func (b *booleanFinder) objects(n *yaml.Node) {
	kind := textOf(n, "kind")
	if items := valueOf(n, "items"); items != nil && strings.HasSuffix(kind, "List") {
		for _, item := range items.Content {
			b.objects(item)
		}
		return
	}
	gk := schema.FromAPIVersionAndKind(textOf(n, "apiVersion"), kind).GroupKind()
	if !slices.Contains([]schema.GroupKind{setKind, teamKind, registrationKind}, gk) {
		return
	}
	metadata := valueOf(n, "metadata")
	b.object = fmt.Sprintf("%s %s/%s", kind, cmp.Or(textOf(metadata, "namespace"), "default"), textOf(metadata, "name"))
	b.find(n, "")
}

// find looks at all that is below a path. An alias is not followed: its anchor has been looked at.
func (b *booleanFinder) find(n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if is, ok := boolean(key); ok {
				b.tell(key, path, "the key %s without quotes is \"%t\" for kubectl apply and the hub; write %q", key.Value, is, key.Value)
			}
			b.find(n.Content[i+1], strings.TrimPrefix(path+"."+key.Value, "."))
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			b.find(item, fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		if is, ok := boolean(n); ok {
			b.tell(n, path, "%s without quotes is %t for kubectl apply and the hub; write %q if it is text, and %t if it is not", n.Value, is,
				n.Value, is)
		}
	}
}

func (b *booleanFinder) tell(n *yaml.Node, path, format string, args ...any) {
	b.found = append(b.found, fmt.Sprintf("%s, line %d: %s: %s: %s", b.file, b.line+n.Line, b.object, path, fmt.Sprintf(format, args...)))
}

// boolean returns what a scalar becomes. One in quotes or with a tag is what it says.
func boolean(n *yaml.Node) (is, ok bool) {
	if n.Kind != yaml.ScalarNode || n.Style != 0 {
		return false, false
	}
	is, ok = booleans[n.Value]
	return is, ok
}

// valueOf returns the value of a key of a mapping, or nil.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func textOf(n *yaml.Node, key string) string {
	if v := valueOf(n, key); v != nil {
		return v.Value
	}
	return ""
}
