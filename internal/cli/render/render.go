// SPDX-License-Identifier: Apache-2.0

// Package render is `chandler render`.
package render

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/input"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/preview"
)

// Options are the flags of `chandler render`.
type Options struct {
	input.Files
	terminal.Streams
	CRDs string
	// HubNamespace is where the hub publishes its flags, and written are those of the command.
	HubNamespace string
	written      *pflag.FlagSet
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Render the Flux objects of a fleet from files",
		Long: `Reads AddonSets, ClusterRegistrations, origins (TenantControlPlanes, Cluster API Clusters, labelled
Secrets), ConfigMaps and Secrets from files, and prints every Flux object that the hub would make. It needs no cluster and
no network.

What only a running cluster knows (UID, version, endpoint, nodes) comes from the status of a ClusterRegistration in the
files. If a value needs what is not there, it gets a placeholder, and a warning says where to write it.`,
		Example: `  chandler render -f fleet/ --cluster tenant1 --explain
  kubectl get addonsets,clusterregistrations,configmaps -A -o yaml | chandler render -f -`,
		Args: command.OnlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Streams = terminal.Of(cmd)
			o.Stdin, o.Stderr, o.Preview.Now = o.In, o.ErrOut, from.Now()
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	f := cmd.Flags()
	input.AddFlag(f, &o.Names)
	f.StringVar(&o.Preview.Cluster, "cluster", "", "only this cluster, NAME or NAMESPACE/NAME")
	f.BoolVar(&o.Preview.Strict, "strict", false, "treat warnings as errors")
	f.BoolVar(&o.Preview.Explain, "explain", false, "show where each field and variable comes from")
	f.StringVar(&o.CRDs, "crds", "", input.CRDsUsage)
	o.Preview.AddFlags(f, hubconfig.DefaultNamespace)
	hub.AddNamespace(f, &o.HubNamespace)
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err)
	}
	o.written = f
	exit.Means(cmd, "everything is rendered", "something is wrong; the rest is printed")
	return cmd
}

// run prints everything that can be rendered, also if there are errors. Then it returns how many there are.
func (o *Options) run(ctx context.Context) error {
	if err := input.Check(input.Flag{Name: "-f", Files: o.Names}); err != nil {
		return err
	}
	files, err := o.Read(ctx)
	if err != nil {
		return err
	}
	objects := o.Objects(files)
	if err := input.Adopt(o.written, o.HubNamespace, objects); err != nil {
		return err
	}
	if err := o.Preview.Complete(o.HubNamespace); err != nil {
		return err
	}
	if o.Preview.Schemas, err = input.ReadCRDs(o.CRDs); err != nil {
		return err
	}
	fleet := o.Fleet(objects)
	o.Booleans(files)
	report := preview.Render(fleet, o.Preview)
	for _, text := range report.Errors {
		o.Fail(errors.New(text))
	}
	for _, text := range report.Warnings {
		terminal.Say(o.ErrOut, "warning: %s", text)
	}
	for _, text := range report.Notes {
		terminal.Say(o.ErrOut, "note: %s", text)
	}
	if err := preview.Print(o.Out, report, o.Preview.Explain); err != nil {
		return err
	}
	return o.Result()
}
