// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
)

// TestUseless: a file without a name, standard input twice and flags that would do nothing are refused before anything is read.
func TestUseless(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "fleet.yaml", clitest.Fleet)
	write(t, "binary", "\x00\x01: {")
	for _, tc := range []struct{ args, want string }{
		{"render -f ''", "-f is empty: write a file or a folder"},
		{"diff -f '' --against fleet.yaml", "-f is empty"},
		{"diff -f fleet.yaml --against ''", "--against is empty"},
		{"diff -f fleet.yaml --against fleet.yaml --fleet ''", "--fleet is empty"},
		{"rollout plan -f ''", "-f is empty"},
		{"import ''", "a file has an empty name"},
		{"diff -f - --against -", "which can be read once"},
		{"diff -f - --against fleet.yaml --fleet -", "which can be read once"},
		{"render -f - -f -", "which can be read once"},
		{"import - -", "which can be read once"},
		{"diff -f fleet.yaml --against fleet.yaml --auth-file nope", "--auth-file is for what --charts and --live fetch"},
		{"diff -f fleet.yaml --against fleet.yaml --timeout 1m", "--timeout is for what --charts and --live fetch"},
		{"diff -f fleet.yaml --against fleet.yaml --max-length 60000", "--max-length is for Markdown"},
		{"diff -f fleet.yaml --against fleet.yaml -o markdown --max-length -5", "--max-length is -5: write at least"},
		{"diff -f fleet.yaml --against fleet.yaml -o markdown --max-length 5", "--max-length is 5: write at least"},
		{"diff -f fleet.yaml --against fleet.yaml --prune", "--prune is for files against the live hub"},
		{"register edge1 -n fleet --export --cluster-kubeconfig nope", "--export asks no workload cluster"},
		{"register edge1 -n fleet --export --cluster-context nope", "--export asks no workload cluster"},
		{"import fleet.yaml -n A_b", `--namespace "A_b"`},
		{"rollout status a -w --timeout=-1s", "is negative"},
		{"help nope", `unknown command "nope"`},
		{"help get nope", `there is no command "chandler get nope"`},
		{"create set X_y --all --from-git https://example.org/x --branch main --export", "the name is not valid: a lowercase"},
		{"create set x --all --from-helm https://example.org/x --values binary --export", "--values binary"},
		{"reconcile a --timeout soon", "write a duration such as 10m"},
	} {
		words := strings.Fields(tc.args)
		for i := range words {
			words[i] = strings.Trim(words[i], "'")
		}
		_, err := run(words...)
		if code, text := exit.Told(err); err == nil || code != exit.Uncertain || !strings.Contains(text, tc.want) {
			t.Errorf("%s: exit code %d, %s; want %s", tc.args, code, text, tc.want)
		}
	}
}

// TestTimeoutZero: --timeout 0 is without an end, wherever there is a --timeout, and says so.
func TestTimeoutZero(t *testing.T) {
	ctx, cancel := command.Limited(t.Context(), 0)
	defer cancel()
	if _, ends := ctx.Deadline(); ends {
		t.Error("it ends")
	}
	n := 0
	walk(t, func(t *testing.T, cmd *cobra.Command) {
		f := cmd.Flags().Lookup("timeout")
		if f == nil {
			return
		}
		n++
		if _, same := f.Value.(*command.Patience); !same || !strings.Contains(f.Usage, "0 is without an end") {
			t.Errorf("its --timeout is one of its own: %s", f.Usage)
		}
	})
	if n < 6 {
		t.Errorf("%d commands have a --timeout", n)
	}
}
