// SPDX-License-Identifier: Apache-2.0

// Package folding folds Flux objects that people wrote by hand, one for each cluster and add-on, into AddonSets. It is pure.
// Nothing that it returns changes what a cluster has: every set is compiled and rendered for every cluster, by the hub's own
// functions, and what does not come out as it was is left as it is, with the reason.
package folding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/importer/layout"
)

// Object is a HelmRelease or Kustomization, and where it was read.
type Object struct {
	// File and Line are where it is; empty if it is on the management cluster.
	File string
	Line int
	// Built is true if it comes out of a folder as Flux applies it.
	Built bool
	// Unlisted is the Kustomization that applies the folder of its file, if it does not apply the file.
	Unlisted string
	// Unread are the objects that its variables may come from, and that were not read.
	Unread []string
	*unstructured.Unstructured
}

// where says where the object is.
func (o *Object) where() string {
	if o.File == "" {
		return "the management cluster"
	}
	return fmt.Sprintf("%s, line %d", o.File, o.Line)
}

// shown writes variables that are not known as they are written in files.
func shown(text string) string { return layout.Holes.ReplaceAllString(text, "$${$1}") }

// compare orders objects by where they are.
func (o *Object) compare(other *Object) int {
	return cmp.Or(cmp.Compare(o.File, other.File), cmp.Compare(o.Line, other.Line), cmp.Compare(o.key(), other.key()))
}

func (o *Object) String() string {
	return shown(fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName()))
}

// key identifies the object.
func (o *Object) key() string { return o.String() }

// Input is what is to be folded.
type Input struct {
	Objects []Object
	// Origins are the Secrets (their metadata only), Clusters and TenantControlPlanes that are known.
	Origins []*unstructured.Unstructured
	// Registrations are the clusters that the hub has already.
	Registrations []hubv1.ClusterRegistration
	// Targets says where kubeconfigs lead, as far as they were read: by namespace/Secret/key.
	Targets map[string]Target
	// Sets are the AddonSets that exist. Their names, and those of their add-ons, are not taken for others.
	Sets []hubv1.AddonSet
	// Namespace is where the sets go, as far as the objects can be delivered from there.
	Namespace string
	// CrossNamespace lets sets refer to sources of other namespaces, where the objects refer to those of their own. Flux with
	// --no-cross-namespace-refs would refuse that.
	CrossNamespace bool
	// NotHere is true if the objects are not on the management cluster, so that there is nothing to adopt: Flux on each
	// cluster has them.
	NotHere bool
	// Hub is the hub's configuration.
	Hub hubconfig.Shared
	Now time.Time
}

// Target is where a kubeconfig leads.
type Target struct {
	// Fingerprint is the same for kubeconfigs that lead to the same API server.
	Fingerprint string
	// Credential is the same for kubeconfigs of the same user on it.
	Credential string
	// Problem says why the hub would not adopt an object with this kubeconfig; "" if it would.
	Problem string
}

// Result is what comes out.
type Result struct {
	// Sets by namespace and name.
	Sets []*hubv1.AddonSet
	// Clusters that have to be registered, or are.
	Clusters []*Cluster
	// Left are the objects that stay as they are, and why.
	Left []Left
	// Notes say what the sets do not take over from an object that they adopt.
	Notes []Note
	// Folded are the objects that the sets adopt.
	Folded []*Object
	// Makers are what makes folded objects, and would make them again after their adoption.
	Makers []Maker
	// Confined are the namespaces whose sets could take over More objects if they were platform namespaces.
	Confined []string
	More     int
	// NotHere is as in the input.
	NotHere bool
	// Seen counts the Flux objects that were read. Own are those of them that the hub made, and Remote the others for other clusters.
	Seen, Own, Remote int
	// Ignored counts the Flux objects that are for the management cluster itself.
	Ignored int
}

// Left is an object that stays as it is.
type Left struct {
	*Object
	Reason string
}

// Note says what a set does not take over from an object that it adopts, or what somebody has to add to the set.
type Note struct {
	*Object
	Text string
}

// Maker is a Flux object, or another tool, that keeps folded objects.
type Maker struct {
	Name    string
	Objects []string
}

// member is one object, as an add-on of its cluster.
type member struct {
	*Object
	cluster *Cluster
	// body is the spec with every default of Flux's that the hub's differ from, and without what the hub sets.
	body map[string]any
	// needs are the objects that it depends on.
	needs []string
	// holes are variables whose values are not known.
	holes []string
	// judged are those of them that have to fulfil an expression.
	judged []string
	// carried are its labels and annotations that the set has too.
	carried map[string]bool
	// notes say what of it the set does not take over.
	notes []string
	// home is the namespace of its set, and local a field that keeps it in the object's own; empty if none does.
	home, local string
	// beside is true if the set reads beside the cluster what the object reads in its own namespace.
	beside bool
	// confined is true if only a set of a platform namespace could deliver it.
	confined bool
}

type folder struct {
	in       *Input
	out      *Result
	clusters *clusters
	left     map[string]bool
	words    []word
}

// Fold folds, and tries how much more it would fold with more platform namespaces.
func Fold(in Input) *Result {
	out := fold(in)
	if len(out.Confined) > 0 {
		in.Hub.PlatformNamespaces = slices.Concat(in.Hub.PlatformNamespaces, out.Confined)
		out.More = len(fold(in).Folded) - len(out.Folded)
	}
	return out
}

