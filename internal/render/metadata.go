// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// metadata is what the set says of labels and annotations now.
func (r *renderer) metadata() *compile.Metadata {
	if r.in.Metadata != nil {
		return r.in.Metadata
	}
	return r.p.Metadata
}

// dress gives each object the labels and annotations that people want on it. They are the set's as it is now, and not the revision's: an
// expression may read a variable that this cluster has only with the next revision. So what cannot be evaluated is left out, and nothing
// waits for it.
func (r *renderer) dress() {
	entries, over := r.metadata().Bounded()
	if over != "" {
		r.omit("", "metadata", over)
	}
	delivered := map[string]bool{"": len(r.out.Objects) > 0}
	for i := range r.out.Objects {
		delivered[addonOf(&r.out.Objects[i])] = true
	}
	own := map[string]*hubv1.OwnMetadata{}
	for i := range entries {
		if e := &entries[i]; delivered[e.Addon] {
			if value, there := r.ownValue(e); there {
				put(own, e, value)
			}
		}
	}
	for i := range r.out.Objects {
		if o := &r.out.Objects[i]; own[""] != nil || own[addonOf(o)] != nil {
			r.wear(o, own[""], own[addonOf(o)])
		}
	}
}

// addonOf returns the add-on of the set that an object is of: that with the definitions of an add-on of manifests has another name.
func addonOf(o *flux.Object) string {
	if o.Form == fluxspec.ManifestsKind {
		return strings.TrimSuffix(o.Addon, compile.CRDSuffix)
	}
	return o.Addon
}

func put(own map[string]*hubv1.OwnMetadata, e *compile.OwnEntry, value string) {
	of := own[e.Addon]
	if of == nil {
		of = &hubv1.OwnMetadata{Labels: map[string]string{}, Annotations: map[string]string{}}
		own[e.Addon] = of
	}
	if e.Label {
		of.Labels[e.Key] = value
	} else {
		of.Annotations[e.Key] = value
	}
}

// ownValue evaluates a label or annotation; false if there is none here. What the cluster's owner wrote counts as far as something comes of
// it. All is checked again: the set may not compile.
func (r *renderer) ownValue(e *compile.OwnEntry) (text string, there bool) {
	if why := e.RefusesKey(); why != "" {
		r.omit(e.Addon, e.Path(), why)
		return "", false
	}
	p := pair{r, r.own, r.base()}
	err := p.decide(compile.Error{Addon: e.Addon, Path: e.Path()}, func(s *variables.Scope) error {
		value, err := r.ownText(s, e)
		text, there = "", false
		if err != nil || value == expression.Absent {
			return err
		}
		if why := e.Refuses(value); why != "" {
			return errors.New(why)
		}
		text, there = value.(string)
		return nil
	})
	if one := (compile.Error{}); errors.As(err, &one) {
		r.out.Omitted = append(r.out.Omitted, one)
		return "", false
	}
	return text, there
}

// ownText evaluates the text of a label or annotation.
func (r *renderer) ownText(s *variables.Scope, e *compile.OwnEntry) (any, error) {
	if !expression.Has(e.Text) {
		return e.Text, nil
	}
	t, err := r.p.Template(e.Text)
	if err == nil && t.UsesOrigin() && r.p.Team != nil {
		err = fmt.Errorf("reads the origin of the cluster, which may be in a namespace that is not the Team's")
	}
	if err != nil {
		return nil, err
	}
	value, _, err := s.Eval(t)
	return value, err
}

// omit notes that a label or annotation is left out.
func (r *renderer) omit(addon, path, why string) {
	r.out.Omitted = append(r.out.Omitted, compile.Error{Addon: addon, Path: path, Message: why})
}

// wear puts labels and annotations on an object; the later ones win. The hub's own stay: a set may not write their keys.
func (r *renderer) wear(o *flux.Object, all ...*hubv1.OwnMetadata) {
	labels, annotations := o.Object.GetLabels(), o.Object.GetAnnotations()
	for _, own := range all {
		if own != nil {
			o.Object.SetLabels(with(o.Object.GetLabels(), own.Labels))
			o.Object.SetAnnotations(with(o.Object.GetAnnotations(), own.Annotations))
		}
	}
	if err := o.Seal(); err != nil {
		o.Object.SetLabels(labels)
		o.Object.SetAnnotations(annotations)
		r.omit(addonOf(o), "metadata", err.Error())
	}
}

func with(there, more map[string]string) map[string]string {
	if there == nil {
		there = map[string]string{}
	}
	maps.Copy(there, more)
	return there
}

// dressSource gives a source the set's own labels and annotations, and returns its hash. Its name stays: what refers to it does not change.
// All clusters share it, and may be of several revisions, so it has those that hold no expression, which are the same for all.
func (r *renderer) dressSource(u *unstructured.Unstructured, hash string) (string, error) {
	if r.plain == nil {
		r.plain = plainOf(r.metadata())
	}
	if len(r.plain.Labels)+len(r.plain.Annotations) == 0 {
		return hash, nil
	}
	raw, err := json.Marshal(r.plain)
	if err != nil {
		return "", err
	}
	hash = identity.Hash(16, hash, string(raw))
	u.SetLabels(with(u.GetLabels(), r.plain.Labels))
	annotations := with(u.GetAnnotations(), r.plain.Annotations)
	annotations[hubv1.HashAnnotation] = hash
	u.SetAnnotations(annotations)
	return hash, nil
}

// plainOf returns the labels and annotations of a whole set that hold no expression, and that people may write.
func plainOf(m *compile.Metadata) *hubv1.OwnMetadata {
	out := map[string]*hubv1.OwnMetadata{"": {Labels: map[string]string{}, Annotations: map[string]string{}}}
	for _, e := range m.Entries() {
		if e.Addon == "" && !expression.Has(e.Text) && e.RefusesKey() == "" && e.Refuses(e.Text) == "" {
			put(out, &e, e.Text)
		}
	}
	return out[""]
}
