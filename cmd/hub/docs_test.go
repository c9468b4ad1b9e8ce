// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/must"
)

// TestDocumentedFlags: docs/flags.md says what --help says, in the same order.
func TestDocumentedFlags(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	f := pflag.NewFlagSet("hub", pflag.ContinueOnError)
	(&options{}).addFlags(f)
	var want []string
	f.VisitAll(func(flag *pflag.Flag) {
		value := ""
		if d := flag.DefValue; d != "" && d != "false" && d != "[]" {
			value = "`" + d + "`"
		}
		want = append(want, fmt.Sprintf("| `--%s` | %s | %s |", flag.Name, value, flag.Usage))
	})
	raw := must.Read(t, filepath.Join("..", "..", "docs", "flags.md"))
	var got []string
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "| `--") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("docs/flags.md differs: -flags, +document:\n%s", d)
	}
}
