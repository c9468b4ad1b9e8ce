// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/listing"
)

// Format is the format in which a command writes: text for people, or json or yaml for scripts, as docs/output.schema.json has it.
type Format string

// AddFlag adds -o. also are formats that only this command has.
func (o *Format) AddFlag(cmd *cobra.Command, also ...string) {
	formats := append(append([]string{"text"}, also...), "json", "yaml")
	last := len(formats) - 1
	text := strings.Join(formats[:last], ", ") + " or " + formats[last]
	cmd.Flags().StringVarP((*string)(o), "output", "o", "text", "output format: "+text)
	Complete(cmd, "output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	Wants(cmd, func() error {
		if slices.Contains(formats, string(*o)) {
			return nil
		}
		return exit.Wrong(fmt.Errorf("%s: --output is %q: write %s", Name(cmd), *o, text))
	})
}

// IsText returns whether the output is for people.
func (o Format) IsText() bool { return o == "text" }

// Write writes a document for a script.
func (o Format) Write(to io.Writer, document any) error {
	return listing.One(to, document, o == "yaml")
}

// Items are several documents.
type Items[T any] struct {
	Items []T `json:"items"`
}
