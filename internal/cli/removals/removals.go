// SPDX-License-Identifier: Apache-2.0

// Package removals is `chandler removals`.
package removals

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/order"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/rolloutreader"
	"github.com/chandler-hub/chandler/internal/rolloutview"
	"github.com/chandler-hub/chandler/internal/status"
)

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "removals",
		Short: "List and approve held removals",
		Example: `  chandler removals list
  chandler removals approve cert-manager`,
	}
	return command.Group(cmd, approveCommand(from, run), listCommand(from, run))
}

// Options are the flags of the commands of `chandler removals`.
type Options struct {
	order.Hub
	// Args are a set, or nothing.
	Args   []string
	Output command.Format
	Yes    bool
	Hash   string
}

func listCommand(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [SET]",
		Short: "List sets with held removals, or the removals of a set",
		Long: `Lists the sets with held removals. With SET it lists each add-on that would leave a cluster or be
reinstalled.`,
		Example: `  chandler removals list
  chandler removals list cert-manager -n flux-system`,
		Args: cobra.MaximumNArgs(1),
	}
	o := newOptions(cmd, from, run, list)
	o.AddAll(cmd)
	o.Output.AddFlag(cmd)
	return cmd
}

// newOptions returns the options of a command, which does what run says, or else what it usually does.
func newOptions(cmd *cobra.Command, from *factory.Factory, run, usual func(context.Context, *Options) error) *Options {
	if run == nil {
		run = usual
	}
	o := &Options{}
	o.AddSet(cmd, from)
	o.AddShared(cmd) // how far sets reach
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Streams, o.Args = terminal.Of(cmd), args
		return run(cmd.Context(), o)
	}
	return o
}

func list(ctx context.Context, o *Options) error {
	if len(o.Args) == 0 {
		return o.listHeld(ctx)
	}
	in, err := o.held(ctx, o.Args[0])
	if err != nil {
		return err
	}
	if !o.Output.IsText() {
		return o.Output.Write(o.Out, command.Items[rolloutview.HeldSet]{Items: []rolloutview.HeldSet{rolloutview.HeldDocument(in)}})
	}
	return rolloutview.HeldPage(in).Flush(o.Out)
}

func approveCommand(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approve SET",
		Short: "Approve held removals of a set",
		Long: `Shows the held removals of a set, asks, and approves them (sets annotation chandler.dev/approve-removal to
their hash). If other removals are held by then, nothing is approved. Without a terminal it needs --yes.`,
		Example: `  chandler removals approve cert-manager
  chandler removals approve flux-system/cert-manager --hash 9f86d081884c7d65 --yes`,
		Args: command.OneName("set"),
	}
	o := newOptions(cmd, from, run, approve)
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "skip the confirmation prompt")
	cmd.Flags().StringVar(&o.Hash, "hash", "", "approve only if the held removals have this hash")
	exit.Means(cmd, "", "nothing is held, the hash is a different one, or you said no")
	return cmd
}

func approve(ctx context.Context, o *Options) error {
	in, err := o.held(ctx, o.Args[0])
	if err != nil {
		return err
	}
	if err := rolloutview.HeldPage(in).Flush(o.Out); err != nil {
		return err
	}
	hash := o.Hash
	if hash == "" {
		if hash, err = rolloutview.MayApprove(in); err != nil {
			return err
		}
	}
	if err := terminal.Agreed(ctx, o.In, o.Out, o.Yes); err != nil {
		return err
	}
	name := in.Set.Namespace + "/" + in.Set.Name
	return o.Order(ctx, name, false, func(in *rolloutview.Input) (*rolloutview.Order, error) { return rolloutview.ApproveRemovals(in, hash) })
}

// held reads what a set's guard may hold.
func (o *Options) held(ctx context.Context, name string) (*rolloutview.Input, error) {
	in, err := o.Find(ctx, name)
	if err != nil || in.Set.Status.HeldRemovals == nil {
		return in, err
	}
	if err := o.Ask(ctx); err != nil {
		return nil, err
	}
	return in, rolloutreader.Read(ctx, &o.Reader, in, rolloutreader.Deliveries, rolloutreader.Clusters)
}

// listHeld lists the sets whose guard holds something.
func (o *Options) listHeld(ctx context.Context) error {
	if err := o.Connect(ctx); err != nil {
		return err
	}
	q := &live.Query{Client: o.Client, Kinds: "AddonSets", Namespace: *o.Flags.Namespace,
		List: func() client.ObjectList { return &hubv1.AddonSetList{} }}
	held := []rolloutview.HeldSet{}
	_, err := q.Pages(ctx, func(objects []client.Object) error {
		for _, object := range objects {
			set, ok := object.(*hubv1.AddonSet)
			if !ok {
				return errors.New("the API server listed something else than AddonSets")
			}
			if set.Status.HeldRemovals != nil {
				held = append(held, rolloutview.HeldOf(set))
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !o.Output.IsText():
		return o.Output.Write(o.Out, command.Items[rolloutview.HeldSet]{Items: held})
	case len(held) == 0:
		terminal.Say(o.ErrOut, "No held removals found.")
		return nil
	}
	list := &page.List{Columns: []page.Column{{Name: "Namespace"}, {Name: "Set"}, {Name: "Clusters"}, {Name: "Since"}, {Name: "Would lose"}}}
	return list.Write(o.Out, heldRows(held, o.Now()))
}

func heldRows(held []rolloutview.HeldSet, now time.Time) (rows []page.Row) {
	for _, h := range held {
		since := "-"
		if h.Since != nil {
			since = page.Since(&h.Since.Time, now)
		}
		some := strings.Join(h.Sample, ", ")
		if more := int(h.Clusters) - len(h.Sample); more > 0 {
			some += fmt.Sprintf(" and %s", status.Count(more, "other cluster"))
		}
		namespace, name, _ := strings.Cut(h.Set, "/")
		rows = append(rows, page.Row{Cells: []string{namespace, name, strconv.Itoa(int(h.Clusters)), since, excerpt.Line(some)}})
	}
	return rows
}
