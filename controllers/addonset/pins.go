// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/documents"
	"github.com/chandler-hub/chandler/controllers/sharedobjects"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/pin"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// revised is what became of a set's present spec.
type revised struct {
	// raw is the content of the newest revision, if it was looked at in this pass.
	raw []byte
	// waits says what the next revision waits for; empty if there is none to come. broken is true if Flux cannot read that.
	waits  string
	broken bool
	// undone is true while somebody wants another revision than the newest one: news waits until that is over.
	undone bool
	// loose names what changes without a revision, and news what upstream has that waits for the end of a rollout.
	loose, news []string
	// again is after how long to look again; 0 if only when something happens.
	again time.Duration
}

// waiting returns whether a revision is to come. Nil waits for nothing.
func (n *revised) waiting() bool { return n != nil && n.waits != "" }

func (n *revised) text() string {
	if n.broken {
		return "the next revision cannot be made: " + n.waits
	}
	return "the next revision waits for " + n.waits
}

// lookAgain returns after how long to look again; 0 if only when something happens. No event tells of the end of a rollout, for which
// news waits.
func (n *revised) lookAgain(set *hubv1.AddonSet) time.Duration {
	if len(n.news) > 0 && !n.undone && !rollout.UnderWay(set.Status.Rollout) {
		return sooner(n.again, time.Second)
	}
	return n.again
}

// revise makes the revision of the set's present spec and, if the set pins its sources, of what upstream has now.
func (r *Reconciler) revise(ctx context.Context, set *hubv1.AddonSet, p *compile.Program, selector *match.Selector) (*revised, error) {
	strategy, err := rollout.New(set.Spec.Rollout)
	if err != nil {
		return nil, err // compile has checked it
	}
	if !strategy.Chosen() && !strategy.Pins() {
		set.Status.Sources = nil
		raw, err := r.snapshot(ctx, set, nil)
		return &revised{raw: raw}, err
	}
	u, err := r.upstream(ctx, set, p, selector, strategy.Pins())
	if err != nil {
		return nil, err
	}
	out := &revised{loose: u.loose, again: u.again}
	if !strategy.Pins() {
		for i := range u.floats {
			out.loose = append(out.loose, u.floats[i].What)
		}
		set.Status.Sources = nil
		out.raw, err = r.snapshot(ctx, set, nil)
		return out, err
	}
	in := pin.Input{Floats: u.floats}
	if in.Present, in.SameSpec, err = r.pinned(ctx, set); err != nil {
		return nil, err
	}
	orders := rollout.Read(set.Annotations)
	out.undone = orders.Undone(set.Status.Revision) != ""
	in.Hold = out.undone || !strategy.AtOnce() && rollout.UnderWay(set.Status.Rollout)
	next := pin.Next(in)
	if out.waits, out.broken, out.news = next.Waits, next.Broken, next.News; out.waits == "" {
		if out.raw, err = r.snapshot(ctx, set, next.Pins); err != nil {
			return nil, err
		}
		in.Present = next.Pins
	}
	set.Status.Sources = followed(set.Namespace, u.floats, in.Present)
	return out, nil
}

// pinned returns the pins of the newest revision, and whether it holds the present spec. A revision that is not what its name
// says, or is not in the cache yet, has none.
func (r *Reconciler) pinned(ctx context.Context, set *hubv1.AddonSet) (pins *compile.Pins, same bool, err error) {
	revision := &appsv1.ControllerRevision{}
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: set.Status.Revision}, revision)
	if set.Status.Revision == "" || apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read ControllerRevision %s: %w", set.Status.Revision, err)
	}
	hash, err := compile.ContentHash(revision.Data.Raw)
	name := identity.Revision(set.Name, hash, render.Epoch)
	if err != nil || !metav1.IsControlledBy(revision, set) || !identity.SameContent(revision.Name, name) {
		return nil, false, nil //nolint:nilerr // somebody else made it
	}
	spec, pins, err := compile.Content(revision.Data.Raw)
	if err != nil {
		return nil, false, err
	}
	was, _, err := compile.Snapshot(spec, nil)
	if err != nil {
		return nil, false, err
	}
	is, _, err := compile.Snapshot(&set.Spec, nil)
	return pins, bytes.Equal(was, is), err
}

// upstream is what a set refers to that changes without it.
type upstream struct {
	floats []pin.Float
	loose  []string
	again  time.Duration
}

// maxFloats is how many sources a set may follow: the status lists them. maxPinned bounds the data of its ConfigMaps, in bytes:
// each revision holds a copy.
const (
	maxFloats = 100
	maxPinned = 256 << 10
)

// upstream finds what the clusters of a set follow upstream. If follow is true, it has Flux read each of that.
func (r *Reconciler) upstream(ctx context.Context, set *hubv1.AddonSet, p *compile.Program, selector *match.Selector,
	follow bool) (*upstream, error) {
	u := &upstream{}
	maps, err := r.configMaps(ctx, set, p, u)
	if err != nil {
		return nil, err
	}
	clusters, err := r.labelsOf(ctx, p, selector)
	if err != nil {
		return nil, err
	}
	target := render.Target{HubID: r.Config.HubID, Namespace: set.Namespace, Set: set.Name}
	found := render.Floating(p, target, clusters, maps)
	for _, name := range found.Loose {
		u.say(name)
	}
	for i := range found.Objects {
		f := &found.Objects[i]
		if len(u.floats) == maxFloats {
			u.say(fmt.Sprintf("%s and %d more: a set can pin %d sources", f.What, len(found.Objects)-i-1, maxFloats))
			break
		}
		one := pin.Float{Key: f.Key(), What: f.What, Needed: f.Needed}
		if follow {
			if err := r.read(ctx, f, &one, u); err != nil {
				return nil, err
			}
		}
		u.floats = append(u.floats, one)
	}
	return u, nil
}

