// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/live"
)

// subject is what a command is about: a cluster or a set.
type subject struct {
	cluster *hubv1.ClusterRegistration
	set     *hubv1.AddonSet
}

// subjects are the two kinds, as people write them before a name.
var subjects = []string{"cluster", "set"}

// subjectArgs wants a cluster or a set, as NAME, or cluster NAME or set NAME.
func subjectArgs(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 1 || len(args) == 2 && slices.Contains(subjects, args[0]) {
			return nil
		}
		return fmt.Errorf("%s: write a cluster or a set: chandler %s NAME, or chandler %s cluster NAME, or chandler %s set NAME", verb, verb,
			verb, verb)
	}
}

// completeSubject completes the names of clusters and sets.
func (o *hubOptions) completeSubject(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), completion) // for both questions
	defer cancel()
	cmd.SetContext(ctx)
	clusters, sets := completeNames(o.flags, "ClusterRegistration", true), completeNames(o.flags, "AddonSet", true)
	switch {
	case len(args) == 0:
		names, _ := clusters(cmd, args, begun)
		more, how := sets(cmd, args, begun)
		return append(names, more...), how
	case len(args) == 1 && args[0] == subjects[0]:
		return clusters(cmd, args, begun)
	case len(args) == 1 && args[0] == subjects[1]:
		return sets(cmd, args, begun)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// subject finds what a command is about.
func (o *hubOptions) subject(ctx context.Context, verb string, args []string) (*subject, error) {
	if err := o.connect(ctx); err != nil {
		return nil, err
	}
	name, namespace := args[len(args)-1], *o.flags.Namespace
	s := &subject{}
	var noCluster, noSet error
	if len(args) == 1 || args[0] == subjects[0] {
		s.cluster, noCluster = o.reader.Find(ctx, name, namespace)
	}
	if len(args) == 1 || args[0] == subjects[1] {
		s.set, noSet = o.reader.FindSet(ctx, name, namespace)
	}
	both := s.cluster != nil && s.set != nil
	switch {
	case both:
		return nil, fmt.Errorf("there are a cluster %s/%s and a set %s/%s: write chandler %s cluster %s, or chandler %s set %s",
			s.cluster.Namespace, s.cluster.Name, s.set.Namespace, s.set.Name, verb, name, verb, name)
	case errors.Is(noCluster, live.ErrSeveral):
		return nil, noCluster
	case errors.Is(noSet, live.ErrSeveral):
		return nil, noSet
	case s.cluster != nil || s.set != nil:
		return s, nil
	case noCluster == nil || noSet == nil:
		return nil, errors.Join(noCluster, noSet)
	}
	return nil, fmt.Errorf("%w; and %w", noCluster, noSet)
}
