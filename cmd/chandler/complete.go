// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/live"
)

// completion is how long somebody who has pressed the tab key waits at the most.
const completion = 3 * time.Second

// completeNames completes the names of a kind from the live hub. A hub that does not answer completes nothing. many says that more than
// one name may be written.
func completeNames(flags *genericclioptions.ConfigFlags, kind string, many bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), completion)
		defer cancel()
		names, err := namesOf(ctx, flags, kind)
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completions(names, args, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// complete has the values of a flag completed.
func complete(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	var of cobra.CompletionFunc = func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return values(cmd, nil, begun)
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, of); err != nil {
		panic(err)
	}
}

// newName completes nothing: what is written is the name of something that does not exist yet.
var newName = cobra.NoFileCompletions

// fileNames has the shell complete the names of files.
func fileNames(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// second completes the second argument, which belongs to the first.
func second(first cobra.CompletionFunc, of func(ctx context.Context, name string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return first(cmd, args, begun)
		}
		ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), completion)
		defer cancel()
		names, err := of(ctx, args[0])
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begun) })
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeAddon completes a cluster, and then the add-ons that are delivered there.
func (o *hubOptions) completeAddon(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return second(completeNames(o.flags, "ClusterRegistration", false), func(ctx context.Context, cluster string) (names []string, err error) {
		if err := o.connect(ctx); err != nil {
			return nil, err
		}
		reg, err := o.reader.Find(ctx, cluster, *o.flags.Namespace)
		if err != nil {
			return nil, err
		}
		deliveries, err := o.deliveries(ctx, reg)
		for i := range deliveries {
			for j := range deliveries[i].Status.Addons {
				names = append(names, deliveries[i].Status.Addons[j].Name)
			}
		}
		return names, err
	})(cmd, args, begun)
}

// completeWave completes a set, and then its waves.
func (o *rolloutOptions) completeWave(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return second(completeNames(o.flags, "AddonSet", false), func(ctx context.Context, set string) (names []string, err error) {
		in, err := o.find(ctx, set)
		if err != nil || in.Set.Status.Rollout == nil {
			return nil, err
		}
		for i := range in.Set.Status.Rollout.Waves {
			names = append(names, in.Set.Status.Rollout.Waves[i].Name)
		}
		return names, nil
	})(cmd, args, begun)
}

// namesOf returns namespace/name of the objects of a kind. It reads nothing but metadata.
func namesOf(ctx context.Context, flags *genericclioptions.ConfigFlags, kind string) ([]string, error) {
	c, err := connectTo(ctx, flags)
	if err != nil {
		return nil, err
	}
	q := &live.Query{Client: c, Kinds: kind, Namespace: *flags.Namespace, List: func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(hubv1.GroupVersion.WithKind(kind + "List"))
		return list
	}}
	var names []string
	_, err = q.Pages(ctx, func(objects []client.Object) error {
		for _, o := range objects {
			names = append(names, o.GetNamespace()+"/"+o.GetName())
		}
		return nil
	})
	return names, err
}

// completions returns what begins as somebody has begun: names alone, and with the namespace where that is needed or begun.
func completions(names, args []string, begun string) []cobra.Completion {
	count := map[string]int{}
	for _, full := range names {
		_, name, _ := strings.Cut(full, "/")
		count[name]++
	}
	var out []cobra.Completion
	for _, full := range names {
		namespace, name, _ := strings.Cut(full, "/")
		if count[name] > 1 || strings.Contains(begun, "/") {
			name = full
		}
		if strings.HasPrefix(name, begun) && !slices.Contains(args, name) {
			out = append(out, cobra.CompletionWithDesc(name, "in namespace "+namespace))
		}
	}
	slices.Sort(out)
	return out
}
