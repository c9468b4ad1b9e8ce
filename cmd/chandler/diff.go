// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/status"
)

// diffOptions are the flags of `chandler diff`.
type diffOptions struct {
	renderOptions
	hubOptions
	chartOptions
	against, revisions, fleetFiles []string
	output                         output
	maxLength                      int
	all, prune                     bool
	// asked is the hub, if it is asked.
	asked *live.Fleet
}

// exit ends the program with a code of its own; without an error it says nothing.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// The exit codes of `chandler diff`, which are those of diff.
const (
	differ    = 1
	uncertain = 2
)

func diffCommand() *cobra.Command {
	o := &diffOptions{}
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
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.stdin, o.stdout, o.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			o.preview.Now = time.Now()
			err := o.run(cmd)
			var code *exit
			if err != nil && !errors.As(err, &code) {
				err = &exit{uncertain, err}
			}
			return err
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exit{uncertain, err} })
	f := cmd.Flags()
	addFiles(f, &o.files)
	f.StringArrayVar(&o.against, "against", nil, "what to compare with: files, folders, or a Git revision (default: the hub)")
	f.StringArrayVar(&o.fleetFiles, "fleet", nil, "clusters of both sides: a file of chandler export fleet, or files; may be repeated")
	f.StringArrayVar(&o.revisions, "revision", nil, "compare two revisions of a set on the hub: the old one first")
	f.StringVar(&o.crds, "crds", "", crdsUsage)
	f.BoolVar(&o.prune, "prune", false, "AddonSets and Teams that are on the hub and not in the files count as removed")
	o.output.addOutput(cmd, "markdown")
	f.IntVar(&o.maxLength, "max-length", 0, "longest Markdown to write, in bytes; 0 is without a limit")
	f.BoolVar(&o.all, "full", false, "show every group, change and value in full")
	o.addCharts(f)
	o.add(cmd)
	o.addShared(cmd)
	return cmd
}

func (o *diffOptions) run(cmd *cobra.Command) error {
	var err error
	if o.preview.Schemas, err = readCRDs(o.crds); err != nil {
		return err
	}
	in, err := o.input(cmd)
	if err != nil {
		return err
	}
	r, err := o.compare(cmd.Context(), in)
	if err != nil {
		return err
	}
	return o.show(r)
}

