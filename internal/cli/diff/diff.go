// SPDX-License-Identifier: Apache-2.0

// Package diff is `chandler diff`.
package diff

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/fleet"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/input"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/status"
)

// Options are the flags of `chandler diff`.
type Options struct {
	input.Files
	hub.Connection
	terminal.Streams
	chartOptions
	Against, Revisions, FleetFiles []string
	CRDs                           string
	Output                         command.Format
	MaxLength                      int
	Full, Prune                    bool
	// asked is the hub, if it is asked.
	asked *fleet.Fleet
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "diff -f NEW [--against OLD|REVISION] [--fleet EXPORT]",
		Short: "Preview what a change would do to every cluster",
		Long: `Compares the fleet as it is with the fleet that the files would make, and shows what would change on each
cluster, grouped by equal change: what comes and goes, what Flux would reinstall, which set wins, what the removal guard
would hold, and in which waves it would happen. Each changed field has its origin. Secret values are never read.

By default it compares with the hub. --against compares with files, or with a Git revision of the same files. --fleet takes
the clusters from an export. Two --revision compare two revisions of a set.

--charts also compares the objects that Helm and Kustomize make of it. It fetches charts and folders as Flux would, and
renders them in a process of its own. --live also tries the change on one cluster of each group, by a server-side dry run.`,
		Example: `  chandler diff -f fleet/ --against main
  chandler diff -f addons/ --against main --fleet fleet.yaml -o markdown --max-length 60000
  chandler diff -f addons/
  chandler diff -f fleet/ --against main --charts --local-sources GitRepository/flux-system/fleet=.
  chandler diff -f addons/ --live --cluster tenant1,tenant2`,
		Args: command.OnlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Streams = terminal.Of(cmd)
			o.Stdin, o.Stderr, o.Preview.Now = o.In, o.ErrOut, from.Now()
			err := command.Run(cmd.Context(), o, run, o.run)
			var code *exit.Error
			if err != nil && !errors.As(err, &code) {
				err = exit.Wrong(err)
			}
			return err
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit.Wrong(err) })
	f := cmd.Flags()
	input.AddFlag(f, &o.Names)
	f.StringArrayVar(&o.Against, "against", nil, "what to compare with: files, folders, or a Git revision (default: the hub)")
	f.StringArrayVar(&o.FleetFiles, "fleet", nil, "clusters of both sides: a file of chandler export fleet, or files; may be repeated")
	f.StringArrayVar(&o.Revisions, "revision", nil, "compare two revisions of a set on the hub: the old one first")
	f.StringVar(&o.CRDs, "crds", "", input.CRDsUsage)
	f.BoolVar(&o.Prune, "prune", false, "AddonSets and Teams that are on the hub and not in the files count as removed")
	o.Output.AddFlag(cmd, "markdown")
	f.IntVar(&o.MaxLength, "max-length", 0, "longest Markdown to write, in bytes; 0 is without a limit")
	f.BoolVar(&o.Full, "full", false, "show every group, change and value in full")
	o.addCharts(f)
	o.AddFlags(cmd, from)
	o.AddShared(cmd)
	exit.Means(cmd, "nothing would change", "something would change")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	var err error
	if o.Preview.Schemas, err = input.ReadCRDs(o.CRDs); err != nil {
		return err
	}
	in, err := o.input(ctx)
	if err != nil {
		return err
	}
	r, err := o.compare(ctx, in)
	if err != nil {
		return err
	}
	return o.show(r)
}

// compare compares both sides, with the objects of the clusters if --charts or --live asks for them.
func (o *Options) compare(ctx context.Context, in *diff.Input) (*diff.Result, error) {
	var makers *diff.Makers
	outer := ctx // without --timeout: what is left then is not compared, and the rest is shown
	if o.Charts || o.Live {
		done, err := o.prepareCharts(ctx, o.Against)
		if done != nil {
			defer done()
		}
		if err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		ctx, cancel = command.Limited(ctx, o.Timeout)
		defer cancel()
		makers = o.store.Makers(ctx, in, o.oldLocal, o.newLocal)
	}
	if o.Charts {
		in.Charts = makers
	}
	r, err := input.UnlessEnded(outer, func() (*diff.Result, error) { return diff.Compute(in), nil })
	if err != nil {
		return nil, err
	}
	if o.Live {
		if err := o.try(ctx, r, makers); err != nil {
			return nil, err
		}
	}
	if o.asked != nil { // it has read what sets refer to meanwhile
		r.Notes = append(r.Notes, o.asked.Notes...)
	}
	return r, nil
}

