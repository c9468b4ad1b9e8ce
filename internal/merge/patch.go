// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Operation is one operation of RFC 6902.
type Operation struct {
	Op, Path, From string
	// Value is JSON. HasValue is true if there is a value, even null.
	Value    any
	HasValue bool
}

// Patch is a list of operations, parsed once and applied often.
type Patch struct {
	operations []Operation
	decoded    jsonpatch.Patch
}

// maxCopied bounds how much copy operations may add to a document, in bytes: a few of them could double it again and
// again.
const maxCopied = 1 << 20

// maxPatched is how large a patch may make a document, in bytes of JSON: many patches, each of which may copy, could
// make one that takes minutes to go through.
const maxPatched = 1 << 20

// NewPatch parses operations. An error names the operation.
func NewPatch(operations []Operation) (*Patch, error) {
	docs := make([]any, len(operations))
	for i, op := range operations {
		if err := op.check(); err != nil {
			return nil, fmt.Errorf("patches[%d]: %w", i, err)
		}
		doc := map[string]any{"op": op.Op, "path": op.Path}
		if op.From != "" {
			doc["from"] = op.From
		}
		if op.HasValue {
			doc["value"] = op.Value
		}
		docs[i] = doc
	}
	raw, err := json.Marshal(docs)
	if err != nil {
		return nil, fmt.Errorf("patches: %w", err)
	}
	decoded, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return nil, fmt.Errorf("patches: %w", err)
	}
	return &Patch{operations, decoded}, nil
}

func (o Operation) check() error {
	needsValue := o.Op == "add" || o.Op == "replace" || o.Op == "test"
	needsFrom := o.Op == "move" || o.Op == "copy"
	switch {
	case needsValue && !o.HasValue:
		return fmt.Errorf("%s needs a value; a null is written by merging it", o.Op)
	case needsFrom && o.From == "":
		return fmt.Errorf("%s needs from", o.Op)
	case !needsValue && !needsFrom && o.Op != "remove":
		return fmt.Errorf("op %q is none of add, remove, replace, move, copy, test", o.Op)
	case needsFrom && !strings.HasPrefix(o.From, "/"):
		return fmt.Errorf("from %q must begin with /", o.From)
	case len(o.Path) < 2 || o.Path[0] != '/':
		return fmt.Errorf("path %q must name a field, such as /values/tolerations/-", o.Path)
	}
	return nil
}

// Apply applies the operations to a copy of doc and returns it. If an operation does not fit, Apply returns an error
// and applies nothing.
func (p *Patch) Apply(doc map[string]any, o Options) (map[string]any, error) {
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if o.Left != nil {
		if *o.Left -= int64(len(raw)); *o.Left < 0 {
			return nil, errors.New("patches: there are too many of them for documents of this size")
		}
	}
	changed, err := p.decoded.ApplyWithOptions(raw, options())
	if err != nil {
		return nil, p.locate(raw, err)
	}
	if len(changed) > maxPatched {
		return nil, fmt.Errorf("patches: they make a document of %d bytes, and %d are the most", len(changed), maxPatched)
	}
	out := map[string]any{}
	if err := utiljson.Unmarshal(changed, &out); err != nil {
		return nil, fmt.Errorf("patches: the result is no object: %w", err)
	}
	for _, op := range p.operations {
		p.trace(op, out, o)
	}
	return out, nil
}

func options() *jsonpatch.ApplyOptions {
	o := jsonpatch.NewApplyOptions()
	o.SupportNegativeIndices = false
	o.AccumulatedCopySizeLimit = maxCopied
	return o
}

// locate finds the operation that failed, because the library does not name it.
func (p *Patch) locate(raw []byte, whole error) error {
	for i := range p.decoded {
		if _, err := p.decoded[:i+1].ApplyWithOptions(raw, options()); err != nil {
			err = plain(err)
			if errors.Is(err, errNothing) {
				err = p.missing(raw, i)
			}
			return fmt.Errorf("patches[%d]: %s %s: %w", i, p.operations[i].Op, p.operations[i].Path, err)
		}
	}
	return fmt.Errorf("patches: %w", plain(whole))
}

var errNothing = errors.New("there is nothing at that path")

// missing says which part of an operation's path does not exist, and how it could: people append to a list that no layer has begun. raw is
// the document before the first operation.
func (p *Patch) missing(raw []byte, i int) error {
	op, doc := &p.operations[i], any(nil)
	before, err := p.decoded[:i].ApplyWithOptions(raw, options())
	if err != nil || json.Unmarshal(before, &doc) != nil || op.Op != "add" {
		return errNothing
	}
	parts := Pointer(op.Path)
	for n, part := range parts[:len(parts)-1] {
		m, ok := doc.(map[string]any)
		if !ok {
			return errNothing
		}
		if doc, ok = m[part]; ok {
			continue
		}
		made := "{}"
		if next := parts[n+1]; next == "-" || next == "0" {
			made = "[]"
		}
		at := strings.Join(strings.Split(op.Path, "/")[:n+2], "/")
		if over := parts[max(n-1, 0)]; n > 0 && (over == "annotations" || over == "labels") {
			return fmt.Errorf("there is no %s; a / within a name is written ~1: %s/%s", at, strings.Join(strings.Split(op.Path, "/")[:n+1], "/"),
				strings.Join(strings.Split(op.Path, "/")[n+1:], "~1"))
		}
		return fmt.Errorf("there is no %s; add it before, by {op: add, path: %s, value: %s}", at, at, made)
	}
	return errNothing
}

// plain rewords the library's errors, which contain the whole value that was tested.
func plain(err error) error {
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed):
		return errors.New("the value there is another one")
	case errors.Is(err, jsonpatch.ErrMissing), errors.Is(err, jsonpatch.ErrInvalidIndex):
		return errNothing
	}
	var size *jsonpatch.AccumulatedCopySizeError
	if errors.As(err, &size) {
		return fmt.Errorf("copies more than %d bytes", maxCopied)
	}
	return errors.New("it does not fit the document")
}

func (p *Patch) trace(op Operation, doc map[string]any, o Options) {
	if o.Trace == nil {
		return
	}
	if op.Op == "move" {
		o.Trace.drop(Pointer(op.From))
	}
	path := Pointer(op.Path)
	switch op.Op {
	case "test":
	case "remove":
		o.Trace.drop(path)
		// This layer also changed the list or object that the value was removed from.
		if in, value := within(doc, path[:len(path)-1]); isLeaf(value) {
			o.Trace.set(in, value, o.Layer)
		}
	default:
		path, value := within(doc, path)
		o.Trace.set(path, value, o.Layer)
	}
}

// isLeaf returns whether a value counts as one field.
func isLeaf(v any) bool {
	m, ok := v.(map[string]any)
	return v != nil && (!ok || len(m) == 0)
}

// within returns the longest part of a path that leads through objects, and the value there: a trace has one entry
// for a whole list.
func within(doc map[string]any, path []string) ([]string, any) {
	var at any = doc
	for i, k := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return path[:i], at
		}
		at = m[k]
	}
	return path, at
}

// Paths returns the paths in the document that the operations write, read or remove.
func (p *Patch) Paths() [][]string {
	if p == nil {
		return nil
	}
	var out [][]string
	for _, op := range p.operations {
		out = append(out, Pointer(op.Path))
		if op.From != "" {
			out = append(out, Pointer(op.From))
		}
	}
	return out
}

// Pointer splits a JSON pointer (RFC 6901).
func Pointer(s string) []string {
	parts := strings.Split(strings.TrimPrefix(s, "/"), "/")
	for i := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[i])
	}
	return parts
}
