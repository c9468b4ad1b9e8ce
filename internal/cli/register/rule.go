// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/page"
)

// ofCluster are the flags that are about the one cluster that register registers.
var ofCluster = []string{
	"labels", "role", "address", "token-ttl", "export", "wait", "cluster-kubeconfig", "cluster-context", "yes", "timeout",
}

// check says which arguments and flags do not go together.
func (o *Options) check(cmd *cobra.Command, args []string) error {
	switch dry := o.DryRun == "server"; {
	case !dry && o.DryRun != "none":
		return fmt.Errorf("register: --dry-run is %q: write none or server", o.DryRun)
	case o.Rule == "" && dry:
		return errors.New("register: --dry-run goes with --rule FILE; without it, the command shows what it will do and asks")
	case o.Rule == "" && len(args) != 1:
		return errors.New("register: write the name that the cluster gets: chandler register NAME --cluster-kubeconfig FILE")
	case o.Rule == "":
		return nil
	case len(args) > 0:
		return errors.New("register: --rule says itself which name each cluster gets: leave out NAME")
	case !dry:
		return errors.New("register: the hub registers by rules, and this command only tries them: write --dry-run, and give the hub the file " +
			"by --registration-rules (docs/sources.md#by-rule)")
	}
	for _, name := range ofCluster {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("register: --%s is about one cluster, and not about --rule: leave it out", name)
		}
	}
	return nil
}

var ruledColumns = []page.Column{{Name: "Namespace"}, {Name: "Name"}, {Name: "Kind"}, {Name: "Rule"}, {Name: "Result"}}

// try prints what would become of all that the rules of a file match.
func (o *Options) try(ctx context.Context) error {
	raw, err := os.ReadFile(o.Rule)
	if err != nil {
		return exit.Wrong(fmt.Errorf("register: --rule: %w", err))
	}
	rules, err := origin.ParseRules(o.Rule, raw)
	if err != nil {
		return exit.Wrong(err)
	}
	if err := o.Ask(ctx); err != nil {
		return exit.Decide(err)
	}
	checks, unknown, err := o.Reader.Rules(ctx, o.HubNamespace)
	if err != nil {
		return exit.Decide(err)
	}
	t := &trial{Reader: &o.Reader, policy: o.Reader.Hub.Origins, checks: checks, namespace: *o.Flags.Namespace}
	t.policy.Rules = rules
	if unknown != "" {
		t.notes = append(t.notes, "kubeconfigs are checked as by a hub without flags: "+unknown)
	}
	found, err := t.run(ctx)
	for _, note := range t.notes {
		terminal.Say(o.ErrOut, "Note: %s", note)
	}
	if err != nil {
		return exit.Decide(err)
	}
	if len(found) == 0 {
		terminal.Say(o.ErrOut, "The rules match nothing here.")
		return nil
	}
	list := &page.List{Columns: ruledColumns, Colour: terminal.Coloured(o.Out)}
	rows := make([]page.Row, len(found))
	for i, one := range found {
		rows[i] = page.Row{Cells: []string{one.namespace, one.name, one.kind, one.rule, one.result}, State: len(ruledColumns) - 1}
		if !one.registers {
			rows[i].Tone = page.Unsettled
		}
	}
	return list.Write(o.Out, rows)
}
