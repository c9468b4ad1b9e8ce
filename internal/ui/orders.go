// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/rolloutreader"
	"github.com/chandler-hub/chandler/internal/rolloutview"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

// said is what an order has said, and when.
type said struct {
	lines []string
	at    time.Time
}

// remembered is how long a page tells what an order has said.
const remembered = 2 * time.Minute

// answer is whether the caller may do something, and when the hub said so.
type answer struct {
	yes bool
	at  time.Time
}

// valid is how long an answer about the caller's rights counts. An order that is not allowed is refused by the hub all the same.
const valid = 30 * time.Second

// mayPatch asks whether the caller may give orders to a set. If that is not known, he may try.
func (s *Server) mayPatch(ctx context.Context, set types.NamespacedName) bool {
	s.mu.Lock()
	known, ok := s.may[set]
	s.mu.Unlock()
	if ok && s.Now().Sub(known.at) < valid {
		return known.yes
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: set.Namespace, Name: set.Name, Verb: "patch",
			Group: hubv1.GroupVersion.Group, Resource: "addonsets"}}}
	if err := s.Reader.Client.Create(ctx, review); err != nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.may[set] = answer{review.Status.Allowed, s.Now()}
	return review.Status.Allowed
}

// course reads a set anew, with its revisions. The clusters are those that the watch knows. What may not be read is noted.
func (s *Server) course(r *http.Request) (*rolloutview.Input, error) {
	ctx := r.Context()
	set := &hubv1.AddonSet{}
	if err := s.Reader.Client.Get(ctx, types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}, set); err != nil {
		return nil, err
	}
	in := &rolloutview.Input{Set: set, Now: s.Now()}
	for _, read := range []rolloutreader.Part{rolloutreader.Revisions, rolloutreader.Reach} {
		err := read(ctx, s.Reader, in)
		if apierrors.IsForbidden(err) {
			in.Notes = append(in.Notes, "you may not read everything that this page needs: "+excerpt.Line(err.Error()))
		} else if err != nil {
			return nil, err
		}
	}
	fleet := s.Fleet.Index()
	if in.Unknown = fleet.Unknown(in.Reach); in.Unknown != "" {
		in.Notes = append(in.Notes, in.Unknown)
	}
	in.Notes = append(in.Notes, fleet.Notes...)
	for _, d := range fleet.Deliveries {
		if d.Namespace == set.Namespace && d.Spec.AddonSetRef.Name == set.Name {
			in.Deliveries = append(in.Deliveries, *d)
		}
	}
	for _, reg := range fleet.Registrations {
		in.Registrations = append(in.Registrations, *reg)
	}
	return in, nil
}

func (s *Server) sets(r *http.Request) (*content, error) {
	q := view.ParseQuery(r.URL.Path, r.URL.Query())
	return &content{View: "sets", Title: "Sets and rollouts", Nav: "sets", Data: s.Fleet.Index().SetRows(q, s.Now())}, nil
}

func (s *Server) rollout(r *http.Request) (*content, error) {
	in, err := s.course(r)
	if err != nil {
		return nil, err
	}
	key := client.ObjectKeyFromObject(in.Set)
	data := view.NewRollout(in, view.ParseQuery(r.URL.Path, r.URL.Query()), s.mayPatch(r.Context(), key))
	data.Day = s.Fleet.Index().SetDay(key, in.Revisions, s.Now())
	s.mu.Lock()
	if last, ok := s.said[key]; ok && s.Now().Sub(last.at) < remembered {
		data.Said = last.lines
	}
	s.mu.Unlock()
	return &content{View: "rollout", Title: "Set " + key.String(), Nav: "sets", Data: data,
		Trail: []crumb{{"Sets and rollouts", "/sets"}}}, nil
}

// wish reads what a user wants from the address, or from a form.
func wish(r *http.Request) view.Wish {
	get := func(key string) string { return excerpt.Cut(excerpt.Line(r.FormValue(key)), 2048) } // what was seen has up to four long names
	return view.Wish{Verb: r.PathValue("verb"), Wave: get("wave"), To: get("to"), Reason: get("reason"), Until: get("until"),
		Seen: get("seen"), Now: get("now") != ""}
}

