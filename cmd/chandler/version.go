// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/version"
)

// versions is what `chandler version -o json` writes.
type versions struct {
	Client version.Info `json:"client" about:"this command line"`
	live.Versions
	Unknown string `json:"unknown,omitempty" about:"why the versions of the hub and Flux are not known"`
}

// versionPatience is how long the command waits for the hub: most users want the version of the command line, which needs no hub.
const versionPatience = 5 * time.Second

// versionOptions are the flags of `chandler version`.
type versionOptions struct {
	hub.Connection
	terminal.Streams
	ClientOnly    bool
	FluxNamespace string
	Output        command.Format
}

func versionCommand(from *factory.Factory, run func(context.Context, *versionOptions) error) *cobra.Command {
	o := &versionOptions{}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of this command line, the hub and Flux",
		Long: `Shows the version of this command line and, as far as the management cluster answers and you may read the
Deployments there, those of the hub and of Flux. What is not known is said on stderr, and is no failure.`,
		Example: `  chandler version
  chandler version --client
  chandler version -o json`,
		Args: command.OnlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Streams = terminal.Of(cmd)
			if run != nil {
				return run(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	o.AddFlags(cmd, from)
	f := cmd.Flags()
	hub.AddNamespace(f, &o.HubNamespace)
	f.Lookup("namespace").Hidden = true
	f.BoolVar(&o.ClientOnly, "client", false, "only the version of this command line")
	f.StringVar(&o.FluxNamespace, "flux-namespace", "flux-system", "namespace of Flux")
	o.Output.AddFlag(cmd)
	return cmd
}

func (o *versionOptions) run(ctx context.Context) error {
	v := versions{Client: version.Get()}
	if !o.ClientOnly {
		if err := o.ask(ctx, &v); err != nil {
			v.Unknown = err.Error()
			terminal.Say(o.ErrOut, "the versions of the hub and Flux are not known: %v", err)
		}
	}
	if !o.Output.IsText() {
		return o.Output.Write(o.Out, v)
	}
	return v.print(terminal.Visible(o.Out))
}

// ask asks the management cluster.
func (o *versionOptions) ask(ctx context.Context, v *versions) error {
	ctx, cancel := context.WithTimeoutCause(ctx, versionPatience, errors.New("the management cluster does not answer in time"))
	defer cancel()
	if err := o.Connect(ctx); err != nil {
		return err
	}
	found, err := o.Reader.Versions(ctx, o.HubNamespace, o.FluxNamespace)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	v.Versions = found
	return err
}

func (v *versions) print(out io.Writer) error {
	fmt.Fprintln(out, "chandler", v.Client)
	if v.Hub != "" {
		fmt.Fprintln(out, "hub", v.Hub)
	}
	var flux []string
	for _, c := range v.Flux {
		flux = append(flux, c.Name+" "+c.Version)
	}
	if len(flux) > 0 {
		fmt.Fprintln(out, "flux", strings.Join(flux, ", "))
	}
	return nil
}
