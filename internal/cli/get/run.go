// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/get/selection"
	"github.com/chandler-hub/chandler/internal/cli/resource"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/listing"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/page"
)

// question is one thing to ask the API server, and which of the answers are meant.
type question struct {
	live.Query
	arg  string
	keep func(client.Object) bool
}

// getter asks, and writes.
type getter struct {
	*Options
	out    io.Writer
	table  *page.List
	stream *listing.Stream
	// single says that the command names one object, and named are the objects with that name.
	single bool
	named  []any
	// seen is what was shown of each row, with --watch.
	seen  map[string]string
	count int
}

func (o *Options) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return exit.Wrong(err)
	}
	o.Set = live.Bare("AddonSet", o.Set)
	for i, arg := range o.Args {
		o.Args[i] = live.Bare(o.kind.names, arg)
	}
	if err := o.Connect(ctx); err != nil {
		return err
	}
	g := &getter{Options: o, out: o.Out, seen: map[string]string{}}
	g.table = &page.List{Columns: o.kind.columns, Wide: o.Output == "wide", NoHeaders: o.NoHeader, Colour: terminal.Coloured(g.out)}
	if *o.Flags.Namespace != "" {
		g.table.Without = "Namespace"
	}
	if o.Output == "json" || o.Output == "yaml" {
		g.single = len(o.Args) == 1 && !o.kind.byCluster
		g.stream = &listing.Stream{W: g.out, YAML: o.Output == "yaml", Plain: o.kind.byCluster}
	}
	questions, err := g.questions(ctx)
	if err != nil {
		return err
	}
	if o.Watch {
		return g.follow(ctx, questions[0])
	}
	return g.answer(ctx, questions)
}

// answer lists what is asked for, once.
func (g *getter) answer(ctx context.Context, questions []question) error {
	missing := false
	for _, q := range questions {
		_, found, err := g.ask(ctx, q)
		if apierrors.IsForbidden(err) && g.count == 0 {
			found, err = g.askOwn(ctx, q, err)
		}
		if err != nil {
			return err
		}
		if found == 0 && q.arg != "" {
			if err := g.absent(ctx, q); err != nil {
				terminal.Say(g.ErrOut, "chandler: %s", err)
				missing = true
			}
		}
	}
	if g.count == 0 && !missing {
		if err := g.absentSet(ctx); err != nil {
			return err
		}
	}
	if g.stream != nil && !missing {
		if err := g.end(); err != nil {
			return err
		}
	}
	switch {
	case missing && len(questions) == 1:
		return exit.Silent(exit.Failed) // it has been said
	case missing:
		return errNotFound
	case g.count == 0 && g.stream == nil:
		terminal.Say(g.ErrOut, "%s", g.none())
	}
	return nil
}

// none says that there is nothing to show.
func (g *getter) none() string {
	text := "No " + g.kind.what + " found"
	if g.Failed {
		text = "No failed " + g.kind.what + " found"
	}
	if ns := *g.Flags.Namespace; ns != "" {
		text += " in namespace " + ns
	}
	return text + "."
}

// absent says that a name is not there. A cluster without add-ons is.
func (g *getter) absent(ctx context.Context, q question) error {
	namespace, name := g.Place(q.arg)
	if g.kind.byCluster {
		there, err := live.Selected(ctx, g.Client, client.MatchingFields{"metadata.name": name})
		if err != nil {
			return err
		}
		for key := range there {
			if ns, _, both := strings.Cut(q.arg, "/"); !both || key.Namespace == ns {
				return nil
			}
		}
		return fmt.Errorf("there is no cluster %q on this hub: chandler get clusters lists them", q.arg)
	}
	return noneCalled(g.kind.one, name, namespace, g.kind.what)
}

// absentSet says that the set of --set is not there. A set without add-ons on clusters is, and so may be one that the user may not read.
func (g *getter) absentSet(ctx context.Context) error {
	if g.Set == "" {
		return nil
	}
	namespace, name := g.Place(g.Set)
	there := false
	q := &live.Query{Client: g.Client, Kinds: "AddonSets", Namespace: namespace,
		List:    func() client.ObjectList { return &hubv1.AddonSetList{} },
		Options: []client.ListOption{client.MatchingFields{"metadata.name": name}}}
	_, err := q.Pages(ctx, func(objects []client.Object) error {
		there = there || slices.ContainsFunc(objects, func(o client.Object) bool { return o.GetName() == name })
		return nil
	})
	switch {
	case err != nil && !apierrors.IsForbidden(err):
		return err
	case err != nil || there:
		return nil
	}
	return noneCalled("set", name, namespace, "sets")
}

// noneCalled returns the error for a name that is not there.
func noneCalled(one, name, namespace, what string) error {
	where := "on this hub"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	return fmt.Errorf("there is no %s %q %s: chandler get %s lists them", one, name, where, what)
}