// input reads both sides.
func (o *Options) input(ctx context.Context) (*diff.Input, error) {
	if err := o.useless(); err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	err := input.Check(input.Flag{Name: "-f", Files: o.Names}, input.Flag{Name: "--against", Files: o.Against},
		input.Flag{Name: "--fleet", Files: o.FleetFiles})
	if err != nil {
		return nil, err
	}
	switch n := len(o.Revisions); {
	case len(o.Clusters) > 0 && !o.Live:
		return nil, errors.New("diff: --cluster says where --live tries it: write --live too")
	case len(o.LocalSources)+len(o.AgainstLocalSources) > 0 && !o.Live && !o.Charts:
		return nil, errors.New("diff: --local-sources is for --charts and --live: write one of them too")
	case n > 0 && (n != 2 || len(o.Names)+len(o.Against)+len(o.FleetFiles) > 0):
		return nil, errors.New("diff: write two revisions and no files: --revision OLD --revision NEW")
	case n == 2:
		return o.betweenRevisions(ctx)
	case len(o.Names) == 0:
		return nil, errors.New("diff: write what is new: -f FILE|DIR")
	case len(o.Against) == 0 && len(o.FleetFiles) > 0:
		return nil, errors.New("diff: an export of a fleet has no sets: write --against DIR|REVISION too")
	case len(o.Against) == 0:
		return o.againstHub(ctx)
	}
	return o.againstFiles(ctx)
}

// useless refuses flags that would do nothing, or something else than they say.
func (o *Options) useless() error {
	written := o.Written.Changed
	switch {
	case !o.Charts && !o.Live && written("auth-file"):
		return errors.New("--auth-file is for what --charts and --live fetch: write one of them too")
	case !o.Charts && !o.Live && written("timeout"):
		return errors.New("--timeout is for what --charts and --live fetch: write one of them too")
	case written("max-length") && o.Output != "markdown":
		return errors.New("--max-length is for Markdown: write --output markdown too")
	case o.MaxLength < 0 || o.MaxLength > 0 && o.MaxLength < diff.LeastLength:
		return fmt.Errorf("--max-length is %d: write at least %d, or 0 for no limit", o.MaxLength, diff.LeastLength)
	case o.Prune && len(o.Against)+len(o.Revisions) > 0:
		return errors.New("--prune is for files against the live hub: leave it out, or leave out what is compared with")
	}
	return nil
}

// againstFiles compares files with files.
func (o *Options) againstFiles(ctx context.Context) (*diff.Input, error) {
	in := &diff.Input{From: strings.Join(o.Against, ", "), To: strings.Join(o.Names, ", ")}
	next, err := o.newFiles(ctx)
	if err != nil {
		return nil, err
	}
	// The new files say first which flags the hub has: it is one hub that does what changes.
	if err := input.Adopt(o.Written, o.HubNamespace, next); err != nil {
		return nil, err
	}
	known, err := o.known(ctx, in)
	if err != nil {
		return nil, err
	}
	old, err := o.oldFiles(ctx)
	if err != nil {
		return nil, err
	}
	for _, objects := range [][]preview.Object{known, old} {
		if err := input.Adopt(o.Written, o.HubNamespace, objects); err != nil {
			return nil, err
		}
	}
	if err := o.Reader.Hub.Complete(o.HubNamespace); err != nil {
		return nil, err
	}
	o.Preview.Shared = o.Reader.Hub
	in.Options = o.Preview
	next, old = whole(next, known), whole(old, known)
	if in.After, err = preview.NewFleet(next, o.Preview.Origins); err == nil && !in.After.HasClusters() {
		in.After, err = preview.NewFleet(preview.Complete(next, old, preview.IsCluster), o.Preview.Origins)
	}
	if err != nil {
		return nil, err
	}
	in.Before, err = preview.NewFleet(old, o.Preview.Origins)
	o.Fail(err)
	return in, nil
}

// show writes the result, and ends with the exit code.
func (o *Options) show(r *diff.Result) error {
	var err error
	switch o.Output {
	case "json":
		err = diff.JSON(o.Out, r)
	case "yaml":
		err = diff.YAML(o.Out, r)
	case "markdown":
		err = diff.Markdown(o.Out, r, o.MaxLength)
	default:
		if !r.Quiet() {
			err = diff.Text(o.Out, r, diff.TextOptions{All: o.Full, Colour: terminal.Coloured(o.Out)})
		}
	}
	for _, u := range r.Unseen {
		terminal.Say(o.ErrOut, "note: %s as before, not looked into: %s", status.Count(u.Objects, "Flux object"), u.Reason)
	}
	switch {
	case err != nil:
		return err
	case o.Errors > 0:
		return exit.Wrong(o.Result())
	case r.Fleet.Clusters == 0:
		return errors.New("there is no cluster on either side, so nothing is compared: write ClusterRegistrations by -f, or an " +
			"export by --fleet")
	case len(r.Problems) > 0:
		return exit.Wrong(errors.New("not everything could be compared"))
	case !r.Equal():
		return exit.Silent(exit.Failed)
	}
	if !o.Output.IsText() || r.Quiet() { // the text has it as its headline
		terminal.Say(o.ErrOut, "no changes on %s", status.Count(r.Fleet.Clusters, "cluster"))
	}
	return nil
}
