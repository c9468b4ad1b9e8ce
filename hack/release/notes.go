// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// unreleased is the changelog's name for what comes next.
const unreleased = "Unreleased"

// notesName is a file of the folder that is no part of what is downloaded.
const notesName = "notes.md"

// writeNotes writes the notes of the release, which are the version's section of the changelog.
func (r *release) writeNotes(context.Context) error {
	changelog, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, ok := section(string(changelog), r.version)
	if !ok && r.dryRun {
		text, ok = section(string(changelog), unreleased)
	}
	if !ok {
		return fmt.Errorf("CHANGELOG.md has no section %q with something in it", "## "+r.version)
	}
	return os.WriteFile(r.path(notesName), []byte(text+"\n"), 0o644)
}

// section returns what stands below a title of the changelog, "## v0.1.0" or "## v0.1.0 (2026-01-31)", and whether there is anything.
func section(changelog, title string) (string, bool) {
	var lines []string
	in := false
	for _, line := range strings.Split(changelog, "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			name, _, _ := strings.Cut(heading, " ")
			in = name == title
			continue
		}
		if in {
			lines = append(lines, line)
		}
	}
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	return text, text != ""
}
