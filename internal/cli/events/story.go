// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/eventview"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/request"
)

// teller tells what `chandler events CLUSTER ADDON` shows.
type teller struct {
	*Options
	list  *page.List
	story *eventview.Story
	// looked is when the deliveries to the cluster were listed last.
	looked time.Time
	// shown are the lines that were printed or left out, and said the notes.
	shown, said map[string]bool
}

func (o *teller) run(ctx context.Context, cluster, addon string) error {
	if err := o.Connect(ctx); err != nil {
		return err
	}
	reg, err := o.Reader.Find(ctx, cluster, *o.Flags.Namespace)
	if err != nil {
		return err
	}
	o.story = &eventview.Story{Addon: addon, Registration: reg}
	if err := o.read(ctx); err != nil {
		return err
	}
	if len(o.story.Deliveries) == 0 {
		return fmt.Errorf("cluster %s/%s has no add-on %q: chandler explain %s %s says why", reg.Namespace, reg.Name, addon, cluster, addon)
	}
	entries, versions := o.story.Entries(), map[eventview.Subject]string{}
	for _, of := range o.story.Subjects() {
		versions[of], err = o.past(ctx, of, func(e *corev1.Event) { entries = append(entries, o.story.Told(e)...) })
		if err != nil {
			return err
		}
	}
	eventview.SortEntries(entries)
	if n := len(entries) - o.Tail; o.Tail > 0 && n > 0 {
		terminal.Say(o.ErrOut, "%d older lines are left out: --tail 0 prints all", n)
		for i := range entries[:n] {
			o.isNew(entries[i].Row())
		}
	}
	if err := o.print(entries); err != nil || !o.Follow {
		return err
	}
	err = o.goOn(ctx, versions)
	if ctx.Err() != nil {
		return nil // the user has seen enough
	}
	return err
}

// readEvery is how often the objects are read that say what happens; a variable for the tests.
var readEvery = 2 * time.Second

// relisted is how often it looks for deliveries that have come. Those that are known are read more often.
const relisted = 30 * time.Second

// read reads the objects of the story. Which deliveries there are is asked seldom: of many clusters that is work for the API server.
func (o *teller) read(ctx context.Context) error {
	s := o.story
	if o.Now().Sub(o.looked) > relisted {
		all, err := o.Deliveries(ctx, s.Registration)
		if err != nil {
			return err
		}
		s.Deliveries, o.looked = slices.DeleteFunc(all, func(d hubv1.AddonDelivery) bool {
			return !slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool { return a.Name == s.Addon })
		}), o.Now()
	} else {
		for i := range s.Deliveries {
			d, err := reread(ctx, o.Client, &s.Deliveries[i], &hubv1.AddonDelivery{})
			if err != nil {
				return err
			}
			s.Deliveries[i] = *d
		}
	}
	var err error
	if s.Registration, err = reread(ctx, o.Client, s.Registration, &hubv1.ClusterRegistration{}); err != nil {
		return err
	}
	s.Flux = nil
	for _, one := range request.Objects(s.Deliveries, s.Addon) {
		u, err := o.object(ctx, &one)
		if err != nil {
			return err
		}
		if u == nil {
			continue
		}
		s.Flux = append(s.Flux, u)
		for _, source := range request.Sources(u, s.Addon) {
			if u, err = o.object(ctx, &source); err != nil {
				return err
			} else if u != nil {
				s.Flux = append(s.Flux, u)
			}
		}
	}
	return nil
}

// reread returns an object as it is now, or, if it is gone, as it was: that is the end of its story. What is read goes into an empty
// object: into a full one, what is not there any more would stay.
func reread[T client.Object](ctx context.Context, c client.Client, was, empty T) (T, error) {
	err := c.Get(ctx, client.ObjectKeyFromObject(was), empty)
	if apierrors.IsNotFound(err) {
		return was, nil
	}
	if err != nil {
		return was, fmt.Errorf("read %s/%s: %w", was.GetNamespace(), was.GetName(), err)
	}
	return empty, nil
}

// object reads one of Flux's; nil if it is not there, or may not be read, which is said once.
func (o *teller) object(ctx context.Context, of *request.Object) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(of.Kind)
	switch err := o.Client.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, u); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		o.note(fmt.Sprintf("you may not read %s, so the story lacks what it says", of))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", of, err)
	}
	return u, nil
}

