// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/chandler-hub/chandler/internal/jsontype"
)

const (
	// MaxSize is the largest kubeconfig that Parse looks at, in bytes.
	MaxSize = 256 << 10
	// maxDepth is far above what a kubeconfig needs (an exec plugin's env is at 6) and keeps the recursion below flat.
	maxDepth = 32
)

// load parses raw into the root mapping of a YAML document that every parser reads alike. The tree is read as nodes instead
// of being unmarshalled: nodes keep aliases unexpanded (no billion laughs), show duplicates, and let errors name a path.
func load(raw []byte) (mapping, error) {
	if len(raw) > MaxSize {
		return mapping{}, ruleSize.refuse(Rules{}, "", fmt.Sprintf("the value has %d KiB, more than %d", (len(raw)+1023)>>10, MaxSize>>10))
	}
	if len(bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\ufeff")))) == 0 {
		return mapping{}, &Error{Reason: ReasonEmpty, Message: "the value is empty; put a kubeconfig there"}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil {
		return mapping{}, malformed("", "the value is not valid YAML or JSON"+line(err))
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return mapping{}, ruleYAML.refuse(Rules{}, "", "the value has more than one YAML document")
	case !errors.Is(err, io.EOF):
		return mapping{}, malformed("", "the value is not valid YAML or JSON"+line(err))
	}
	if len(document.Content) != 1 {
		return mapping{}, malformed("", "the value is not a kubeconfig")
	}
	root := document.Content[0]
	if err := plain(root, 0); err != nil {
		return mapping{}, err
	}
	if root.Kind != yaml.MappingNode {
		if encodedTwice(root) {
			return mapping{}, malformed("", "the value is base64 inside; it was encoded once too often (use stringData, or encode once)")
		}
		return mapping{}, malformed("", "the value is not a kubeconfig: not a mapping with clusters, users and contexts")
	}
	return mapping{node: root}, nil
}

// linePrefix matches what the parser itself puts in front of its messages. The rest may quote the input and is dropped.
var linePrefix = regexp.MustCompile(`^yaml: line (\d{1,9}): `)

// line returns where a parser failed, as a suffix for a message.
func line(err error) string {
	if m := linePrefix.FindStringSubmatch(err.Error()); m != nil {
		return " (line " + m[1] + ")"
	}
	return ""
}

// atLine returns where n stands, as a suffix for a message.
func atLine(n *yaml.Node) string {
	return fmt.Sprintf(" (line %d)", n.Line)
}

// plain refuses what parsers read differently, anywhere in the document.
func plain(n *yaml.Node, depth int) error {
	ambiguous := func(what string, at *yaml.Node) error {
		return ruleYAML.refuse(Rules{}, "", what+atLine(at))
	}
	switch {
	case depth > maxDepth:
		return ambiguous("nesting is too deep", n)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return ambiguous("YAML anchors and aliases are not allowed", n)
	case n.Style&yaml.TaggedStyle != 0:
		return ambiguous("YAML tags are not allowed", n)
	}
	if n.Kind == yaml.MappingNode {
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			switch {
			case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
				return ambiguous("a mapping has a key that is not a plain string", key)
			case seen[key.Value]:
				return ambiguous("a mapping has the same key twice", key)
			}
			seen[key.Value] = true
		}
	}
	for _, child := range n.Content {
		if err := plain(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// encodedTwice recognises a common slip: base64 under data instead of stringData, or a double "base64".
func encodedTwice(n *yaml.Node) bool {
	inner, err := decodeBase64(n.Value)
	return n.Kind == yaml.ScalarNode && err == nil && bytes.Contains(inner, []byte("clusters"))
}

// decodeBase64 accepts line breaks and blanks, which folded YAML scalars bring along.
func decodeBase64(s string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), ""))
}

// mapping is a YAML mapping and the path that leads to it, for errors.
type mapping struct {
	node *yaml.Node
	path string
}

// get returns the value of key; nil if it is missing or null, which means the same in a kubeconfig.
func (m mapping) get(key string) *yaml.Node {
	if m.node == nil {
		return nil
	}
	for i := 0; i < len(m.node.Content); i += 2 {
		if v := m.node.Content[i+1]; m.node.Content[i].Value == key && v.ShortTag() != "!!null" {
			return v
		}
	}
	return nil
}

func (m mapping) field(key string) string {
	if m.path == "" {
		return key
	}
	return m.path + "." + key
}

// has tells whether key holds anything that counts: not null, not "", not an empty list or mapping.
func (m mapping) has(key string) bool {
	n := m.get(key)
	return n != nil && (n.Value != "" || len(n.Content) > 0)
}

func (m mapping) str(key string) (string, error) {
	n := m.get(key)
	switch {
	case n == nil:
		return "", nil
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str":
		return "", malformed(m.field(key), "must be "+jsontype.Quoted)
	}
	return n.Value, nil
}

func (m mapping) boolean(key string) (bool, error) {
	n := m.get(key)
	switch {
	case n == nil:
		return false, nil
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool":
		return false, malformed(m.field(key), "must be "+jsontype.Boolean)
	}
	return strings.EqualFold(n.Value, "true"), nil
}

// data returns the bytes that key holds in base64; nil if there are none.
func (m mapping) data(key string) ([]byte, error) {
	s, err := m.str(key)
	if err != nil || strings.TrimSpace(s) == "" {
		return nil, err
	}
	raw, err := decodeBase64(s)
	if err != nil {
		return nil, malformed(m.field(key), "is not base64; encode the PEM text as base64, in one line")
	}
	return raw, nil
}

// entry is a named element of clusters, users or contexts.
type entry struct {
	name string
	body mapping
}

// entries reads the list under key, whose elements hold a name and, under bodyKey, a mapping.
func (m mapping) entries(key, bodyKey string) ([]entry, error) {
	list := m.get(key)
	if list == nil {
		return nil, nil
	}
	if list.Kind != yaml.SequenceNode {
		return nil, malformed(m.field(key), "must be "+jsontype.List)
	}
	seen := map[string]bool{}
	result := make([]entry, 0, len(list.Content))
	for i, n := range list.Content {
		item := mapping{node: n, path: fmt.Sprintf("%s[%d]", m.field(key), i)}
		if n.Kind != yaml.MappingNode {
			return nil, malformed(item.path, "must be "+jsontype.Object+" with name and "+bodyKey)
		}
		name, err := item.str("name")
		if err != nil {
			return nil, err
		}
		body := item.get(bodyKey)
		switch {
		case body != nil && body.Kind != yaml.MappingNode:
			return nil, malformed(item.field(bodyKey), "must be "+jsontype.Object)
		case seen[name]: // clientcmd refuses it, other parsers take the first or the last
			return nil, ruleYAML.refuse(Rules{}, item.field("name"), "the name occurs twice in the list")
		}
		seen[name] = true
		result = append(result, entry{name: name, body: mapping{node: body, path: item.field(bodyKey)}})
	}
	return result, nil
}
