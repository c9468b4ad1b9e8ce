// SPDX-License-Identifier: Apache-2.0

// Package dryrun asks the API server of a workload cluster what would become of objects if Flux applied them: by server-side apply with
// dryRun=All, as `kubectl diff --server-side` does. Nothing is written. Admission webhooks of the cluster are called.
package dryrun

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/diff"
)

// The field managers by which Flux applies. Both take fields that others own: kustomize-controller always, and helm-controller wherever it
// applies server-side (its internal/action/install.go).
const (
	KustomizeManager = "kustomize-controller"
	HelmManager      = "helm-controller"
)

// Part is what one Flux object applies.
type Part struct {
	// Client is the cluster, with the rights that Flux has there for this Flux object.
	Client client.Client
	// Set is namespace/name of the AddonSet, and Addon the add-on in it.
	Set, Addon string
	// Manager is the field manager, and Namespace where objects without one go; empty if they say it themselves.
	Manager, Namespace string
	// Recreate is true if Flux deletes an object that it may not change, and makes it anew.
	Recreate bool
	// Makes is a namespace that Flux makes before anything else; "" for none.
	Makes string
	// Anew is true if Flux uninstalls what is there, and installs it again.
	Anew bool
	// Wanted is what Flux is to apply, and Old what it has applied until now.
	Wanted, Old []*unstructured.Unstructured

	// crds are what helm-controller applies before all else, and once what of it it applies only where that is not there.
	crds, once []*unstructured.Unstructured
	// labels are those of the controller that applies it, and helm the annotations of a release.
	labels, helm map[string]string
}

// Limits bound a run. Zero fields take their defaults.
type Limits struct {
	// Time is how long all of a cluster may take. Default a minute.
	Time time.Duration
	// Objects is how many objects of a cluster are tried. Default 1000.
	Objects int
	// Fields is how many fields of an object are told, and Message how many characters of what the API server says. Defaults 100 and 500.
	Fields, Message int
}

func (l Limits) withDefaults() Limits {
	def := func(n *int, is int) {
		if *n <= 0 {
			*n = is
		}
	}
	def(&l.Objects, 1000)
	def(&l.Fields, 100)
	def(&l.Message, 500)
	if l.Time <= 0 {
		l.Time = time.Minute
	}
	return l
}

// atOnce is how many objects of a cluster are tried at a time.
const atOnce = 4

// Run tries everything that changes on one cluster. It never fails: what could not be tried says why.
func Run(ctx context.Context, parts []Part, limits Limits) (objects []diff.TriedObject, unchanged int) {
	limits = limits.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	r := &run{limits: limits, coming: comingWith(parts), wanted: map[key]bool{}}
	all := r.jobs(parts)
	out := make([]diff.TriedObject, len(all))
	g := &errgroup.Group{}
	g.SetLimit(atOnce)
	for i := range all {
		g.Go(func() error {
			out[i] = all[i].look(ctx)
			return nil
		})
	}
	_ = g.Wait() // none returns an error
	for i := range out {
		switch out[i].Outcome {
		case diff.TriedUnchanged:
			unchanged++
		case "": // was gone already
		default:
			objects = append(objects, out[i])
		}
	}
	return objects, unchanged
}

type run struct {
	limits Limits
	coming coming
	wanted map[key]bool
}

// key is an object of a cluster, of whatever version.
type key struct {
	schema.GroupKind
	client.ObjectKey
}

func keyOf(u *unstructured.Unstructured) key {
	return key{u.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(u)}
}

// job is one object that is looked at.
type job struct {
	*run
	part   *Part
	object *unstructured.Unstructured
	// goes is true if it was applied until now, and is not any more; once if it is applied only where it is not there; over if there are
	// too many.
	goes, once, over bool
}

// jobs returns what is to be looked at: everything that is wanted, and what was wanted before and is not any more.
func (r *run) jobs(parts []Part) []*job {
	var out []*job
	add := func(j *job) {
		j.run, j.over = r, len(out) >= r.limits.Objects
		out = append(out, j)
	}
	for i := range parts {
		p := &parts[i]
		for n, list := range [][]*unstructured.Unstructured{p.once, p.crds, p.Wanted} {
			for _, u := range list {
				u = prepare(u, p)
				p.owned(u, n < 2)
				r.wanted[keyOf(u)] = true
				add(&job{part: p, object: u, once: n == 0})
			}
		}
	}
	told := map[key]bool{}
	for i := range parts {
		for _, u := range parts[i].Old {
			u = prepare(u, &parts[i])
			if k := keyOf(u); !r.wanted[k] && !told[k] {
				told[k] = true
				add(&job{part: &parts[i], object: u, goes: true})
			}
		}
	}
	return out
}

// prepare returns a copy of an object with the namespace that Flux gives it.
func prepare(u *unstructured.Unstructured, part *Part) *unstructured.Unstructured {
	u = u.DeepCopy()
	namespaced, err := part.Client.IsObjectNamespaced(u)
	switch {
	case err == nil && !namespaced:
		u.SetNamespace("")
	case err == nil && u.GetNamespace() == "":
		u.SetNamespace(part.Namespace)
	}
	return u
}

// coming is what the change itself makes, and other objects of it need.
type coming struct {
	namespaces []string
	kinds      []schema.GroupKind
}

func comingWith(parts []Part) coming {
	var out coming
	for i := range parts {
		if parts[i].Makes != "" {
			out.namespaces = append(out.namespaces, parts[i].Makes)
		}
		for _, u := range slices.Concat(parts[i].once, parts[i].crds, parts[i].Wanted) {
			switch u.GroupVersionKind().GroupKind() {
			case schema.GroupKind{Kind: "Namespace"}:
				out.namespaces = append(out.namespaces, u.GetName())
			case crdKind:
				group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
				kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
				out.kinds = append(out.kinds, schema.GroupKind{Group: group, Kind: kind})
			}
		}
	}
	return out
}

func (c *coming) namespace(name string) bool    { return slices.Contains(c.namespaces, name) }
func (c *coming) kind(gk schema.GroupKind) bool { return slices.Contains(c.kinds, gk) }
