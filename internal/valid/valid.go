// SPDX-License-Identifier: Apache-2.0

// Package valid says whether a set is valid: the hub delivers one that is, and what reads sets without a hub says the same of them.
package valid

import (
	"errors"
	"slices"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// Result is what is found of a set. Each error is nil, or one that the user must fix.
type Result struct {
	Selector *match.Selector
	Program  *compile.Program
	// Reach is the error of a namespace whose sets reach no cluster. Then nothing else is found.
	Reach, Selection, Content, Priority, Metadata, Rollout, Graph error
}

// Errors returns the errors that there are.
func (r *Result) Errors() []error {
	all := []error{r.Reach, r.Selection, r.Content, r.Priority, r.Metadata, r.Rollout, r.Graph}
	return slices.DeleteFunc(all, func(err error) bool { return err == nil })
}

// Err returns the first error.
func (r *Result) Err() error {
	for _, err := range r.Errors() {
		return err
	}
	return nil
}

// Check checks a set by itself, and against all sets of its namespace, by name. program compiles it, or knows its program: that may be one
// of a revision, which has no metadata.
func Check(set *hubv1.AddonSet, from match.Reach, author compile.Author, all map[string]*hubv1.AddonSetSpec,
	program func(*hubv1.AddonSetSpec, compile.Author) (*compile.Program, error),
) (r Result) {
	if why := from.Broken(); why != "" {
		return Result{Reach: errors.New(why)}
	}
	spec := &set.Spec
	r.Selector, r.Selection = match.New(from, spec)
	if r.Program, r.Content = program(spec, author); r.Content == nil {
		r.Metadata = compile.CheckMetadata(spec, author)
	}
	r.Priority = compile.CheckPriority(spec, author)
	_, r.Rollout = rollout.New(spec.Rollout)
	r.Graph = compile.Graph(set.Name, all)
	return r
}
