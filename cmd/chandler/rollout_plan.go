// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/course"
	"github.com/chandler-hub/chandler/internal/preview"
)

func rolloutPlanCommand() *cobra.Command {
	var files []string
	var format output
	cmd := &cobra.Command{
		Use:   "plan (SET | -f FILE [SET])",
		Short: "Show how the next revision would reach its clusters",
		Long: `Shows which clusters are in which wave, in which order, and which start first with the next revision. It
reads the hub or, with -f, files as chandler render does. In files every cluster counts as healthy, with an older revision.`,
		Example: `  chandler rollout plan cert-manager
  chandler rollout plan -f fleet/ -f addons/cert-manager.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 0 && len(files) == 0 {
				return errors.New("rollout plan: write the name of a set, or files: chandler rollout plan SET, or -f FILE")
			}
			return nil
		},
	}
	o := newRollout(cmd)
	o.addHub(cmd)
	addFiles(cmd.Flags(), &files)
	format.addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkFiles(namedFiles{"-f", files}); err != nil {
			return err
		}
		if len(files) > 0 {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return o.planFiles(cmd, files, name, format)
		}
		in, err := o.find(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := o.clusters(cmd, in); err != nil {
			return err
		}
		d, err := course.Plan(in)
		if err != nil {
			return err
		}
		if !format.isText() {
			return format.write(cmd.OutOrStdout(), items[*course.PlanDocument]{[]*course.PlanDocument{d}})
		}
		return d.Page().Flush(cmd.OutOrStdout())
	}
	return cmd
}

// planFiles prints the plans of the sets of files. If there are errors it prints what it can, and returns how many there are.
func (o *rolloutOptions) planFiles(cmd *cobra.Command, files []string, name string, format output) error {
	r := &renderOptions{files: files, stdin: cmd.InOrStdin(), stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
	inputs, err := r.read(cmd.Context())
	if err != nil {
		return err
	}
	objects := r.objects(inputs)
	if err := adopt(cmd.Flags(), o.hubNamespace, objects); err != nil {
		return err
	}
	r.preview.Shared = o.reader.Hub
	if err := r.preview.Complete(o.hubNamespace); err != nil {
		return err
	}
	r.preview.Now = time.Now()
	sets, registrations, report := preview.Select(r.fleet(objects), r.preview)
	for _, text := range report.Errors {
		r.fail(errors.New(text))
	}
	n, all := 0, []*course.PlanDocument{}
	for _, s := range sets {
		full := s.Set.Namespace + "/" + s.Set.Name
		if name != "" && name != full && name != s.Set.Name || *o.flags.Namespace != "" && *o.flags.Namespace != s.Set.Namespace {
			continue
		}
		n++
		d, err := course.PlanOfFiles(&course.Input{Set: s.Set, Reach: s.Reach, Registrations: registrations, Now: r.preview.Now})
		if err != nil {
			r.fail(fmt.Errorf("AddonSet %s: %w", full, err))
			continue
		}
		all = append(all, d)
	}
	if err := showPlans(r.stdout, all, format); err != nil {
		return err
	}
	if n == 0 && r.errors == 0 {
		r.fail(errors.New("there is no such AddonSet in the files"))
	}
	return r.result()
}

// showPlans writes the plans of several sets.
func showPlans(out io.Writer, plans []*course.PlanDocument, format output) error {
	if !format.isText() {
		return format.write(out, items[*course.PlanDocument]{plans})
	}
	for i, d := range plans {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := d.Page().Flush(out); err != nil {
			return err
		}
	}
	return nil
}
