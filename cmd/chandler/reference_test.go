// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/help"
	"github.com/chandler-hub/chandler/internal/must"
)

// The reference and the man pages are written by tests: the commands are in a main package, which no other program can import, and what
// writes pages is in no binary this way.

var man = flag.String("man", "", "folder to write the man pages to")

// reference is where the pages of the commands are.
var reference = filepath.Join("..", "..", "docs", "cli")

// TestReference: the pages of docs/cli are what the commands say. With -update it writes them.
func TestReference(t *testing.T) {
	root := newCommand(made)
	pages := map[string]string{"README.md": referenceIndex(root)}
	for _, c := range shown(root) {
		var b strings.Builder
		b.WriteString(generatedMark)
		writeCommand(&b, c, 1)
		pages[c.Name()+".md"] = b.String()
	}
	if *update {
		must.Do(t, os.RemoveAll(reference))
		must.Do(t, os.MkdirAll(reference, 0o755))
	}
	for name, text := range pages {
		path := filepath.Join(reference, name)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // a page of the repository
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || cmp.Diff(string(got), text) != "" {
			t.Errorf("%s is not what the command says: run make generate (%v)", path, err)
		}
	}
	files := must.Get(os.ReadDir(reference)).Or(t)
	for _, f := range files {
		if _, known := pages[f.Name()]; !known {
			t.Errorf("docs/cli/%s is of no command: run make generate", f.Name())
		}
	}
}

const generatedMark = "<!-- Written by make generate, of what the command says of itself. -->\n\n"

// shown returns the commands below one that people see.
func shown(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() || c.Name() == "help" })
}

func referenceIndex(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(generatedMark + "# The command line, flag by flag\n\n" + root.Long + "\n\n[Commands](../commands.md) is the guide: which command is for what, " +
		"and what is the same for all of them. Here is everything that they take.\n\n| | |\n|---|---|\n")
	for _, c := range shown(root) {
		fmt.Fprintf(&b, "| [chandler %s](%s.md) | %s |\n", c.Name(), c.Name(), c.Short)
	}
	shared, kubectls := help.CommonFlags()
	b.WriteString("\n## Flags of all commands\n\nBy these every command that asks a hub finds it.\n\n```\n" + help.FlagLines(kubectls) + "\n```\n\nThese are the " +
		"hub's own, which commands take from the hub unless you write them.\n\n```\n" + help.FlagLines(shared) + "\n```\n")
	return b.String()
}

func writeCommand(b *strings.Builder, cmd *cobra.Command, level int) {
	fmt.Fprintf(b, "%s %s\n\n", strings.Repeat("#", level), cmd.CommandPath())
	text := cmd.Short + "."
	if cmd.Long != "" {
		text = cmd.Long
	}
	b.WriteString(escaped(text) + "\n")
	if below := shown(cmd); len(below) > 0 {
		b.WriteString("\n| | |\n|---|---|\n")
		for _, c := range below {
			path := c.CommandPath()
			fmt.Fprintf(b, "| [%s](#%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), c.Short)
		}
	} else {
		b.WriteString("\n```\n" + cmd.UseLine() + "\n```\n")
	}
	if len(cmd.Aliases) > 0 {
		b.WriteString("\nAlso called " + strings.Join(cmd.Aliases, ", ") + ".\n")
	}
	b.WriteString("\n```sh\n" + unindented(cmd.Example) + "\n```\n")
	own, common := help.FlagsOf(cmd)
	if text := help.FlagLines(own); text != "" {
		b.WriteString("\n```\n" + text + "\n```\n")
	}
	if common.HasFlags() {
		b.WriteString("\nIt also takes the [flags of all commands](README.md#flags-of-all-commands).\n")
	}
	if codes := exit.Meanings(cmd); codes != nil {
		b.WriteString("\n| exit code | |\n|---|---|\n")
		for code, text := range codes {
			fmt.Fprintf(b, "| %d | %s |\n", code, text)
		}
	}
	for _, c := range shown(cmd) {
		b.WriteString("\n")
		writeCommand(b, c, level+1)
	}
}

// escaped returns a text as Markdown that shows it as it is.
func escaped(text string) string {
	return strings.NewReplacer("<", "\\<", "*", "\\*", "_", "\\_", "[", "\\[", "|", "\\|").Replace(text)
}

func unindented(example string) string {
	lines := strings.Split(example, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

// TestManPages: there is a page for each command, and it says what the help says. With -man it writes them to a folder.
func TestManPages(t *testing.T) {
	dir := *man
	if dir == "" {
		dir = t.TempDir()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root := newCommand(made)
	root.DisableAutoGenTag = true // it has the date
	say(root)
	// Their date is $SOURCE_DATE_EPOCH, which a release sets.
	must.Do(t, doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Chandler", Manual: "Chandler"}, dir))
	walk(t, func(t *testing.T, cmd *cobra.Command) {
		raw := must.Read(t, filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		for _, want := range []string{".TH ", ".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH EXAMPLE"} {
			if !strings.Contains(string(raw), want) {
				t.Errorf("there is no %q in\n%s", want, raw)
			}
		}
		if !cmd.HasAvailableSubCommands() && !strings.Contains(string(raw), "Exit codes") {
			t.Error("it does not say its exit codes")
		}
	})
}

// say has the descriptions of commands say the exit codes too, for pages that are made of descriptions.
func say(cmd *cobra.Command) {
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	if codes := exit.Meanings(cmd); codes != nil {
		cmd.Long += "\n\nExit codes:\n"
		for code, text := range codes {
			cmd.Long += fmt.Sprintf("\n- %d: %s", code, text)
		}
	}
	for _, c := range cmd.Commands() {
		say(c)
	}
}
