// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/listing"
)

// output is the format in which a command writes: text for people, or json or yaml for scripts, as docs/output.schema.json has it.
type output string

// addOutput adds -o. also are formats that only this command has.
func (o *output) addOutput(cmd *cobra.Command, also ...string) {
	formats := append(append([]string{"text"}, also...), "json", "yaml")
	last := len(formats) - 1
	text := strings.Join(formats[:last], ", ") + " or " + formats[last]
	cmd.Flags().StringVarP((*string)(o), "output", "o", "text", "output format: "+text)
	complete(cmd, "output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	wants(cmd, func() error {
		if slices.Contains(formats, string(*o)) {
			return nil
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "chandler ")
		return &exit{uncertain, fmt.Errorf("%s: --output is %q: write %s", name, *o, text)}
	})
}

// isText returns whether the output is for people.
func (o output) isText() bool { return o == "text" }

// write writes a document for a script.
func (o output) write(to io.Writer, document any) error {
	return listing.One(to, document, o == "yaml")
}

// items are several documents.
type items[T any] struct {
	Items []T `json:"items"`
}
