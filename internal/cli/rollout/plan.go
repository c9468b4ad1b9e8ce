// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/input"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

func planCommand(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan (SET | -f FILE [SET])",
		Short: "Show how the next revision would reach its clusters",
		Long: `Shows which clusters are in which wave, in which order, and which start first with the next revision. It
reads the hub or, with -f, files as chandler render does. In files every cluster counts as healthy, with an older revision.`,
		Example: `  chandler rollout plan cert-manager
  chandler rollout plan -f fleet/ -f addons/cert-manager.yaml`,
	}
	o := newOptions(cmd, from, run, plan)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 1 || len(args) == 0 && len(o.Files) == 0 {
			return errors.New("rollout plan: write the name of a set, or files: chandler rollout plan SET, or -f FILE")
		}
		return nil
	}
	o.AddShared(cmd) // how far sets reach, and, for files, which clusters the hub would register
	input.AddFlag(cmd.Flags(), &o.Files)
	o.Output.AddFlag(cmd)
	exit.Means(cmd, "", "no such set, or the files are wrong")
	return cmd
}

func plan(ctx context.Context, o *Options) error {
	if err := input.Check(input.Flag{Name: "-f", Files: o.Files}); err != nil {
		return err
	}
	if len(o.Files) > 0 {
		return o.planFiles(ctx)
	}
	in, err := o.Find(ctx, o.Args[0])
	if err != nil {
		return err
	}
	if err := o.Clusters(ctx, in); err != nil {
		return err
	}
	d, err := rolloutview.Plan(in)
	if err != nil {
		return err
	}
	return o.showPlans([]*rolloutview.PlanDocument{d})
}

// planFiles prints the plans of the sets of files. If there are errors it prints what it can, and returns how many there are.
func (o *Options) planFiles(ctx context.Context) error {
	name := ""
	if len(o.Args) > 0 {
		name = o.Args[0]
	}
	r := &input.Files{Names: o.Files, Stdin: o.In, Stderr: o.ErrOut}
	inputs, err := r.Read(ctx)
	if err != nil {
		return err
	}
	objects := r.Objects(inputs)
	if err := input.Adopt(o.Written, o.HubNamespace, objects); err != nil {
		return err
	}
	r.Preview.Shared = o.Reader.Hub
	if err := r.Preview.Complete(o.HubNamespace); err != nil {
		return err
	}
	r.Preview.Now = o.Now()
	sets, registrations, report := preview.Select(r.Fleet(objects), r.Preview)
	for _, text := range report.Errors {
		r.Fail(errors.New(text))
	}
	n, all := 0, []*rolloutview.PlanDocument{}
	for _, s := range sets {
		full := s.Set.Namespace + "/" + s.Set.Name
		if name != "" && name != full && name != s.Set.Name || *o.Flags.Namespace != "" && *o.Flags.Namespace != s.Set.Namespace {
			continue
		}
		n++
		d, err := rolloutview.PlanOfFiles(&rolloutview.Input{Set: s.Set, Reach: s.Reach, Registrations: registrations, Now: r.Preview.Now})
		if err != nil {
			r.Fail(fmt.Errorf("AddonSet %s: %w", full, err))
			continue
		}
		all = append(all, d)
	}
	if err := o.showPlans(all); err != nil {
		return err
	}
	if n == 0 && r.Errors == 0 {
		r.Fail(errors.New("there is no such AddonSet in the files"))
	}
	return r.Result()
}

// showPlans writes the plans of several sets.
func (o *Options) showPlans(plans []*rolloutview.PlanDocument) error {
	if !o.Output.IsText() {
		return o.Output.Write(o.Out, command.Items[*rolloutview.PlanDocument]{Items: plans})
	}
	for i, d := range plans {
		if i > 0 {
			fmt.Fprintln(o.Out)
		}
		if err := d.Page().Flush(o.Out); err != nil {
			return err
		}
	}
	return nil
}
