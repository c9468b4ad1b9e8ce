// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

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

func versionCommand() *cobra.Command {
	o := &hubOptions{}
	var format output
	var clientOnly bool
	var fluxNamespace string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of this command line, the hub and Flux",
		Long: `Shows the version of this command line and, as far as the management cluster answers and you may read the
Deployments there, those of the hub and of Flux. What is not known is said on stderr, and is no failure.`,
		Example: `  chandler version
  chandler version --client
  chandler version -o json`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{Client: version.Get()}
			if !clientOnly {
				if err := o.versions(cmd.Context(), &v, fluxNamespace); err != nil {
					v.Unknown = err.Error()
					sayLine(cmd.ErrOrStderr(), "the versions of the hub and Flux are not known: %v", err)
				}
			}
			if !format.isText() {
				return format.write(cmd.OutOrStdout(), v)
			}
			return v.print(visible{cmd.OutOrStdout()})
		},
	}
	o.add(cmd)
	addHubNamespace(cmd.Flags(), &o.hubNamespace)
	f := cmd.Flags()
	f.Lookup("namespace").Hidden = true
	f.BoolVar(&clientOnly, "client", false, "only the version of this command line")
	f.StringVar(&fluxNamespace, "flux-namespace", "flux-system", "namespace of Flux")
	format.addOutput(cmd)
	return cmd
}

// versions asks the management cluster.
func (o *hubOptions) versions(ctx context.Context, v *versions, fluxNamespace string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, versionPatience, errors.New("the management cluster does not answer in time"))
	defer cancel()
	if err := o.connect(ctx); err != nil {
		return err
	}
	found, err := o.reader.Versions(ctx, o.hubNamespace, fluxNamespace)
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