func (o *teller) note(text string) {
	if !o.said[text] {
		o.said[text] = true
		terminal.Say(o.ErrOut, "Note: %s", text)
	}
}

// about asks for the events of one object: the API server leaves out those of all the others.
func (o *teller) about(of eventview.Subject) *live.Query {
	return &live.Query{Client: o.Client, Kinds: "Events", Namespace: of.Namespace,
		List:    func() client.ObjectList { return &corev1.EventList{} },
		Options: []client.ListOption{client.MatchingFields{"involvedObject.name": of.Name}}}
}

// past reads the events of one object. It returns the version to follow them from, or "" if the user may not read them.
func (o *teller) past(ctx context.Context, of eventview.Subject, take func(*corev1.Event)) (string, error) {
	version, err := o.about(of).Pages(ctx, func(objects []client.Object) error {
		for _, object := range objects {
			if e, ok := object.(*corev1.Event); ok {
				take(e)
			}
		}
		return nil
	})
	if apierrors.IsForbidden(err) {
		o.note(fmt.Sprintf("you may not list the events in namespace %s, so the story lacks them", of.Namespace))
		return "", nil
	}
	return version, err
}

// news is an event, or why there are no more.
type news struct {
	event *corev1.Event
	err   error
}

// goOn prints what happens, until the command is ended.
func (o *teller) goOn(ctx context.Context, versions map[eventview.Subject]string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heard := make(chan news)
	for of, version := range versions {
		if version != "" {
			go o.listen(ctx, of, version, heard)
		}
	}
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		var entries []eventview.Entry
		var err error
		select {
		case <-ctx.Done():
			return nil
		case n := <-heard:
			if n.err != nil {
				return n.err
			}
			entries = o.story.Told(n.event)
		case <-tick.C:
			entries, err = o.again(ctx, versions, heard)
		}
		if err == nil {
			err = o.print(entries)
		}
		if err != nil {
			return err
		}
	}
}

// again reads the objects again, and listens to those that are new.
func (o *teller) again(ctx context.Context, versions map[eventview.Subject]string, heard chan<- news) ([]eventview.Entry, error) {
	if err := o.read(ctx); err != nil {
		return nil, err
	}
	entries := o.story.Entries()
	for _, of := range o.story.Subjects() {
		if _, known := versions[of]; known {
			continue
		}
		version, err := o.past(ctx, of, func(e *corev1.Event) { entries = append(entries, o.story.Told(e)...) })
		if err != nil {
			return nil, err
		}
		if versions[of] = version; version != "" {
			go o.listen(ctx, of, version, heard)
		}
	}
	eventview.SortEntries(entries)
	return entries, nil
}

// listen tells the events of one object. When the API server has forgotten where it was, it reads all of them again.
func (o *teller) listen(ctx context.Context, of eventview.Subject, version string, heard chan<- news) {
	tell := func(n news) error {
		select {
		case heard <- n:
		case <-ctx.Done():
		}
		return nil
	}
	query := o.about(of)
	take := func(objects []client.Object) error {
		for _, object := range objects {
			if e, ok := object.(*corev1.Event); ok {
				_ = tell(news{event: e})
			}
		}
		return nil
	}
	for ctx.Err() == nil {
		err := query.Follow(ctx, version, func(object client.Object, deleted bool) error {
			if deleted {
				return nil
			}
			return take([]client.Object{object})
		})
		if err == nil && ctx.Err() == nil {
			version, err = query.Pages(ctx, take)
		}
		if err != nil {
			_ = tell(news{err: err})
			return
		}
	}
}

// print writes entries that have not been written yet.
func (o *teller) print(entries []eventview.Entry) error {
	if !o.Output.IsText() {
		d := eventview.Document{Items: []eventview.Happened{}}
		for i := range entries {
			if o.isNew(entries[i].Row()) {
				d.Items = append(d.Items, entries[i].Happened())
			}
		}
		return o.Output.Write(o.Out, d)
	}
	var rows []page.Row
	for i := range entries {
		if row := entries[i].Row(); o.isNew(row) {
			rows = append(rows, row)
		}
	}
	return o.list.Write(o.Out, rows)
}

// isNew returns whether a line has not been there yet, and keeps in mind that it has.
func (o *teller) isNew(row page.Row) bool {
	line := strings.Join(row.Cells, "\n")
	if o.shown[line] {
		return false
	}
	o.shown[line] = true
	return true
}
