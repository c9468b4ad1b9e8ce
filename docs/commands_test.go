// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// commandLine is a command of ours in a block of a page, with what the shell continues.
	commandLine = regexp.MustCompile(`(?m)^ *(?:\$ )?chandler ([a-z]+)((?:[^\n\\]|\\\n?)*)$`)
	flagOf      = regexp.MustCompile(`(?:^|\s)(--[a-z][a-z-]+)`)
	// ends is where the arguments of a command of ours are over: a comment, another program, or the hub's own flags.
	ends = regexp.MustCompile(`\s#|\||>|;| -- `)
)

// TestCommands: each command that a page has in a block is in the reference, with the flags that it is given there.
func TestCommands(t *testing.T) {
	count, common := 0, read(t, "cli/README.md")+read(t, "cli/options.md")
	for _, page := range pages(t) {
		if strings.Contains(page, "/adr/") || strings.Contains(page, "/cli/") {
			continue
		}
		for _, block := range fence.FindAllString(read(t, page), -1) {
			if strings.Contains(block, "chandler v0") { // what `chandler version` prints
				continue
			}
			for _, m := range commandLine.FindAllStringSubmatch(block, -1) {
				count++
				reference, err := os.ReadFile(filepath.Join("cli", m[1]+".md"))
				if err != nil {
					t.Errorf("%s: there is no command chandler %s", page, m[1])
					continue
				}
				for _, f := range flagOf.FindAllStringSubmatch(ends.Split(m[2], 2)[0], -1) {
					if !regexp.MustCompile(regexp.QuoteMeta(f[1]) + `\b`).MatchString(string(reference) + common) {
						t.Errorf("%s: chandler %s has no flag %s", page, m[1], f[1])
					}
				}
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d commands were found", count)
	}
}
