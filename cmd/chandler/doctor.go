// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/live"
)

func doctorCommand() *cobra.Command {
	flags := kubectlFlags()
	flags.Namespace = nil // it looks at a whole hub
	var at live.Examination
	var output string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the hub, Flux and the fleet, and say what to fix",
		Long: `Checks the hub, its Flux and its fleet, and says what is wrong and what to do. It only reads, and prints no
secrets. What you may not read is listed as not checked. docs/doctor.md explains every finding.`,
		Example: `  chandler doctor
  chandler doctor --context management -o json`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return &exit{uncertain, fmt.Errorf("doctor: --output is %q: write text or json", output)}
			}
			config, err := reach(cmd.Context(), flags)
			if err != nil {
				return err
			}
			facts, err := live.Examine(cmd.Context(), config, at)
			if err != nil {
				return &exit{uncertain, err}
			}
			report := doctor.Examine(facts)
			if err := showReport(cmd.OutOrStdout(), report, output); err != nil {
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
	f.StringVarP(&output, "output", "o", "text", "text or json")
	addHubNamespace(f, &at.HubNamespace)
	f.StringVar(&at.FluxNamespace, "flux-namespace", "flux-system", "namespace of Flux")
	return cmd
}

func showReport(out io.Writer, report doctor.Report, output string) error {
	if output == "text" {
		return report.Page(coloured(out)).Flush(out)
	}
	raw, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s\n", raw)
	return err
}
