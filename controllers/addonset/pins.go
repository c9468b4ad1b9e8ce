// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/documents"
	"github.com/chandler-hub/chandler/controllers/sharedobjects"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/coverage"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/memory"
	"github.com/chandler-hub/chandler/internal/pin"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/render/floating"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// revised is what became of a set's present spec.
type revised struct {
	// raw is the content of the newest revision, if it was looked at in this pass.
	raw []byte
	// Next is the next revision, if one is to come.
	coverage.Next
	// stopped is true while a user wants no news.
	stopped bool
	// loose names what changes without a revision, and news what upstream has that waits for the end of a rollout.
	loose, news []string
	// again is after how long to look again; 0 if only when something happens.
	again time.Duration
}

// lookAgain returns after how long to look again; 0 if only when something happens. No event tells of the end of a rollout, for which
// news waits.
func (n *revised) lookAgain(set *hubv1.AddonSet) time.Duration {
	if len(n.news) > 0 && !n.stopped && !rollout.UnderWay(set.Status.Rollout) {
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
		r.documents.Forget(client.ObjectKeyFromObject(set))
		set.Status.Sources = nil
		raw, err := r.snapshot(ctx, set, nil)
		return &revised{raw: raw}, err
	}
	in := pin.Input{}
	if in.Present, in.SameSpec, err = r.pinned(ctx, set); err != nil {
		return nil, err
	}
	u, err := r.upstream(ctx, set, p, selector, in.Present, strategy.Pins())
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
	in.Floats = u.floats
	if out.stopped, err = r.stopped(ctx, set, out); err != nil {
		return nil, err
	}
	in.Hold = out.stopped || !strategy.AtOnce() && rollout.UnderWay(set.Status.Rollout)
	next := pin.Next(in)
	if out.Next, out.news = (coverage.Next{Waits: next.Waits, Broken: next.Broken}), next.News; out.Waits == "" {
		if out.raw, err = r.snapshot(ctx, set, next.Pins); err != nil {
			return nil, err
		}
		in.Present = next.Pins
	}
	out.loose = append(out.loose, pin.Unheld(u.floats, in.Present)...)
	set.Status.Sources = pin.Followed(set.Namespace, u.floats, in.Present, maxFloats)
	return out, nil
}

// stopped returns whether a user wants no news now: the set is paused, or is to have another revision than the newest one.
func (r *Reconciler) stopped(ctx context.Context, set *hubv1.AddonSet, n *revised) (bool, error) {
	if paused, until := rollout.Paused(set.Spec.Pause, r.Clock.Now()); paused {
		if !until.IsZero() {
			n.again = sooner(n.again, until.Sub(r.Clock.Now()))
		}
		return true, nil
	}
	orders := rollout.Read(set.Annotations)
	to := orders.Undone(set.Status.Revision)
	if to == "" {
		return false, nil
	}
	revisions, err := r.revisions(ctx, r.Client, set)
	return ofContent(to, revisions) != nil, err // an undo to a revision that does not exist has no effect
}

// pinned returns the pins of the newest revision, and whether it holds the present spec. A revision that is not what its name
// says, or is not in the cache yet, has none.
func (r *Reconciler) pinned(ctx context.Context, set *hubv1.AddonSet) (pins *compile.Pins, same bool, err error) {
	revision := &appsv1.ControllerRevision{}
	key := client.ObjectKey{Namespace: set.Namespace, Name: set.Status.Revision}
	if err = r.Client.Get(ctx, key, revision); apierrors.IsNotFound(err) && set.Status.Revision != "" {
		err = r.Live.Get(ctx, key, revision) // it may have been made a moment ago
	}
	if set.Status.Revision == "" || apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read ControllerRevision %s: %w", set.Status.Revision, err)
	}
	hash, err := compile.ContentHash(revision.Data.Raw)
	name := identity.Revision(set.Name, hash, render.Epoch)
	if err != nil || !metav1.IsControlledBy(revision, set) || !identity.SameContent(revision.Name, name) {
		return nil, false, nil //nolint:nilerr // the hub has not made it
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
	present *compile.Pins, follow bool) (*upstream, error) {
	u := &upstream{}
	maps, err := r.configMaps(ctx, set, p, present, u)
	if err != nil {
		return nil, err
	}
	clusters, err := r.labelsOf(ctx, p, selector)
	if err != nil {
		return nil, err
	}
	found := r.surveys.of(set, p, floating.ChoicesOf(p, clusters), maps, r.Config.HubID)
	for i := range found.Loose {
		u.say(found.Loose[i].Text)
	}
	for i := range found.Objects {
		f := &found.Objects[i]
		if len(u.floats) == maxFloats {
			u.say(fmt.Sprintf("%s and %d more: a set can pin %d sources", f.What, len(found.Objects)-i-1, maxFloats))
			break
		}
		one := pin.Float{Key: f.Key(), What: f.What, Used: f.Got, Needed: f.Needed}
		if follow && f.Object.GetNamespace() != set.Namespace && !p.Platform {
			// Never, since Floating refuses it: what the hub makes here, it makes with its own rights.
			return nil, fmt.Errorf("%s is in namespace %s, and the set may use none there", one.What, f.Object.GetNamespace())
		}
		if follow {
			if err := r.read(ctx, f, &one, u); err != nil {
				return nil, err
			}
			if !follows(set, one.Key) { // what Flux does before the cache shows that the set follows it wakes no controller
				u.lookIn(sharedobjects.Unseen)
			}
		}
		u.floats = append(u.floats, one)
	}
	return u, nil
}

