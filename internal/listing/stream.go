// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Stream writes objects as one list, as kubectl does, and holds none of them.
type Stream struct {
	W io.Writer
	// YAML is instead of JSON.
	YAML bool
	// Plain is for what is no object of Kubernetes: the list has only items.
	Plain bool

	begun bool
}

// Add writes an object.
func (s *Stream) Add(object any) error {
	if s.YAML {
		raw, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("write as YAML: %w", err)
		}
		head := ""
		if !s.begun {
			head = s.start("apiVersion: v1\n", "items:\n")
		}
		lines := bytes.ReplaceAll(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"), []byte("\n  "))
		return s.write("%s- %s\n", head, bytes.ReplaceAll(lines, []byte("\n  \n"), []byte("\n\n")))
	}
	raw, err := json.MarshalIndent(object, "        ", "    ")
	if err != nil {
		return fmt.Errorf("write as JSON: %w", err)
	}
	head := ",\n"
	if !s.begun {
		head = s.start("{\n    \"apiVersion\": \"v1\",\n", "    \"items\": [\n")
		if s.Plain {
			head = "{\n" + head
		}
	}
	return s.write("%s        %s", head, raw)
}

// Close ends the list. One without objects is an empty list.
func (s *Stream) Close() error {
	kind := !s.Plain
	switch {
	case s.YAML && !s.begun && kind:
		return s.write("apiVersion: v1\nitems: []\nkind: List\n")
	case s.YAML && !s.begun:
		return s.write("items: []\n")
	case s.YAML && kind:
		return s.write("kind: List\n")
	case s.YAML:
		return nil
	case !s.begun && kind:
		return s.write("{\n    \"apiVersion\": \"v1\",\n    \"items\": [],\n    \"kind\": \"List\"\n}\n")
	case !s.begun:
		return s.write("{\n    \"items\": []\n}\n")
	case kind:
		return s.write("\n    ],\n    \"kind\": \"List\"\n}\n")
	}
	return s.write("\n    ]\n}\n")
}

// One writes a single object as it is.
func One(w io.Writer, object any, asYAML bool) error {
	s := &Stream{W: w}
	if asYAML {
		raw, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("write as YAML: %w", err)
		}
		return s.write("%s", raw)
	}
	raw, err := json.MarshalIndent(object, "", "    ")
	if err != nil {
		return fmt.Errorf("write as JSON: %w", err)
	}
	return s.write("%s\n", raw)
}

func (s *Stream) start(version, items string) string {
	if s.begun = true; s.Plain {
		return items
	}
	return version + items
}

func (s *Stream) write(format string, args ...any) error {
	if _, err := fmt.Fprintf(s.W, format, args...); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
