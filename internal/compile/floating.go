// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Floating names what a set only refers to, and what may change without a new revision: such a change reaches all
// clusters at once, past every wave. Names are paths in the spec, in its order. It reads bodies as far as they are plain; an
// expression counts as something that floats.
func Floating(spec *hubv1.AddonSetSpec) []string {
	f := &floating{sources: map[string]hubv1.Source{}}
	for _, s := range spec.Sources {
		f.sources[s.Name] = s
	}
	for _, v := range spec.VariablesFrom {
		f.say("variablesFrom", "ConfigMap "+v.ConfigMap)
	}
	for i := range spec.Addons {
		f.body("addons["+spec.Addons[i].Name+"]", &spec.Addons[i].AddonBody, true)
	}
	for i := range spec.Overlays {
		o := &spec.Overlays[i]
		for j := range o.Addons {
			f.body(fmt.Sprintf("overlays[%s].addons[%s]", o.Name, o.Addons[j].Name), &o.Addons[j].AddonBody, false)
		}
	}
	return slices.Compact(f.names)
}

type floating struct {
	sources map[string]hubv1.Source
	names   []string
}

func (f *floating) say(path, what string) { f.names = append(f.names, path+": "+what) }

// reference is how a body names a source.
type reference struct {
	Kind, Name, Namespace string
}

// body looks at one body. whole is true if it is an add-on's own, so that what is missing is not there; an overlay only adds
// to it.
func (f *floating) body(path string, b *hubv1.AddonBody, whole bool) {
	switch {
	case b.HelmRelease != nil:
		f.helmRelease(path+".helmRelease", b.HelmRelease, whole)
	case b.Kustomization != nil:
		f.kustomization(path+".kustomization", b.Kustomization)
	case b.Manifests != nil:
		var m struct{ ManifestsFrom []reference }
		_ = json.Unmarshal(b.Manifests.Raw, &m)
		f.from(path+".manifests.manifestsFrom", m.ManifestsFrom)
	}
}

func (f *floating) helmRelease(path string, raw *apiextensionsv1.JSON, whole bool) {
	var hr struct {
		Chart *struct {
			Spec struct {
				Version   *string
				SourceRef *reference
			}
		}
		ChartRef   *reference
		ValuesFrom []reference
	}
	_ = json.Unmarshal(raw.Raw, &hr) // compile has checked it
	if hr.Chart != nil {
		spec := hr.Chart.Spec
		kind := "HelmRepository"
		if spec.SourceRef != nil {
			kind = f.kind(spec.SourceRef, kind)
		}
		switch {
		case spec.SourceRef != nil && kind != "HelmRepository":
			f.source(path+".chart.spec.sourceRef", spec.SourceRef)
		case spec.Version != nil && !exact(*spec.Version):
			f.say(path+".chart.spec.version", *spec.Version)
		case spec.Version == nil && whole:
			f.say(path+".chart.spec.version", "the latest")
		}
	}
	if hr.ChartRef != nil {
		f.source(path+".chartRef", hr.ChartRef)
	}
	f.from(path+".valuesFrom", hr.ValuesFrom)
}

func (f *floating) kustomization(path string, raw *apiextensionsv1.JSON) {
	var ks struct {
		SourceRef *reference
		PostBuild *struct{ SubstituteFrom []reference }
	}
	_ = json.Unmarshal(raw.Raw, &ks)
	if ks.SourceRef != nil {
		f.source(path+".sourceRef", ks.SourceRef)
	}
	if ks.PostBuild != nil {
		f.from(path+".postBuild.substituteFrom", ks.PostBuild.SubstituteFrom)
	}
}

func (f *floating) from(path string, of []reference) {
	for _, r := range of {
		f.say(path, r.Kind+" "+r.Name)
	}
}

func (f *floating) kind(r *reference, otherwise string) string {
	if s, ok := f.sources[r.Name]; ok {
		return s.Kind
	}
	if r.Kind != "" {
		return r.Kind
	}
	return otherwise
}

// source looks at a source that a body refers to.
func (f *floating) source(path string, r *reference) {
	s, ours := f.sources[r.Name]
	if !ours {
		f.say(path, fmt.Sprintf("%s %s, which is not one of spec.sources", r.Kind, r.Name))
		return
	}
	var spec struct {
		Ref *struct{ Commit, Digest string }
	}
	if s.Spec != nil {
		_ = json.Unmarshal(s.Spec.Raw, &spec)
	}
	switch {
	case s.Kind == "GitRepository" && spec.Ref != nil && commit(spec.Ref.Commit):
	case s.Kind == "OCIRepository" && spec.Ref != nil && digest(spec.Ref.Digest):
	default:
		f.say(path, fmt.Sprintf("%s %s, which follows its branch, tag or range", s.Kind, s.Name))
	}
}

func exact(version string) bool {
	_, err := semver.StrictNewVersion(version)
	return err == nil
}

func commit(text string) bool { return len(text) >= 40 && hexadecimal(text) }

func digest(text string) bool {
	return len(text) == len("sha256:")+64 && hexadecimal(text[len("sha256:"):])
}

func hexadecimal(text string) bool {
	for _, r := range text {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}