func fold(in Input) *Result {
	in.Objects = slices.SortedStableFunc(slices.Values(in.Objects), func(a, b Object) int { return cmp.Compare(a.key(), b.key()) })
	f := &folder{in: &in, out: &Result{NotHere: in.NotHere}, clusters: newClusters(&in), left: map[string]bool{}}
	f.count()
	f.unlisted()
	members := f.read()
	f.findWords(members)
	// Each round leaves out what cannot be delivered as it is. The next one folds the others anew.
	for {
		f.dependable(members)
		sets := f.build(members)
		wrong := f.verify(sets)
		if len(wrong) == 0 {
			f.finish(sets, members)
			return f.out
		}
		members = slices.DeleteFunc(members, func(m *member) bool {
			why, is := wrong[m]
			if is {
				f.leave(m.Object, "%s", why)
			}
			return is
		})
	}
}

// count counts the objects that were read. One that is there twice is one.
func (f *folder) count() {
	seen := map[string]bool{}
	for i := range f.in.Objects {
		o := &f.in.Objects[i]
		if seen[o.key()] {
			continue
		}
		seen[o.key()] = true
		f.out.Seen++
		switch {
		case own(o):
			f.out.Own++
		case remote(o):
			f.out.Remote++
		}
	}
}

// remote returns whether an object is for another cluster, and not the hub's own.
func remote(o *Object) bool {
	kc, _, _ := unstructured.NestedFieldNoCopy(o.Unstructured.Object, "spec", "kubeConfig")
	return kc != nil && !own(o)
}

// own returns whether the hub made an object.
func own(o *Object) bool { return o.GetLabels()[hubv1.ClusterKeyLabel] != "" }

// unlisted leaves out what nothing applies: that it may be called like something else means nothing.
func (f *folder) unlisted() {
	var kept []Object
	listed := map[string]bool{}
	for _, o := range f.in.Objects {
		if o.Unlisted == "" {
			kept = append(kept, o)
			listed[o.key()] = true
		}
	}
	for _, o := range f.in.Objects {
		switch {
		case o.Unlisted == "":
		case remote(&o):
			f.left[o.key()] = !listed[o.key()]
			f.out.Left = append(f.out.Left, Left{&o, excerpt.Line(fmt.Sprintf("no Kustomization that was read applies this file: %s applies a "+
				"folder above, whose kustomization.yaml does not lead here. If a user applies it by hand, import the file alone", o.Unlisted))})
		default:
			f.out.Ignored++
		}
	}
	f.in.Objects = kept
}

// findWords gives each cluster its words.
func (f *folder) findWords(members []*member) {
	f.words = wordsOf(members)
	seen := map[*Cluster]bool{}
	for _, m := range members {
		if !seen[m.cluster] {
			seen[m.cluster] = true
			for _, w := range f.words {
				m.cluster.words = append(m.cluster.words, token{w.of[m.cluster], "vars." + w.variable})
			}
		}
	}
}

// leave records that an object stays as it is.
func (f *folder) leave(o *Object, format string, args ...any) {
	if !f.left[o.key()] {
		f.left[o.key()] = true
		f.out.Left = append(f.out.Left, Left{o, excerpt.Line(shown(fmt.Sprintf(format, args...)))})
	}
}

func (f *folder) finish(sets []*set, members []*member) {
	for _, s := range sets {
		f.out.Sets = append(f.out.Sets, s.object)
	}
	slices.SortFunc(f.out.Sets, func(a, b *hubv1.AddonSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	makers := map[string][]string{}
	seen := map[*Cluster]bool{}
	for _, m := range members {
		f.out.Folded = append(f.out.Folded, m.Object)
		for _, text := range m.remarks() {
			f.out.Notes = append(f.out.Notes, Note{m.Object, excerpt.Line(text)})
		}
		if maker := madeBy(m.Object); maker != "" {
			makers[maker] = append(makers[maker], m.String())
		}
		if !seen[m.cluster] {
			seen[m.cluster] = true
			f.out.Clusters = append(f.out.Clusters, m.cluster)
		}
	}
	for name, objects := range makers {
		slices.Sort(objects)
		f.out.Makers = append(f.out.Makers, Maker{name, objects})
	}
	slices.SortFunc(f.out.Makers, func(a, b Maker) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(f.out.Clusters, func(a, b *Cluster) int { return cmp.Compare(a.String(), b.String()) })
	slices.SortFunc(f.out.Left, func(a, b Left) int { return a.compare(b.Object) })
	slices.SortStableFunc(f.out.Notes, func(a, b Note) int { return a.compare(b.Object) })
}

// madeBy returns what keeps an object, and would make it again: a Flux Kustomization or HelmRelease, or Argo CD.
func madeBy(o *Object) string {
	l := o.GetLabels()
	for _, m := range []struct{ kind, prefix string }{
		{"Kustomization", "kustomize.toolkit.fluxcd.io/"}, {"HelmRelease", "helm.toolkit.fluxcd.io/"},
	} {
		name, namespace := l[m.prefix+"name"], l[m.prefix+"namespace"]
		if len(content.IsDNS1123Subdomain(name))+len(content.IsDNS1123Label(namespace)) == 0 { // it is printed in a command
			return m.kind + " " + namespace + "/" + name
		}
	}
	if app := cmp.Or(o.GetAnnotations()["argocd.argoproj.io/tracking-id"], l["argocd.argoproj.io/instance"]); app != "" {
		name, _, _ := strings.Cut(app, ":")
		return "Argo CD Application " + excerpt.Line(name)
	}
	return ""
}

func (c *Cluster) key() types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}