// labelsOf returns the labels of a set's clusters, as far as they decide anything: without overlays all are alike.
func (r *Reconciler) labelsOf(ctx context.Context, p *compile.Program, selector *match.Selector) ([]labels.Set, error) {
	if len(p.Overlays) == 0 {
		return []labels.Set{nil}, nil
	}
	regs := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, regs, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the registrations: %w", err)
	}
	var out []labels.Set
	for i := range regs.Items {
		if reg := &regs.Items[i]; !status.Goes(reg) && selector.Matches(reg) {
			out = append(out, reg.Labels)
		}
	}
	return out, nil
}

func (u *upstream) say(name string) {
	if !slices.Contains(u.loose, name) {
		u.loose = append(u.loose, name)
	}
}

func (u *upstream) lookIn(d time.Duration) {
	if u.again == 0 || d < u.again {
		u.again = d
	}
}

// configMaps reads the ConfigMaps of variablesFrom.
func (r *Reconciler) configMaps(ctx context.Context, set *hubv1.AddonSet, p *compile.Program,
	u *upstream) (map[string]map[string]string, error) {
	key, from := client.ObjectKeyFromObject(set), documents.From{Cached: r.Client, Live: r.Live}
	if len(p.VariablesFrom) == 0 {
		r.documents.Forget(key)
	}
	maps, size := map[string]map[string]string{}, 0
	for _, v := range p.VariablesFrom {
		what := "ConfigMap " + v.Name
		if expression.Has(v.Name) {
			u.say("variablesFrom: " + what + ", an expression")
			continue
		}
		doc, err := r.documents.Read(ctx, from, key, set.Namespace, render.Ref{Kind: "ConfigMap", Name: v.Name})
		if err != nil {
			return nil, err
		}
		for k, v := range doc.Data {
			size += len(k) + len(v)
		}
		if size > maxPinned {
			u.say(fmt.Sprintf("variablesFrom: %s, whose data are too large for a revision: %d KiB are the most", what, maxPinned>>10))
			break
		}
		one := pin.Float{Key: v.Name, ConfigMap: true, What: what, Needed: true, Known: doc.Found || v.Optional, Data: doc.Data}
		if doc.Found && one.Data == nil {
			one.Data = map[string]string{}
		}
		if !one.Known {
			one.Why = fmt.Sprintf("it is not in namespace %q; make it, or write optional: true", set.Namespace)
		}
		maps[v.Name] = one.Data
		u.floats = append(u.floats, one)
	}
	return maps, nil
}

// read has Flux read what a source follows, and returns what it has found.
func (r *Reconciler) read(ctx context.Context, f *render.Float, one *pin.Float, u *upstream) error {
	for _, needs := range []*render.Shared{f.Repository, &f.Shared} {
		if needs == nil {
			continue
		}
		seen, err := r.Shared.Ensure(ctx, needs)
		if err != nil {
			one.Why = err.Error()
			u.lookIn(unreadable)
			return nil
		}
		if !seen {
			u.lookIn(sharedobjects.Unseen)
		}
	}
	obj := sourceOf(f.Object.GetKind())
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(f.Object), obj)
	if apierrors.IsNotFound(err) {
		return nil // it has just been made
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", one.Key, err)
	}
	one.Upstream, one.Why = artifact(f, obj)
	return nil
}

// unreadable is after how long to try again to make what follows a source.
const unreadable = 10 * time.Second

// source is a source of Flux.
type source interface {
	client.Object
	GetArtifact() *fluxmeta.Artifact
	GetConditions() []metav1.Condition
}

func sourceOf(kind string) source {
	switch kind {
	case sourcev1.HelmChartKind:
		return &sourcev1.HelmChart{}
	case sourcev1.OCIRepositoryKind:
		return &sourcev1.OCIRepository{}
	}
	return &sourcev1.GitRepository{}
}

// artifact returns what a source has, as it is pinned, or why it has nothing; both are empty while Flux is at work. What Flux has
// read before counts also while it fails: nobody pins less because upstream is down.
func artifact(f *render.Float, obj source) (upstream, why string) {
	if a := obj.GetArtifact(); a != nil {
		files, _, _ := unstructured.NestedSlice(f.Object.Object, "spec", "valuesFiles")
		upstream, err := pin.Read(f.Object.GetKind(), a.Revision, len(files) > 0)
		if err != nil {
			return "", err.Error()
		}
		return upstream, ""
	}
	if c := apimeta.FindStatusCondition(obj.GetConditions(), hubv1.ReadyCondition); c != nil && c.Status == metav1.ConditionFalse {
		return "", c.Message
	}
	return "", ""
}

// followed says what a set follows, and what its newest revision holds of it.
func followed(namespace string, floats []pin.Float, pins *compile.Pins) []hubv1.FollowedSource {
	var out []hubv1.FollowedSource
	for i := range floats {
		if f := &floats[i]; len(out) < maxFloats {
			out = append(out, f.Status(namespace, pins))
		}
	}
	slices.SortFunc(out, func(a, b hubv1.FollowedSource) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}
