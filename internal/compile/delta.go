// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Delta is the difference between two revisions.
type Delta struct {
	everywhere  bool
	old, recent []layer
}

// layer is an overlay of a revision: whom it is for, and all of it as text.
type layer struct {
	selector labels.Selector
	raw      []byte
}

// NewDelta returns the difference between the contents of two revisions.
func NewDelta(old, recent []byte) (*Delta, error) {
	d := &Delta{}
	var rest [2][]byte
	for i, of := range []struct {
		raw  []byte
		into *[]layer
	}{{old, &d.old}, {recent, &d.recent}} {
		var s snapshot
		if err := json.Unmarshal(of.raw, &s); err != nil {
			return nil, fmt.Errorf("read the revision: %w", err)
		}
		for j := range s.Overlays {
			l, err := newLayer(&s.Overlays[j])
			if err != nil {
				return nil, fmt.Errorf("overlay %q: %w", s.Overlays[j].Name, err)
			}
			*of.into = append(*of.into, l)
		}
		s.Overlays = nil
		raw, err := json.Marshal(s)
		if err == nil {
			rest[i], err = canonical(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("read the revision: %w", err)
		}
	}
	d.everywhere = !bytes.Equal(rest[0], rest[1])
	return d, nil
}

func newLayer(o *hubv1.Overlay) (layer, error) {
	l := layer{selector: labels.Everything()}
	if o.ClusterSelector != nil {
		var err error
		if l.selector, err = metav1.LabelSelectorAsSelector(o.ClusterSelector); err != nil {
			return l, err
		}
	}
	raw, err := json.Marshal(o)
	if err == nil {
		l.raw, err = canonical(raw)
	}
	return l, err
}

// Touches returns whether a cluster with some labels may get something else from the one revision than from the other. If
// not, both render the same there: they differ only by overlays that are not for it.
func (d *Delta) Touches(set labels.Set) bool {
	if d.everywhere {
		return true
	}
	a, b := matching(d.old, set), matching(d.recent, set)
	if len(a) != len(b) {
		return true
	}
	for i := range a {
		if !bytes.Equal(a[i].raw, b[i].raw) {
			return true
		}
	}
	return false
}

func matching(all []layer, set labels.Set) []layer {
	var out []layer
	for _, l := range all {
		if l.selector.Matches(set) {
			out = append(out, l)
		}
	}
	return out
}
