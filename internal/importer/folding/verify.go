// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/facts"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/valid"
)

// verify renders the sets for all clusters that are known, as the hub does, and returns the members for which something
// else comes out than they are, with the reason.
func (f *folder) verify(sets []*set) map[*member]string {
	specs := map[string]map[string]*hubv1.AddonSetSpec{}
	for _, s := range sets {
		if specs[s.home] == nil {
			specs[s.home] = map[string]*hubv1.AddonSetSpec{}
		}
		specs[s.home][s.name] = &s.object.Spec
	}
	wrong := map[*member]string{}
	for _, s := range sets {
		result := f.compile(s, specs[s.home])
		if result != nil && len(s.wrong) == 0 {
			f.render(s, result.Program, result.Selector)
		}
		for m, why := range s.wrong {
			wrong[m] = why
		}
	}
	return wrong
}

// compile returns the compiled set; nil if it is not valid.
func (f *folder) compile(s *set, others map[string]*hubv1.AddonSetSpec) *valid.Result {
	whole := &hubv1.AddonSet{ObjectMeta: s.object.ObjectMeta, Spec: *s.whole()}
	result := valid.Check(whole, f.reach(s.home), f.author(s), others, compile.Compile)
	_, result.Graph = compile.Split(result.Graph) // another set may be in another folder
	err := result.Err()
	if err == nil {
		return &result
	}
	blamed := false
	var errs compile.Errors
	if errors.As(err, &errs) {
		for _, e := range errs {
			for _, g := range s.groups {
				if g.name == e.Addon {
					g.blame("as an add-on it is refused: " + e.Error())
					blamed = true
				}
			}
		}
	}
	if !blamed {
		s.blame("its AddonSet is refused: " + err.Error())
	}
	return nil
}

// render renders a set for every cluster that it could reach.
func (f *folder) render(s *set, program *compile.Program, selector *match.Selector) {
	for _, c := range f.clusters.known() {
		reg := c.registration()
		wanted := slices.Contains(s.clusters, c) // not by its name, which another may have
		if !selector.Matches(reg) {
			if wanted {
				s.blame(fmt.Sprintf("its AddonSet would not select cluster %s: %s", c, selector.Why(reg)))
			}
			continue
		}
		in := &render.Input{Cluster: facts.Cluster(reg, nil), Identity: facts.Identity(reg), Now: f.in.Now}
		target := render.Target{HubID: f.in.Hub.HubID, Namespace: s.home, Set: s.name, Delivery: identity.Delivery(s.name, c.key()),
			Registration: c.key(), Chart: f.in.Hub.Chart}
		result, err := render.Complete(program, target, in, func(ref document.Ref) (document.Document, error) { return s.document(ref), nil })
		if err != nil {
			s.blame(fmt.Sprintf("its AddonSet cannot be rendered for cluster %s: %s", c, err))
			continue
		}
		if !wanted {
			if len(result.Objects)+len(result.Failed) > 0 {
				s.blame(fmt.Sprintf("its AddonSet would also deliver to cluster %s, which has no such object", c))
			}
			continue
		}
		for _, g := range s.groups {
			g.compare(c, result, f.in.NotHere)
		}
	}
}

// compare compares what comes out for a cluster with what is there.
func (g *group) compare(c *Cluster, result *render.Result, notHere bool) {
	i := slices.IndexFunc(g.members, func(m *member) bool { return m.cluster == c })
	m := g.members[i]
	if why := g.differs(m, result, notHere); why != "" {
		g.set.wrong[m] = why
	}
}

func (g *group) differs(m *member, result *render.Result, notHere bool) string {
	if errs := result.Failed[g.name]; len(errs) > 0 {
		return "as an add-on it cannot be rendered: " + errs.Error()
	}
	i := slices.IndexFunc(result.Objects, func(o flux.Object) bool { return o.Addon == g.name })
	if i < 0 {
		return "as an add-on it would not be delivered: " + result.Excluded[g.name]
	}
	o := &result.Objects[i]
	want := &flux.Adopt{Kind: m.GetKind(), Namespace: m.GetNamespace(), Name: m.GetName()}
	if notHere {
		want = nil
	}
	if (want == nil) != (o.Adopt == nil) || want != nil && *o.Adopt != *want {
		return "the add-on would adopt another object"
	}
	before, err := Meaning(m.Unstructured, nil)
	if err != nil {
		return err.Error()
	}
	after, err := Meaning(original(o), chartOf(m, o))
	if err != nil {
		return err.Error()
	}
	if paths := unlike(before, after, ""); len(paths) > 0 {
		return fmt.Sprintf("as an add-on it would differ in spec.%s: write the add-on by hand", strings.Join(paths, ", spec."))
	}
	return ""
}

// chartOf returns the HelmChart that was made of the chart template of an object; nil if it has none.
func chartOf(m *member, o *flux.Object) *unstructured.Unstructured {
	if m.GetKind() != fluxspec.HelmReleaseKind || m.body["chart"] == nil {
		return nil
	}
	for _, s := range o.Shared {
		if s.Object.GetKind() == sourcev1.HelmChartKind {
			return s.Object
		}
	}
	return nil
}

// unlike returns the paths at which two objects differ.
func unlike(a, b map[string]any, path string) []string {
	var out []string
	for k, v := range a {
		w, there := b[k]
		x, ok := v.(map[string]any)
		y, both := w.(map[string]any)
		switch {
		case ok && both:
			out = append(out, unlike(x, y, path+k+".")...)
		case !there || !equal(v, w):
			out = append(out, path+k)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			out = append(out, path+k)
		}
	}
	sort.Strings(out)
	return out
}
