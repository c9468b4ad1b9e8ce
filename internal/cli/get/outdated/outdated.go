// SPDX-License-Identifier: Apache-2.0

// Package outdated is `chandler get outdated`.
package outdated

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/outdated"
	"github.com/chandler-hub/chandler/internal/page"
)

// Options are the flags of `chandler get outdated`.
type Options struct {
	hub.Connection
	terminal.Streams
	// Args are the names of sets.
	Args                  []string
	Output                string
	ShowCurrent, NoHeader bool
}

// outdatedOutputs are the forms of its output: an item is no object with a name.
var outdatedOutputs = []string{"", "wide", "json", "yaml"}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "outdated [SET...]",
		Short: "List upstream versions that no revision holds yet",
		Long: `Lists charts and sources with something new upstream that no revision of their set holds (Outdated): since
when, which wave would get it first, and what it waits for. Unknown is what Flux could not read. Floats is what no revision
holds: each change reaches all clusters at once. --show-current adds what is UpToDate, and what the set fixes at one
version (Fixed). It shows what Flux has read, and asks no registry.`,
		Example: `  chandler get outdated
  chandler get outdated cert-manager -o wide
  chandler get outdated --show-current -o json`,
	}
	o := &Options{}
	o.AddFlags(cmd, from)
	o.AddShared(cmd)
	o.AddAll(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.Output, "output", "o", "", "output format: wide, json or yaml (default: a table)")
	f.BoolVar(&o.ShowCurrent, "show-current", false, "show what is up to date or fixed, too")
	f.BoolVar(&o.NoHeader, "no-headers", false, "print no header")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Streams, o.Args = terminal.Of(cmd), args
		return command.Run(cmd.Context(), o, run, o.run)
	}
	cmd.ValidArgsFunction = o.CompleteNames("AddonSet", true)
	command.Complete(cmd, "output", cobra.FixedCompletions(outdatedOutputs[1:], cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	if !slices.Contains(outdatedOutputs, o.Output) {
		return exit.Wrong(fmt.Errorf("get outdated: there is no output %q: write -o wide, json or yaml", o.Output))
	}
	if err := hub.CheckNames("get outdated", o.Args); err != nil {
		return err
	}
	if err := o.Ask(ctx); err != nil {
		return err
	}
	from := &upstream{Reader: &o.Reader, now: o.Now()}
	all, missing, err := o.read(ctx, from, o.Args)
	if err != nil {
		return err
	}
	for _, note := range from.notes {
		terminal.Say(o.ErrOut, "Note: %s", note)
	}
	if err := o.show(all); err != nil {
		return err
	}
	if missing {
		return exit.Silent(exit.Failed) // it has been said
	}
	return nil
}

// read reads what the sets with some names follow; all sets if there is no name. A name that does not exist is said.
func (o *Options) read(ctx context.Context, from *upstream, names []string) (all []outdated.Item, missing bool, err error) {
	all = []outdated.Item{}
	if len(names) == 0 {
		_, err = o.take(ctx, from, *o.Flags.Namespace, "", &all)
		return all, false, err
	}
	for _, arg := range names {
		namespace, name, err := o.PlaceOf("set", live.Bare("AddonSet", arg))
		if err != nil {
			return nil, false, exit.Wrong(err)
		}
		found, err := o.take(ctx, from, namespace, name, &all)
		if err != nil {
			return nil, false, err
		}
		if found == 0 {
			terminal.Say(o.ErrOut, "chandler: there is no set %q: chandler get sets lists them", arg)
			missing = true
		}
	}
	return all, missing, nil
}

// take adds what the sets of a namespace, or of all, follow. A user who may not list all gets that of the own namespace.
func (o *Options) take(ctx context.Context, from *upstream, namespace, name string, to *[]outdated.Item) (int, error) {
	found, err := o.pages(ctx, from, namespace, name, to)
	if !apierrors.IsForbidden(err) || namespace != "" {
		return found, err
	}
	own, err := hub.OwnNamespace(o.Flags)
	if err != nil {
		return 0, err
	}
	if found, err = o.pages(ctx, from, own, name, to); err == nil {
		hub.SayNarrow(o.ErrOut, "AddonSets", own)
	}
	return found, err
}

func (o *Options) pages(ctx context.Context, from *upstream, namespace, name string,
	to *[]outdated.Item) (found int, err error) {
	q := &live.Query{Client: o.Client, Kinds: "AddonSets", Namespace: namespace,
		List: func() client.ObjectList { return &hubv1.AddonSetList{} }}
	if name != "" {
		q.Options = []client.ListOption{client.MatchingFields{"metadata.name": name}}
	}
	_, err = q.Pages(ctx, func(objects []client.Object) error {
		for _, object := range objects {
			set := object.(*hubv1.AddonSet)
			if name != "" && set.Name != name { // what stands in for an API server may not look at the name
				continue
			}
			if found++; set.DeletionTimestamp != nil {
				continue
			}
			items, err := from.of(ctx, set)
			if err != nil {
				return err
			}
			for i := range items {
				if o.ShowCurrent || !items[i].Current() {
					*to = append(*to, items[i])
				}
			}
		}
		return nil
	})
	return found, err
}

func (o *Options) show(all []outdated.Item) error {
	if o.Output == "json" || o.Output == "yaml" {
		return command.Format(o.Output).Write(o.Out, command.Items[outdated.Item]{Items: all})
	}
	if len(all) == 0 {
		terminal.Say(o.ErrOut, "Nothing is outdated or floats. --show-current shows what the sets have.")
		return nil
	}
	wide := o.Output == "wide"
	list := &page.List{Columns: outdated.Columns, Wide: wide, NoHeaders: o.NoHeader, Colour: terminal.Coloured(o.Out)}
	if *o.Flags.Namespace != "" {
		list.Without = "Namespace"
	}
	var rows []page.Row
	for i := range all {
		rows = append(rows, all[i].Row(o.Now(), wide))
	}
	return list.Write(o.Out, rows)
}
