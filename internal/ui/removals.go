// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/ui/view"
)

func (s *Server) removals(r *http.Request) (*content, error) {
	now := view.Time{Now: s.Now()}
	return &content{View: "removals", Title: "Held removals", Nav: "removals",
		Data: s.Fleet.Index().HeldSets(view.ParseQuery(r.URL.Path, r.URL.Query()), now)}, nil
}

// held shows exactly what the guard of a set holds, and follows it.
func (s *Server) held(r *http.Request) (*content, error) { return s.listRemovals(r, "held", "") }

// confirmRemovals shows the same, and asks. What is shown there stays, so that what is approved is what was read.
func (s *Server) confirmRemovals(r *http.Request) (*content, error) { return s.askRemovals(r, "") }

func (s *Server) askRemovals(r *http.Request, problem string) (*content, error) {
	return s.listRemovals(r, "heldapprove", problem)
}

func (s *Server) listRemovals(r *http.Request, template, problem string) (*content, error) {
	in, err := s.course(r)
	if err != nil {
		return nil, err
	}
	key := client.ObjectKeyFromObject(in.Set)
	data := view.NewHeld(in, view.ParseQuery(r.URL.Path, r.URL.Query()), s.mayPatch(r.Context(), key), problem)
	return &content{View: template, Title: "Held removals of " + key.String(), Nav: "removals", Data: data,
		Trail: []crumb{{"Held removals", "/removals"}, {key.String(), data.Back}}}, nil
}

// approve approves what the guard holds, if that is what was confirmed.
func (s *Server) approve(r *http.Request) error {
	in, err := s.course(r)
	if err != nil {
		return err
	}
	patch, says, problem := view.Approval(in, r.PostFormValue("seen"))
	if problem != "" {
		return errors.New(problem)
	}
	return s.patch(r.Context(), in.Set, patch, []string{says})
}
