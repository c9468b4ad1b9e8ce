// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/help"
	"github.com/chandler-hub/chandler/internal/must"
)

// walk calls a function with every command of the tree that people see.
func walk(t *testing.T, each func(*testing.T, *cobra.Command)) {
	t.Helper()
	var below func(*cobra.Command)
	below = func(cmd *cobra.Command) {
		t.Run(strings.ReplaceAll(cmd.CommandPath(), " ", "-"), func(t *testing.T) { each(t, cmd) })
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.Name() != "help" {
				below(c)
			}
		}
	}
	below(newCommand(made))
}

// TestHelp: what each command says of itself is one text, which people look at when it changes.
func TestHelp(t *testing.T) {
	want := map[string]bool{}
	walk(t, func(t *testing.T, cmd *cobra.Command) {
		out := must.Get(run(append(strings.Fields(cmd.CommandPath())[1:], "--help")...)).Or(t)
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".txt"
		want[name] = true
		golden(t, "help/"+name, out)
	})
	files := must.Get(os.ReadDir(filepath.Join("testdata", "help"))).Or(t)
	for _, f := range files {
		if want[f.Name()] {
			continue
		}
		if !*update {
			t.Errorf("testdata/help/%s is of no command", f.Name())
		} else if err := os.Remove(filepath.Join("testdata", "help", f.Name())); err != nil {
			t.Error(err)
		}
	}
}

// TestHelpFits: no line is wider than half a screen, and few helps are longer than a screen.
func TestHelpFits(t *testing.T) {
	var lengths []int
	walk(t, func(t *testing.T, cmd *cobra.Command) {
		out := must.Get(run(append(strings.Fields(cmd.CommandPath())[1:], "--help")...)).Or(t)
		lengths = append(lengths, strings.Count(out, "\n"))
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > help.Width {
				t.Errorf("a line has %d columns: %s", n, line)
			}
		}
	})
	slices.Sort(lengths)
	if median := lengths[len(lengths)/2]; median > 25 {
		t.Errorf("the helps have %d lines, as a median: %v", median, lengths)
	}
}

// TestOneFlagOneMeaning: a flag has one type, whatever command it is of. What each says is in one file, to be read as a page.
func TestOneFlagOneMeaning(t *testing.T) {
	types, said := map[string]string{}, map[string]map[string][]string{}
	walk(t, func(t *testing.T, cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			kind := strings.TrimSuffix(strings.TrimSuffix(f.Value.Type(), "Slice"), "Array") // one of something, or several of it
			if types[f.Name] == "" {
				types[f.Name], said[f.Name] = kind, map[string][]string{}
			}
			if kind != types[f.Name] {
				t.Errorf("--%s is a %s here, and a %s elsewhere", f.Name, kind, types[f.Name])
			}
			path := strings.TrimPrefix(cmd.CommandPath(), "chandler ")
			said[f.Name][f.Usage] = append(said[f.Name][f.Usage], path)
		})
	})
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(said)) {
		fmt.Fprintf(&b, "--%s\n", name)
		for _, text := range slices.Sorted(maps.Keys(said[name])) {
			of := strings.Join(said[name][text], ", ")
			if len(said[name][text]) > 6 {
				of = fmt.Sprintf("%d commands", len(said[name][text]))
			}
			fmt.Fprintf(&b, "    %s  (%s)\n", text, of)
		}
	}
	golden(t, "flags.txt", b.String())
}

// sentences are what a description consists of; a Short is no sentence, and has no full stop.
var sentence = regexp.MustCompile(`^[A-Z].*[^.]$`)

// TestEveryCommandIsExplained: what it does, when it ends with which code, and at least one line that works as it stands.
func TestEveryCommandIsExplained(t *testing.T) {
	walk(t, func(t *testing.T, cmd *cobra.Command) {
		if !sentence.MatchString(cmd.Short) || len(cmd.Short) > 80 {
			t.Errorf("its short text is %q", cmd.Short)
		}
		if cmd.Long != "" && (strings.TrimSpace(cmd.Long) != cmd.Long || !strings.HasSuffix(cmd.Long, ".")) {
			t.Errorf("its long text is %q", cmd.Long)
		}
		if !cmd.HasAvailableSubCommands() && !strings.Contains(cmd.UsageString(), "\nExit codes:\n  0  ") {
			t.Error("it does not say its exit codes")
		}
		own := 0
		for _, line := range exampleLines(cmd.Example) {
			path, err := works(line)
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if path == cmd.CommandPath() || strings.HasPrefix(path, cmd.CommandPath()+" ") {
				own++
			}
		}
		if own == 0 {
			t.Errorf("it has no example of its own: %q", cmd.Example)
		}
	})
}

