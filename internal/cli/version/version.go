// SPDX-License-Identifier: Apache-2.0

// Package version is `chandler version`.
package version

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/manifests"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/version"
)

// Document is what `chandler version -o json` writes.
type Document struct {
	Client version.Info `json:"client" about:"this command line"`
	Versions
	Unknown string `json:"unknown,omitempty" about:"why the versions of the hub and Flux are not known"`
}

// versionPatience is how long the command waits for the hub: most users want the version of the command line, which needs no hub.
const versionPatience = 5 * time.Second

// Options are the flags of `chandler version`.
type Options struct {
	hub.Connection
	terminal.Streams
	ClientOnly    bool
	FluxNamespace string
	Output        command.Format
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
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
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	o.AddFlags(cmd, from)
	f := cmd.Flags()
	hub.AddNamespace(f, &o.HubNamespace)
	f.Lookup("namespace").Hidden = true
	f.BoolVar(&o.ClientOnly, "client", false, "only the version of this command line")
	f.StringVar(&o.FluxNamespace, "flux-namespace", manifests.FluxNamespace, "namespace of Flux")
	o.Output.AddFlag(cmd)
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	v := Document{Client: version.Get()}
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
func (o *Options) ask(ctx context.Context, v *Document) error {
	ctx, cancel := context.WithTimeoutCause(ctx, versionPatience, errors.New("the management cluster does not answer in time"))
	defer cancel()
	if err := o.Connect(ctx); err != nil {
		return err
	}
	found, err := o.versions(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	v.Versions = found
	if err == nil {
		o.sayMissing(v)
	}
	return err
}

// sayMissing says which versions are not known, since nothing that has them runs on the management cluster.
func (o *Options) sayMissing(v *Document) {
	var missing []string
	add := func(whose string, l label, namespace, flag string) {
		missing = append(missing, fmt.Sprintf("the version of %s is not known: there is no Deployment with label %s=%s in namespace %s (%s)",
			whose, l.key, l.value, namespace, flag))
	}
	if v.Hub == "" {
		add("the hub", hubLabel, o.HubNamespace, "--hub-namespace")
	}
	if len(v.Flux) == 0 {
		add("Flux", fluxLabel, o.FluxNamespace, "--flux-namespace")
	}
	for _, m := range missing {
		terminal.Say(o.ErrOut, "%s", m)
	}
	v.Unknown = strings.Join(missing, status.Separator)
}

func (v *Document) print(out io.Writer) error {
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
