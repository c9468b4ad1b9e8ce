// SPDX-License-Identifier: Apache-2.0

// Package completion is `chandler completion`.
package completion

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// shells are those whose completion is known, each with what writes it.
var shells = map[string]func(root *cobra.Command, out io.Writer, described bool) error{
	"bash": func(root *cobra.Command, out io.Writer, described bool) error {
		return root.GenBashCompletionV2(out, described)
	},
	"fish": func(root *cobra.Command, out io.Writer, described bool) error {
		return root.GenFishCompletion(out, described)
	},
	"powershell": func(root *cobra.Command, out io.Writer, described bool) error {
		if described {
			return root.GenPowerShellCompletionWithDesc(out)
		}
		return root.GenPowerShellCompletion(out)
	},
	"zsh": func(root *cobra.Command, out io.Writer, described bool) error {
		if described {
			return root.GenZshCompletion(out)
		}
		return root.GenZshCompletionNoDesc(out)
	},
}

// New returns the command.
func New() *cobra.Command {
	var bare bool
	cmd := &cobra.Command{
		Use:   "completion (bash | zsh | fish | powershell)",
		Short: "Generate a shell completion script",
		Long: `Prints a script that completes commands, flags, and the names of clusters, sets, add-ons and waves. If the
hub does not answer within 3 seconds, names are not completed. bash needs the package bash-completion.`,
		Example: `  source <(chandler completion bash)
  chandler completion zsh > "${fpath[1]}/_chandler"
  chandler completion fish > ~/.config/fish/completions/chandler.fish`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return fmt.Errorf("completion: write the name of a shell: chandler completion bash, zsh, fish or powershell")
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions([]cobra.Completion{"bash", "fish", "powershell", "zsh"}, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			return shells[args[0]](cmd.Root(), cmd.OutOrStdout(), !bare)
		},
	}
	cmd.Flags().BoolVar(&bare, "no-descriptions", false, "leave out descriptions")
	return cmd
}
