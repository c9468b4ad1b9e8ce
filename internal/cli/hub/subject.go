// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/live"
)

// Subject is what a command is about: a cluster or a set.
type Subject struct {
	Cluster *hubv1.ClusterRegistration
	Set     *hubv1.AddonSet
}

// Subjects are the two kinds, as people write them before a name.
var Subjects = []string{"cluster", "set"}

// SubjectArgs wants a cluster or a set, as NAME, or cluster NAME or set NAME.
func SubjectArgs(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 1 || len(args) == 2 && slices.Contains(Subjects, args[0]) {
			return nil
		}
		return fmt.Errorf("%s: write a cluster or a set: chandler %s NAME, or chandler %s cluster NAME, or chandler %s set NAME", verb, verb,
			verb, verb)
	}
}

// CompleteSubject completes the names of clusters and sets.
func (c *Connection) CompleteSubject(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := tabKey(cmd) // for both questions
	defer cancel()
	cmd.SetContext(ctx)
	clusters, sets := c.CompleteNames("ClusterRegistration", true), c.CompleteNames("AddonSet", true)
	switch {
	case len(args) == 0:
		names, _ := clusters(cmd, args, begun)
		more, how := sets(cmd, args, begun)
		return append(names, more...), how
	case len(args) == 1 && args[0] == Subjects[0]:
		return clusters(cmd, args, begun)
	case len(args) == 1 && args[0] == Subjects[1]:
		return sets(cmd, args, begun)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// Subject finds what a command is about.
func (c *Connection) Subject(ctx context.Context, verb string, args []string) (*Subject, error) {
	if err := c.Connect(ctx); err != nil {
		return nil, err
	}
	name, namespace := args[len(args)-1], *c.Flags.Namespace
	s := &Subject{}
	var noCluster, noSet error
	switch one := len(args) == 1; { // kubectl's kind/name says which of both it is
	case one && live.Bare("ClusterRegistration", name) != name:
		args = []string{Subjects[0], name}
	case one && live.Bare("AddonSet", name) != name:
		args = []string{Subjects[1], name}
	}
	if len(args) == 1 || args[0] == Subjects[0] {
		s.Cluster, noCluster = c.Reader.Find(ctx, name, namespace)
	}
	if len(args) == 1 || args[0] == Subjects[1] {
		s.Set, noSet = c.Reader.FindSet(ctx, name, namespace)
	}
	both := s.Cluster != nil && s.Set != nil
	switch {
	case both:
		return nil, fmt.Errorf("there are a cluster %s/%s and a set %s/%s: write chandler %s cluster %s, or chandler %s set %s",
			s.Cluster.Namespace, s.Cluster.Name, s.Set.Namespace, s.Set.Name, verb, name, verb, name)
	case errors.Is(noCluster, live.ErrSeveral):
		return nil, noCluster
	case errors.Is(noSet, live.ErrSeveral):
		return nil, noSet
	case s.Cluster != nil || s.Set != nil:
		return s, nil
	case noCluster == nil || noSet == nil:
		return nil, errors.Join(noCluster, noSet)
	}
	return nil, fmt.Errorf("%w; and %w", noCluster, noSet)
}
