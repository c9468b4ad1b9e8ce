// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
)

// Pins are what a revision holds in place of what floats, so that upstream news reaches no cluster but by a new revision.
type Pins struct {
	// Sources maps a HelmChart, GitRepository or OCIRepository that follows upstream (SourceKey) to a chart version, a commit,
	// or a digest.
	Sources map[string]string `json:"sources,omitempty"`
	// ConfigMaps are the data of those of variablesFrom, by name; nil for one that did not exist.
	ConfigMaps map[string]map[string]string `json:"configMaps,omitempty"`
}

// SourceKey is how Pins name the object that follows upstream.
func SourceKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// Empty returns whether nothing is pinned.
func (p *Pins) Empty() bool { return p == nil || len(p.Sources)+len(p.ConfigMaps) == 0 }

// Equal returns whether two revisions hold the same.
func (p *Pins) Equal(o *Pins) bool {
	if p.Empty() || o.Empty() {
		return p.Empty() && o.Empty()
	}
	return maps.Equal(p.Sources, o.Sources) && maps.EqualFunc(p.ConfigMaps, o.ConfigMaps, func(a, b map[string]string) bool {
		return (a == nil) == (b == nil) && maps.Equal(a, b)
	})
}

// Clone returns a copy, and never nil. The data of ConfigMaps are shared, for reading.
func (p *Pins) Clone() *Pins {
	out := &Pins{Sources: map[string]string{}, ConfigMaps: map[string]map[string]string{}}
	if p != nil {
		maps.Copy(out.Sources, p.Sources)
		maps.Copy(out.ConfigMaps, p.ConfigMaps)
	}
	return out
}

// Source returns what a source that follows upstream is pinned to; "" if it is not.
func (p *Pins) Source(key string) string {
	if p == nil {
		return ""
	}
	return p.Sources[key]
}

// ConfigMap returns the data that a ConfigMap is pinned to; nil data if it did not exist. ok is false if it is not pinned.
func (p *Pins) ConfigMap(name string) (data map[string]string, ok bool) {
	if p == nil {
		return nil, false
	}
	data, ok = p.ConfigMaps[name]
	return data, ok
}