// follows returns whether the status of a set says that it follows a source, by which events of the source find the set.
func follows(set *hubv1.AddonSet, key string) bool {
	return slices.ContainsFunc(set.Status.Sources, func(s hubv1.FollowedSource) bool {
		return compile.SourceKey(s.Kind, s.Namespace, s.Name) == key
	})
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

// configMaps reads the ConfigMaps of variablesFrom, and from then on no others wake the set.
func (r *Reconciler) configMaps(ctx context.Context, set *hubv1.AddonSet, p *compile.Program, present *compile.Pins,
	u *upstream) (map[string]map[string]string, error) {
	key, from := client.ObjectKeyFromObject(set), documents.From{Cached: r.Client, Live: r.Live}
	maps, size := map[string]map[string]string{}, 0
	for _, v := range p.VariablesFrom {
		what := "ConfigMap " + v.Name
		if v.Cluster { // its variables are the cluster's own, and in no revision
			continue
		}
		if expression.Has(v.Name) {
			u.say("variablesFrom: " + what + ", an expression")
			continue
		}
		doc, _, err := r.documents.Read(ctx, from, key, set.Namespace, document.Ref{Kind: "ConfigMap", Name: v.Name})
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(doc.Data) // as it is stored: it may be several times as long
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", what, err)
		}
		if size+len(raw) > maxPinned {
			u.say(fmt.Sprintf("variablesFrom: %s, whose data are too large for a revision: %d KiB are the most for all", what, maxPinned>>10))
			maps[v.Name] = doc.Data
			continue
		}
		size += len(raw)
		one := pin.Float{Key: v.Name, ConfigMap: true, What: what, Needed: true, Known: doc.Found || v.Optional, Data: doc.Data}
		if doc.Found && one.Data == nil {
			one.Data = map[string]string{}
		}
		if !one.Known {
			one.Why = fmt.Sprintf("it is not in namespace %q; make it, or write optional: true", set.Namespace)
		}
		maps[v.Name] = one.Data
		if data, ok := present.ConfigMap(v.Name); ok && !one.Known {
			maps[v.Name] = data // the next revision keeps it, so it decides what that follows
		}
		u.floats = append(u.floats, one)
	}
	r.documents.Prune(key)
	return maps, nil
}

// read has Flux read what a source follows, and returns what it has found.
func (r *Reconciler) read(ctx context.Context, f *floating.Float, one *pin.Float, u *upstream) error {
	for _, needs := range []*flux.Shared{f.Repository, &f.Shared} {
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
	one.Upstream, one.Why = pin.Upstream(f.Object, obj)
	return nil
}

// unreadable is after how long to try again to make what follows a source.
const unreadable = 10 * time.Second

// source is a source of Flux that a client reads.
type source interface {
	client.Object
	pin.Source
}

// sourceOf returns an empty source of a kind.
func sourceOf(kind string) source {
	switch kind {
	case sourcev1.HelmChartKind:
		return &sourcev1.HelmChart{}
	case sourcev1.OCIRepositoryKind:
		return &sourcev1.OCIRepository{}
	}
	return &sourcev1.GitRepository{}
}

// surveys remembers what each set follows: to find it costs as much as to render some clusters.
type surveys struct {
	all memory.Map[types.NamespacedName, survey]
}

type survey struct {
	program  *compile.Program
	metadata *compile.Metadata
	choices  string
	maps     map[string]map[string]string
	found    floating.Floats
}

// of returns what the clusters of a set follow. No caller may change it.
func (s *surveys) of(set *hubv1.AddonSet, p *compile.Program, clusters floating.Choices, maps map[string]map[string]string,
	hub string) floating.Floats {
	key, metadata := client.ObjectKeyFromObject(set), compile.MetadataOf(&set.Spec)
	if last, ok := s.all.Get(key); ok && last.program == p && last.choices == clusters.Key && equality.Semantic.DeepEqual(last.maps, maps) &&
		equality.Semantic.DeepEqual(last.metadata, metadata) {
		return last.found
	}
	dressed := *p
	dressed.Metadata = metadata // or the sources would not be those that the clusters have
	found := floating.Find(&dressed, render.Target{HubID: hub, Namespace: set.Namespace, Set: set.Name}, clusters, maps)
	s.all.Put(key, survey{p, metadata, clusters.Key, maps, found})
	return found
}
