// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// snapshot is the part of a set's spec that decides what runs. It leaves out the fields that only decide which clusters get
// it (selector, priority, deletion policy), and people's own labels and annotations (see Metadata): changing those makes no
// new revision, and no rollout.
type snapshot struct {
	DependsOn     []hubv1.AddonSetReference       `json:"dependsOn,omitempty"`
	Sources       []hubv1.Source                  `json:"sources,omitempty"`
	Variables     map[string]apiextensionsv1.JSON `json:"variables,omitempty"`
	VariablesFrom []hubv1.VariablesSource         `json:"variablesFrom,omitempty"`
	Addons        []hubv1.Addon                   `json:"addons"`
	Overlays      []hubv1.Overlay                 `json:"overlays,omitempty"`
	Pins          *Pins                           `json:"pins,omitempty"`
}

// Snapshot returns the content of a revision and a short hash of it; pins may be nil. The same content has the same hash,
// so a set that goes back to an older spec goes back to its old revision.
func Snapshot(spec *hubv1.AddonSetSpec, pins *Pins) (raw []byte, hash string, err error) {
	if pins.Empty() {
		pins = nil
	}
	raw, err = json.Marshal(snapshot{spec.DependsOn, spec.Sources, spec.Variables, spec.VariablesFrom, bare(spec.Addons), spec.Overlays, pins})
	if err != nil {
		return nil, "", fmt.Errorf("snapshot the set: %w", err)
	}
	if raw, err = canonical(raw); err != nil {
		return nil, "", fmt.Errorf("snapshot the set: %w", err)
	}
	return raw, identity.Hash(10, string(raw)), nil
}

// bare returns add-ons without their labels and annotations.
func bare(addons []hubv1.Addon) []hubv1.Addon {
	if !slices.ContainsFunc(addons, func(a hubv1.Addon) bool { return a.Metadata != nil }) {
		return addons
	}
	out := slices.Clone(addons)
	for i := range out {
		out[i].Metadata = nil
	}
	return out
}

// ContentHash returns the hash of a revision's content, which is part of the revision's name. It is the hash that
// Snapshot returned for it.
func ContentHash(raw []byte) (string, error) {
	raw, err := canonical(raw)
	if err != nil {
		return "", fmt.Errorf("read the revision: %w", err)
	}
	return identity.Hash(10, string(raw)), nil
}

func canonical(raw []byte) ([]byte, error) {
	// It goes through a map, so that the hash does not depend on the order of the keys in a body. Numbers stay as
	// they are written: a float64 would round a large one, and the clusters would get the rounded number.
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// Content returns the part of a set's spec that a revision contains, and its pins; nil if it has none.
func Content(raw []byte) (*hubv1.AddonSetSpec, *Pins, error) {
	var s snapshot
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, nil, fmt.Errorf("read the revision: %w", err)
	}
	return &hubv1.AddonSetSpec{
		DependsOn: s.DependsOn, Sources: s.Sources, Variables: s.Variables, VariablesFrom: s.VariablesFrom, Addons: s.Addons,
		Overlays: s.Overlays,
	}, s.Pins, nil
}

// Revision compiles the content of a revision.
func Revision(raw []byte, author Author) (*Program, error) {
	spec, pins, err := Content(raw)
	if err != nil {
		return nil, err
	}
	p, err := Compile(spec, author)
	if err == nil {
		p.Pins = pins
	}
	return p, err
}
