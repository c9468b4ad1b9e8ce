// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/live"
)

// Patience is how long the tab key waits for the hub at the most.
const Patience = 3 * time.Second

// tabKey returns the context of a question that the tab key asks.
func tabKey(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), Patience)
}

// CompleteNames completes the names of a kind from the live hub. A hub that does not answer completes nothing. many says that more than
// one name may be written.
func (c *Connection) CompleteNames(kind string, many bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := tabKey(cmd)
		defer cancel()
		names, err := c.namesOf(ctx, kind)
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completions(names, args, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// Second completes the second argument, which belongs to the first.
func Second(first cobra.CompletionFunc, of func(ctx context.Context, name string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return first(cmd, args, begun)
		}
		ctx, cancel := tabKey(cmd)
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

// CompleteAddon completes a cluster, and then the add-ons that are delivered there.
func (c *Connection) CompleteAddon(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return Second(c.CompleteNames("ClusterRegistration", false), func(ctx context.Context, cluster string) (names []string, err error) {
		if err := c.Connect(ctx); err != nil {
			return nil, err
		}
		reg, err := c.Reader.Find(ctx, cluster, *c.Flags.Namespace)
		if err != nil {
			return nil, err
		}
		deliveries, err := c.Deliveries(ctx, reg)
		for i := range deliveries {
			for j := range deliveries[i].Status.Addons {
				names = append(names, deliveries[i].Status.Addons[j].Name)
			}
		}
		return names, err
	})(cmd, args, begun)
}

// namesOf returns namespace/name of the objects of a kind. It reads nothing but metadata.
func (c *Connection) namesOf(ctx context.Context, kind string) ([]string, error) {
	// One that is kept would end with the time of this question, and there may be another one.
	connected, _, err := c.Factory.Connect(ctx, c.Flags)
	if err != nil {
		return nil, err
	}
	q := &live.Query{Client: connected, Kinds: kind, Namespace: *c.Flags.Namespace, List: func() client.ObjectList {
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

// completions returns the names that begin with begun: names alone, and with the namespace where that is needed or begun.
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
