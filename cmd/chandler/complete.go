// SPDX-License-Identifier: Apache-2.0

package main

import (
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
		base := cmd.Context()
		if base == nil {
			base = context.Background()
		}
		ctx, cancel := context.WithTimeout(base, completion)
		defer cancel()
		names, err := namesOf(ctx, flags, kind)
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completions(names, args, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// namesOf returns namespace/name of the objects of a kind. It reads nothing but metadata.
func namesOf(ctx context.Context, flags *genericclioptions.ConfigFlags, kind string) ([]string, error) {
	c, err := connectTo(flags)
	if err != nil {
		return nil, err
	}
	q := &live.Query{Client: c, Kinds: kind + "s", Namespace: *flags.Namespace, List: func() client.ObjectList {
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
