// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/live"
)

func doctorCommand() *cobra.Command {
	flags := kubectlFlags()
	flags.Namespace = nil // it looks at a whole hub
	var at live.Examination
	var format output
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the hub, Flux and the fleet, and say what to fix",
		Long: `Checks the hub, its Flux and its fleet, and says what is wrong and what to do. It only reads, and prints no
secrets. What you may not read is listed as not checked. docs/doctor.md explains every finding.`,
		Example: `  chandler doctor
  chandler doctor --context management -o json`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := reach(cmd.Context(), flags)
			if err != nil {
				return err
			}
			facts, err := live.Examine(cmd.Context(), config, at)
			if err != nil {
				return &exit{uncertain, err}
			}
			report := doctor.Examine(facts)
			if err := showReport(cmd.OutOrStdout(), report, format); err != nil {
				return &exit{uncertain, err}
			}
			if report.Errors > 0 {
				return &exit{failed, nil}
			}
			return nil
		},
	}
	f := cmd.Flags()
	flags.AddFlags(f)
	format.addOutput(cmd)
	addHubNamespace(f, &at.HubNamespace)
	f.StringVar(&at.FluxNamespace, "flux-namespace", "flux-system", "namespace of Flux")
	return cmd
}

func showReport(out io.Writer, report doctor.Report, format output) error {
	if format.isText() {
		return report.Page(coloured(out)).Flush(out)
	}
	return format.write(out, report)
}
