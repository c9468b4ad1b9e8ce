// SPDX-License-Identifier: Apache-2.0

package exit

import (
	"cmp"

	"github.com/spf13/cobra"
)

// The annotations of a command that say when it ends with 0 and with 1. The exit code 2 is the same for all.
const (
	doneKey   = "chandler.dev/exit-done"
	failedKey = "chandler.dev/exit-failed"
)

// Means says when a command, and those below it that say nothing else, ends with 0 and with 1. An empty text is the common one.
func Means(cmd *cobra.Command, done, failed string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[doneKey], cmd.Annotations[failedKey] = done, failed
}

// Meanings returns what the exit codes of a command mean, beginning with 0; nil for a command that is only there for those below it.
func Meanings(cmd *cobra.Command) []string {
	if !cmd.Runnable() || cmd.HasAvailableSubCommands() {
		return nil
	}
	done, failed := "", ""
	for c := cmd; c != nil; c = c.Parent() {
		if text, known := c.Annotations[failedKey]; known {
			done, failed = c.Annotations[doneKey], text
			break
		}
	}
	return []string{cmp.Or(done, "success"), cmp.Or(failed, "failure"), "wrong usage, the hub is unreachable, or you lack permission"}
}