func known(verb string) bool {
	for _, v := range view.Verbs {
		if v.Verb == verb {
			return true
		}
	}
	return false
}

// confirm shows what an order does, and asks.
func (s *Server) confirm(r *http.Request) (*content, error) { return s.ask(r, "") }

func (s *Server) ask(r *http.Request, problem string) (*content, error) {
	w := wish(r)
	if !known(w.Verb) {
		return nil, fmt.Errorf("%w: there is no order %q", errNotThere, w.Verb)
	}
	in, err := s.course(r)
	if err != nil {
		return nil, err
	}
	key := client.ObjectKeyFromObject(in.Set)
	data := view.NewConfirmation(in, w, s.mayPatch(r.Context(), key), problem)
	return &content{View: "order", Title: data.Title, Nav: "sets", Data: data,
		Trail: []crumb{{"Sets and rollouts", "/sets"}, {key.String(), data.Back}}}, nil
}

// orders adds what changes something.
func (s *Server) orders(mux *http.ServeMux) {
	post := func(pattern string, order func(*http.Request) error, ask func(*http.Request, string) (*content, error)) {
		mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) {
			for _, part := range []string{"namespace", "name"} {
				if len(validation.IsDNS1123Subdomain(r.PathValue(part))) > 0 {
					s.write(w, r, s.trouble(http.StatusNotFound, "There is nothing of this name."))
					return
				}
			}
			// If the hub writes to the set meanwhile, it begins anew.
			err := live.Again(retry.DefaultRetry, func(err error) bool { return errors.Is(err, errMeanwhile) }, func() error { return order(r) })
			s.answer(w, r, err, ask)
		})
	}
	post("/sets/{namespace}/{name}/order/{verb}", s.order, s.ask)
	post("/sets/{namespace}/{name}/removals/approve", s.approve, s.askRemovals)
}

// answer leads back to the set after an order. If the order was not given, it asks again, and says why.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, problem error, ask func(*http.Request, string) (*content, error)) {
	if problem == nil {
		http.Redirect(w, r, view.SetURL(r.PathValue("namespace"), r.PathValue("name")), http.StatusSeeOther)
		return
	}
	c, err := ask(r, problem.Error())
	if err != nil {
		c = s.failed(err)
	} else {
		c.Code = http.StatusConflict
	}
	s.write(w, r, c)
}

// errMeanwhile is for another writer's change between reading and writing.
var errMeanwhile = errors.New("it has been changed meanwhile: nothing is changed. Look again")

// order gives an order: what was confirmed, to the set as it was seen then.
func (s *Server) order(r *http.Request) error {
	w := wish(r)
	if !known(w.Verb) {
		return fmt.Errorf("%w: there is no order %q", errNotThere, w.Verb)
	}
	in, err := s.course(r)
	if err != nil {
		return err
	}
	if seen := view.Seen(in.Set); w.Seen != seen {
		return fmt.Errorf("the set has changed since you looked (%s, and now %s): nothing is changed. Look again", w.Seen, seen)
	}
	order, err := view.Order(in, w)
	if err != nil {
		return err
	}
	lines := append([]string{order.Says}, order.Notes...)
	return s.patch(r.Context(), in.Set, order.Patch, lines)
}

// patch writes an order, and remembers what it said.
func (s *Server) patch(ctx context.Context, set *hubv1.AddonSet, patch map[string]any, lines []string) error {
	key := client.ObjectKeyFromObject(set)
	if patch != nil {
		// The set as it was read: what another user orders meanwhile is not overwritten.
		metadata, _ := patch["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			patch["metadata"] = metadata
		}
		metadata["resourceVersion"] = set.ResourceVersion
		raw, err := json.Marshal(patch)
		if err != nil {
			return err
		}
		err = s.Reader.Client.Patch(ctx, set, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(rolloutview.Manager))
		switch {
		case apierrors.IsForbidden(err):
			return fmt.Errorf("you may not patch AddonSet %s: %w", key, err)
		case apierrors.IsConflict(err):
			return fmt.Errorf("AddonSet %s: %w", key, errMeanwhile)
		case err != nil:
			return fmt.Errorf("patch AddonSet %s: %w", key, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said[key] = said{slices.Clone(lines), s.Now()}
	return nil
}