// TestExamplesAreHeld: examples that do not work are found.
func TestExamplesAreHeld(t *testing.T) {
	for line, want := range map[string]string{
		"chandler get clusters --labels a=b":         "unknown flag",
		"chandler get clusters -o":                   "needs an argument",
		"kubectl get pods":                           "no line of chandler",
		"chandler explain":                           "write a cluster",
		"chandler render":                            "required flag",
		"chandler get clusters -l tier=prod -w":      "",
		"cat a | chandler get clusters edge1 > file": "",
	} {
		path, err := works(line)
		if want == "" && (err != nil || path != "chandler get clusters") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s, %v", line, path, err)
		}
	}
}

// exampleLines returns the lines of an example, without comments, and with those that go on in the next one put together.
func exampleLines(example string) []string {
	var out []string
	for line := range strings.Lines(strings.ReplaceAll(example, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

var (
	// substituted is what a shell runs for its output, and redirected what it writes into a file.
	substituted = regexp.MustCompile(`^source <\((.*)\)$`)
	redirected  = regexp.MustCompile(` > \S+$`)
)

// works returns which command a line of an example calls, or why it would not work: it has flags that do not exist or wrong arguments, or
// lacks something.
func works(line string) (path string, err error) {
	line = redirected.ReplaceAllString(line, "")
	if m := substituted.FindStringSubmatch(line); m != nil {
		line = m[1]
	}
	if _, after, piped := strings.Cut(line, " | "); piped {
		line = after
	}
	args := words(line)
	if args[0] != "chandler" {
		return "", fmt.Errorf("it is no line of chandler: %q", args)
	}
	cmd, rest, err := newCommand(made).Find(args[1:])
	if err != nil {
		return "", err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return "", err
	}
	if err := cmd.ValidateRequiredFlags(); err != nil {
		return "", err
	}
	return cmd.CommandPath(), cmd.ValidateArgs(cmd.Flags().Args())
}

// TestNamesAreCompletedEverywhere: whatever takes an argument says how it is completed, if only that it is not.
func TestNamesAreCompletedEverywhere(t *testing.T) {
	n := 0
	walk(t, func(t *testing.T, cmd *cobra.Command) {
		takes := slices.ContainsFunc([][]string{{"x"}, {"x", "y"}, {"bash"}}, func(args []string) bool { return cmd.ValidateArgs(args) == nil })
		if !takes || cmd.HasAvailableSubCommands() {
			return
		}
		if n++; cmd.ValidArgsFunction == nil {
			t.Errorf("nothing completes the arguments of %s", cmd.UseLine())
		}
	})
	if n < 20 {
		t.Errorf("only %d commands take arguments", n)
	}
}

// TestExitCodes: 1 is for an answer that is no good, and 2 for a question that could not be asked.
func TestExitCodes(t *testing.T) {
	h := clitest.NewSmallHub(t, clitest.SmallFleet())
	for args, want := range map[string]int{
		"get clusters":                      0,
		"get clusters nobody":               1,
		"get addons --set nobody":           1,
		"get addons --set flux-system/base": 0,
		"get clusters -o nonsense":          2,
		"get clusters --nonsense":           2,
		"get clusters -n a -A":              2,
		"get clusters -l a=b=c":             2,
		"get":                               0,
		"create":                            0,
		"removals":                          0,
		"render ../../examples/quickstart":  2,
		"ui nonsense":                       2,
		"get nonsense":                      2,
		"nonsense":                          2,
		"explain nobody --tree":             1,
		"explain edge1 --tree":              0,
		"explain clusterregistration.chandler.dev/edge1":           0,
		"explain clusterregistration.chandler.dev/edge1 --tree":    0,
		"explain addonset.chandler.dev/base":                       2,
		"events addonset.chandler.dev/base":                        0,
		"rollout history addonset.chandler.dev/base":               0,
		"get outdated addonset.chandler.dev/base":                  0,
		"explain edge1 web --tree":                                 2,
		"events -A":                                                0,
		"events -A -n fleet":                                       2,
		"events edge1 nothing":                                     1,
		"events set base web":                                      2,
		"explain edge1 nothing":                                    1,
		"pause edge1 --reason x --until never":                     2,
		"pause edge1 --reason x --until 2020-01-02T08:00:00Z":      2,
		"pause set base --until never":                             2,
		"events fleet/edge1 -n other":                              2,
		"events a/b/c":                                             2,
		"get sets flux-system/base -n other":                       2,
		"create set x":                                             2,
		"create set x --export":                                    2,
		"create set x --all --export":                              2,
		"create set X --all --from-git https://a.example.org/b":    2,
		"create team shop -l a==b==c":                              2,
		"create team shop --all --export --hub-id _":               2,
		"create team shop --all --export --pod-security strict":    1,
		"render -f ../../examples/quickstart --hub-id _":           2,
		"import ../../examples/quickstart --register-all nonsense": 2,
		"register a --export --cluster-kubeconfig /nowhere":        2,
		"resume edge1":                                             1,
		"rollout":                                                  0,
		"rollout status base --timeout 1s":                         2,
		"removals list -A":                                         0,
		"doctor -o nonsense":                                       2,
		"diff":                                                     2,
		"export":                                                   0,
		"version":                                                  0,
		"version --client":                                         0,
		"explain edge1 --tree -o json":                             2,
		"events --follow -o json":                                  2,
		"rollout history base -o table":                            2,
		"completion nonsense":                                      2,
	} {
		if out, errs, code := runSmall(t, args); code != want {
			t.Errorf("chandler %s: exit code %d, want %d:\n%s%s", args, code, want, out, errs)
		}
	}
	h.Forbidden = "/namespaces/fleet/clusterregistrations"
	if _, errs, code := runSmall(t, "get clusters -n fleet"); code != 2 || !strings.Contains(errs, "refused here") {
		t.Errorf("without a right: exit code %d: %s", code, errs)
	}
	h.Forbidden = ""
	for _, args := range []string{"get clusters", "explain edge1", "create team a --all", "ui --no-open", "register a -n b", "import --from-cluster", "rollout status a", "doctor",
		"install --image registry.example.org/chandler-hub:v0.1.0", "uninstall"} {
		for _, context := range []string{" --context nobody", " --server https://127.0.0.1:1"} {
			if _, errs, code := runSmall(t, args+context); code != 2 {
				t.Errorf("chandler %s%s: exit code %d: %s", args, context, code, errs)
			}
		}
	}
}

// TestBareCommands: a command that is only there for those below it prints its help, and a forgotten -f is named in every command that
// reads files.
func TestBareCommands(t *testing.T) {
	for _, name := range []string{"get", "create", "rollout", "removals", "export"} {
		bare := must.Get(run(name)).Or(t)
		if help, _ := run(name, "--help"); bare != help || !strings.Contains(bare, "\nCommands:\n") {
			t.Errorf("chandler %s prints\n%s", name, bare)
		}
	}
	for args, want := range map[string]string{
		"render quickstart": `render: "quickstart" is no flag: write files as -f quickstart`,
		"diff quickstart":   `diff: "quickstart" is no flag: write files as -f quickstart`,
		"ui x":              `ui: "x" is no flag, and there is nothing else to write: chandler ui --help`,
		"get nodes":         `get: there is no "nodes": write one of addons, clusters, outdated, sets`,
	} {
		if _, err := run(strings.Fields(args)...); err == nil || err.Error() != want {
			t.Errorf("chandler %s says %v", args, err)
		}
	}
}

// TestEveryCommandHasAnExample: also those that are only there for the ones below them.
func TestEveryCommandHasAnExample(t *testing.T) {
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		if cmd.HasParent() && !strings.Contains(cmd.Example, "  "+cmd.CommandPath()) {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	look(newCommand(made))
}