// compare compares both sides, with the objects of the clusters if somebody asks for them.
func (o *diffOptions) compare(ctx context.Context, in *diff.Input) (*diff.Result, error) {
	var makers *diff.Makers
	outer := ctx // without --timeout: what is left then is not compared, and the rest is shown
	if o.charts || o.live {
		done, err := o.prepareCharts(ctx, o.against)
		if done != nil {
			defer done()
		}
		if err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		ctx, cancel = limited(ctx, o.timeout)
		defer cancel()
		makers = o.makers(ctx, in)
	}
	if o.charts {
		in.Charts = makers
	}
	r, err := unlessEnded(outer, func() (*diff.Result, error) { return diff.Compute(in), nil })
	if err != nil {
		return nil, err
	}
	if o.live {
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
func (o *diffOptions) input(cmd *cobra.Command) (*diff.Input, error) {
	if err := o.useless(cmd); err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	if err := checkFiles(namedFiles{"-f", o.files}, namedFiles{"--against", o.against}, namedFiles{"--fleet", o.fleetFiles}); err != nil {
		return nil, err
	}
	switch n := len(o.revisions); {
	case len(o.clusters) > 0 && !o.live:
		return nil, errors.New("diff: --cluster says where --live tries it: write --live too")
	case len(o.sources)+len(o.oldOnes) > 0 && !o.live && !o.charts:
		return nil, errors.New("diff: --local-sources is for --charts and --live: write one of them too")
	case n > 0 && (n != 2 || len(o.files)+len(o.against)+len(o.fleetFiles) > 0):
		return nil, errors.New("diff: write two revisions and no files: --revision OLD --revision NEW")
	case n == 2:
		return o.betweenRevisions(cmd)
	case len(o.files) == 0:
		return nil, errors.New("diff: write what is new: -f FILE|DIR")
	case len(o.against) == 0 && len(o.fleetFiles) > 0:
		return nil, errors.New("diff: an export of a fleet has no sets: write --against DIR|REVISION too")
	case len(o.against) == 0:
		return o.againstHub(cmd)
	}
	return o.againstFiles(cmd)
}

// useless refuses flags that would do nothing, or something else than they say.
func (o *diffOptions) useless(cmd *cobra.Command) error {
	written := cmd.Flags().Changed
	switch {
	case !o.charts && !o.live && written("auth-file"):
		return errors.New("--auth-file is for what --charts and --live fetch: write one of them too")
	case !o.charts && !o.live && written("timeout"):
		return errors.New("--timeout is for what --charts and --live fetch: write one of them too")
	case written("max-length") && o.output != "markdown":
		return errors.New("--max-length is for Markdown: write --output markdown too")
	case o.maxLength < 0 || o.maxLength > 0 && o.maxLength < diff.LeastLength:
		return fmt.Errorf("--max-length is %d: write at least %d, or 0 for no limit", o.maxLength, diff.LeastLength)
	case o.prune && len(o.against)+len(o.revisions) > 0:
		return errors.New("--prune is for files against the live hub: leave it out, or leave out what is compared with")
	}
	return nil
}

// againstFiles compares files with files.
func (o *diffOptions) againstFiles(cmd *cobra.Command) (*diff.Input, error) {
	in := &diff.Input{From: names(o.against), To: names(o.files)}
	files, err := o.read(cmd.Context())
	if err != nil {
		return nil, err
	}
	next := o.objects(files)
	o.booleans(files)
	if o.errors > 0 { // what cannot be read would look as if it were gone
		return nil, fmt.Errorf("%w in what is new: nothing is compared", o.result())
	}
	// The new files say first which flags the hub has: it is one hub that does what changes.
	if err := adopt(cmd.Flags(), o.hubOptions.hubNamespace, next); err != nil {
		return nil, err
	}
	known, err := o.known(cmd, in)
	if err != nil {
		return nil, err
	}
	old, err := o.oldFiles(cmd.Context())
	if err != nil {
		return nil, err
	}
	for _, objects := range [][]preview.Object{known, old} {
		if err := adopt(cmd.Flags(), o.hubOptions.hubNamespace, objects); err != nil {
			return nil, err
		}
	}
	if err := o.reader.Hub.Complete(o.hubOptions.hubNamespace); err != nil {
		return nil, err
	}
	o.preview.Shared = o.reader.Hub
	in.Options = o.preview
	next, old = whole(next, known), whole(old, known)
	if in.After, err = preview.NewFleet(next, o.preview.Origins); err == nil && !in.After.HasClusters() {
		in.After, err = preview.NewFleet(preview.Complete(next, old, preview.IsCluster), o.preview.Origins)
	}
	if err != nil {
		return nil, err
	}
	in.Before, err = preview.NewFleet(old, o.preview.Origins)
	o.fail(err)
	return in, nil
}

// show writes the result, and ends with the exit code.
func (o *diffOptions) show(r *diff.Result) error {
	var err error
	switch o.output {
	case "json":
		err = diff.JSON(o.stdout, r)
	case "yaml":
		err = diff.YAML(o.stdout, r)
	case "markdown":
		err = diff.Markdown(o.stdout, r, o.maxLength)
	default:
		if !r.Quiet() {
			err = diff.Text(o.stdout, r, diff.TextOptions{All: o.all, Colour: coloured(o.stdout)})
		}
	}
	for _, u := range r.Unseen {
		sayLine(o.stderr, "note: %s as before, not looked into: %s", status.Count(u.Objects, "Flux object"), u.Reason)
	}
	switch {
	case err != nil:
		return err
	case o.errors > 0:
		return &exit{uncertain, o.result()}
	case r.Fleet.Clusters == 0:
		return errors.New("there is no cluster on either side, so nothing is compared: write ClusterRegistrations by -f, or an " +
			"export by --fleet")
	case len(r.Problems) > 0:
		return &exit{uncertain, errors.New("not everything could be compared")}
	case !r.Equal():
		return &exit{code: differ}
	}
	sayLine(o.stderr, "no changes on %s", status.Count(r.Fleet.Clusters, "cluster"))
	return nil
}
