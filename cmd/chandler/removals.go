// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/course"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/status"
)

func removalsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "removals",
		Short: "List and approve held removals",
		Example: `  chandler removals list
  chandler removals approve cert-manager`,
	}
	return group(cmd, removalsApproveCommand(), removalsListCommand())
}

func removalsListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [SET]",
		Short: "List sets with held removals, or the removals of a set",
		Long: `Lists the sets with held removals. With SET it lists each add-on that would leave a cluster or be
reinstalled.`,
		Example: `  chandler removals list
  chandler removals list cert-manager -n flux-system`,
		Args: cobra.MaximumNArgs(1),
	}
	o := newRollout(cmd)
	o.addHub(cmd)
	o.addAll(cmd)
	var format output
	format.addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.oneOrAll(cmd); err != nil {
			return err
		}
		if len(args) == 0 {
			return o.listHeld(cmd, format)
		}
		in, err := o.held(cmd, args[0])
		if err != nil {
			return err
		}
		if !format.isText() {
			return format.write(cmd.OutOrStdout(), items[course.HeldSet]{[]course.HeldSet{course.HeldDocument(in)}})
		}
		return course.HeldPage(in).Flush(cmd.OutOrStdout())
	}
	return cmd
}

func removalsApproveCommand() *cobra.Command {
	var yes bool
	var hash string
	cmd := &cobra.Command{
		Use:   "approve SET",
		Short: "Approve held removals of a set",
		Long: `Shows the held removals of a set, asks, and approves them (sets annotation chandler.dev/approve-removal to
their hash). If other removals are held by then, nothing is approved. Without a terminal it needs --yes.`,
		Example: `  chandler removals approve cert-manager
  chandler removals approve flux-system/cert-manager --hash 9f86d081884c7d65 --yes`,
		Args: oneName("set"),
	}
	o := newRollout(cmd)
	o.addHub(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "skip the confirmation prompt")
	cmd.Flags().StringVar(&hash, "hash", "", "approve only if the held removals have this hash")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in, err := o.held(cmd, args[0])
		if err != nil {
			return err
		}
		if err := course.HeldPage(in).Flush(cmd.OutOrStdout()); err != nil {
			return err
		}
		if hash == "" {
			if hash, err = course.MayApprove(in); err != nil {
				return err
			}
		}
		if err := agreed(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), yes); err != nil {
			return err
		}
		name := in.Set.Namespace + "/" + in.Set.Name
		return o.order(cmd, name, false, func(in *course.Input) (*course.Order, error) { return course.ApproveRemovals(in, hash) })
	}
	return cmd
}

// held reads what a set's guard may hold.
func (o *rolloutOptions) held(cmd *cobra.Command, name string) (*course.Input, error) {
	in, err := o.find(cmd.Context(), name)
	if err != nil || in.Set.Status.HeldRemovals == nil {
		return in, err
	}
	if err := o.reader.Ask(cmd.Context(), o.hubNamespace, cmd.Flags()); err != nil {
		return nil, err
	}
	return in, read(cmd.Context(), in, o.reader.Deliveries, o.reader.Clusters)
}

// listHeld lists the sets whose guard holds something.
func (o *rolloutOptions) listHeld(cmd *cobra.Command, format output) error {
	if err := o.connect(cmd.Context()); err != nil {
		return err
	}
	q := &live.Query{Client: o.client, Kinds: "AddonSets", Namespace: *o.flags.Namespace,
		List: func() client.ObjectList { return &hubv1.AddonSetList{} }}
	held := []course.HeldSet{}
	_, err := q.Pages(cmd.Context(), func(objects []client.Object) error {
		for _, object := range objects {
			set, ok := object.(*hubv1.AddonSet)
			if !ok {
				return errors.New("the API server listed something else than AddonSets")
			}
			if set.Status.HeldRemovals != nil {
				held = append(held, course.HeldOf(set))
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !format.isText():
		return format.write(cmd.OutOrStdout(), items[course.HeldSet]{held})
	case len(held) == 0:
		sayLine(cmd.ErrOrStderr(), "No held removals found.")
		return nil
	}
	list := &page.List{Columns: []page.Column{{Name: "Namespace"}, {Name: "Set"}, {Name: "Clusters"}, {Name: "Since"}, {Name: "Would lose"}}}
	return list.Write(cmd.OutOrStdout(), heldRows(held))
}

func heldRows(held []course.HeldSet) (rows []page.Row) {
	for _, h := range held {
		since := "-"
		if h.Since != nil {
			since = page.Since(&h.Since.Time, now())
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