// questions returns what to ask: once for each name, so that one object does not cost a list of all.
func (g *getter) questions(ctx context.Context) ([]question, error) {
	base := question{keep: func(client.Object) bool { return true }}
	base.Query = live.Query{Client: g.Client, Kinds: g.kind.kinds, List: g.kind.list, Namespace: *g.Flags.Namespace}
	selector, err := labels.Parse(g.Selector)
	if err != nil {
		return nil, exit.Wrong(fmt.Errorf("get %s: --selector %q: %w", g.kind.what, g.Selector, err))
	}
	if _, deliveries := g.kind.list().(*hubv1.AddonDeliveryList); deliveries {
		if selector, err = g.ofDeliveries(ctx, &base, selector); err != nil {
			return nil, err
		}
	}
	base.Options = []client.ListOption{client.MatchingLabelsSelector{Selector: selector}}
	if len(g.Args) == 0 {
		return []question{base}, nil
	}
	var out []question
	for _, arg := range g.Args {
		q := base
		q.arg, q.Options = arg, slices.Clone(base.Options)
		if !g.kind.byCluster {
			namespace, name, err := g.PlaceOf(g.kind.one, arg)
			if err != nil {
				return nil, exit.Wrong(err)
			}
			q.Namespace, q.Options = namespace, append(q.Options, client.MatchingFields{"metadata.name": name})
			// The API server has looked at the name; what stands in for one may not have.
			q.keep = selection.Both(base.keep, func(o client.Object) bool { return o.GetName() == name })
		} else {
			q.keep = selection.Both(base.keep, selection.ToCluster(arg))
			toOne := selection.In(selector, hubv1.ClusterLabel, selection.LabelOf(arg))
			q.Options = []client.ListOption{client.MatchingLabelsSelector{Selector: toOne}}
		}
		out = append(out, q)
	}
	return out, nil
}

// ofDeliveries narrows a question to the deliveries of certain clusters and of a set, and returns the selector for it.
func (g *getter) ofDeliveries(ctx context.Context, q *question, selector labels.Selector) (labels.Selector, error) {
	of := labels.Everything()
	if !selector.Empty() {
		clusters, err := live.Selected(ctx, g.Client, client.MatchingLabelsSelector{Selector: selector})
		if err != nil {
			return nil, err
		}
		q.keep = selection.Both(q.keep, func(o client.Object) bool { return clusters[selection.Registration(o)] })
		of = selection.InClusters(of, clusters)
	}
	if g.Set != "" {
		namespace, name, err := g.PlaceOf("set", g.Set)
		if err != nil {
			return nil, exit.Wrong(err)
		}
		q.keep = selection.Both(q.keep, selection.OfSet(namespace, name))
		of = selection.In(of, hubv1.AddonSetLabel, identity.LabelValue(name))
	}
	return of, nil
}

// ask lists, and writes page by page. It returns the version to watch from, and how many objects there were.
func (g *getter) ask(ctx context.Context, q question) (version string, found int, err error) {
	version, err = q.Pages(ctx, func(objects []client.Object) error {
		var items []item
		for _, o := range objects {
			if q.keep(o) {
				found++
				items = append(items, g.items(o)...)
			}
		}
		return g.write(items)
	})
	return version, found, err
}

// items returns what an object shows.
func (g *getter) items(o client.Object) []item {
	var out []item
	for _, it := range g.kind.items(g.Options, o) {
		if g.Failed && !it.row.Failed && g.seen[it.row.Key] == "" {
			continue
		}
		out = append(out, it)
	}
	return out
}

func (g *getter) write(items []item) error {
	g.count += len(items)
	var rows []page.Row
	for _, it := range items {
		if o, ok := it.object.(client.Object); ok && (g.stream != nil || g.Output == "name") {
			name, err := resource.Identify(g.Client.Scheme(), o)
			if err != nil {
				return err
			}
			it.name = name
		}
		var err error
		switch {
		case g.single:
			g.named = append(g.named, it.object)
		case g.stream != nil:
			err = g.stream.Add(it.object)
		case g.Output == "name" && it.name != "":
			_, err = fmt.Fprintln(g.out, it.name)
		case g.Output != "name":
			rows = append(rows, it.row.Row)
		}
		if err != nil {
			return err
		}
	}
	return g.table.Write(g.out, rows)
}

// end ends what is written as JSON or YAML. One object that the command names is written as it is.
func (g *getter) end() error {
	if g.single && len(g.named) == 1 {
		return listing.One(g.out, g.named[0], g.Output == "yaml")
	}
	for _, o := range g.named {
		if err := g.stream.Add(o); err != nil {
			return err
		}
	}
	return g.stream.Close()
}
