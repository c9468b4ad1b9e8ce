// SPDX-License-Identifier: Apache-2.0

// Command night runs what is too long for each change: the race detector, random days of the simulation, old defects, fuzzing and the whole
// test. It goes on after a step that fails, and ends with one page: what ran, what failed, and how to repeat that.
//
//	go run ./hack/night -page bin/night.md
//	go run ./hack/night -only seeds,fuzz
//
// A night may be run in pieces: what the page says of steps that do not run now stays on it, with its day and its commit.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// step is a part of the night. Its command is what a person types to repeat it.
type step struct {
	name, what, command string
}

// steps returns the parts of a night. Each night has other seeds; those of a day are the same, so that two runs compare.
func steps(day time.Time, seeds int) []step {
	from := day.UTC().Truncate(24*time.Hour).Unix() / 86400 * 100_000 // far from the seeds that each change plays
	return []step{
		{"race", "controllers and internal packages with the race detector",
			"CGO_ENABLED=1 go test -race -timeout 60m ./controllers/... ./internal/..."}, // which takes cgo
		{"seeds", "random days of the simulation", fmt.Sprintf("make simulate SEEDS=%d FROM=%d", seeds, from)},
		{"defects", "old defects, which the simulation has to find", "make defects"},
		{"fuzz", "each fuzz target for a minute", "make fuzz FUZZTIME=1m"},
		{"bench", "200 clusters against the recorded runs", "make bench-check"},
		{"test", "every test, with the long tables whole and seeds of its own", "CHANDLER_LONG=1 make test"},
		{"matrix", "the main paths with the oldest Flux and Kubernetes that are supported", "make matrix"},
		{"node", "one real node, with Kamaji, Flux and the hub as pods", "make e2e-node"},
	}
}

// done is what came of a step.
type done struct {
	step
	took time.Duration
	err  error
	last string // what it printed last
}

func main() {
	page := flag.String("page", "bin/night.md", "file for the page")
	only := flag.String("only", "", "run these steps alone, by name, with commas between")
	skip := flag.String("skip", "node", "leave out these steps: node needs root")
	seeds := flag.Int("seeds", 20_000, "how many days of the simulation")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	now := time.Now()
	all, err := chosen(steps(now, *seeds), *only, *skip)
	if err != nil {
		fmt.Fprintln(os.Stderr, "night:", err)
		os.Exit(2)
	}
	failed := false
	before, err := os.ReadFile(*page)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "night:", err)
		os.Exit(2)
	}
	out := make([]done, 0, len(all))
	for _, s := range all {
		if ctx.Err() != nil {
			break
		}
		d := run(ctx, s, os.Stdout)
		out, failed = append(out, d), failed || d.err != nil
		// After each step, so that a night that is cut off has a page too.
		if err := os.WriteFile(*page, []byte(text(now, commit(ctx, *page), out, string(before))), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "night:", err)
			os.Exit(2)
		}
	}
	fmt.Println("night:", *page)
	if failed || ctx.Err() != nil {
		os.Exit(1)
	}
}

// chosen returns the steps that are to run.
func chosen(all []step, only, skip string) ([]step, error) {
	names := func(text string) []string { return strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) }
	for _, name := range slices.Concat(names(only), names(skip)) {
		if !slices.ContainsFunc(all, func(s step) bool { return s.name == name }) {
			return nil, fmt.Errorf("there is no step %q", name)
		}
	}
	return slices.DeleteFunc(all, func(s step) bool {
		if only != "" {
			return !slices.Contains(names(only), s.name)
		}
		return slices.Contains(names(skip), s.name)
	}), nil
}

// run runs a step, and shows what it prints.
func run(ctx context.Context, s step, out io.Writer) done {
	fmt.Fprintf(out, "night: %s: %s\n", s.name, s.command)
	last := &tail{}
	cmd := exec.CommandContext(ctx, "sh", "-c", s.command)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(out, last), io.MultiWriter(out, last)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	start := time.Now()
	err := cmd.Run()
	return done{step: s, took: time.Since(start), err: err, last: last.String()}
}

// tail keeps the end of what is written to it.
type tail struct{ bytes.Buffer }

// kept is how much of a step's output is on the page if it fails.
const kept = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	n, err := t.Buffer.Write(p)
	if over := t.Len() - kept; over > 0 {
		t.Next(over)
	}
	return n, err
}

// commit names the commit that is checked out, and says if the checkout has changes beside the page: another part of the night may have
// written that.
func commit(ctx context.Context, page string) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always").Output()
	if err != nil {
		return "an unknown commit"
	}
	name := strings.TrimSpace(string(out))
	if exec.CommandContext(ctx, "git", "diff", "--quiet", "HEAD", "--", ".", ":(exclude)"+page).Run() != nil {
		name += "-dirty"
	}
	return name
}

// text returns the page with the rows of some steps. The rows of other steps stay as they are on the page before.
func text(now time.Time, commit string, all []done, before string) string {
	rows := map[string]string{}
	for line := range strings.Lines(before) {
		if cells := strings.Split(line, " | "); len(cells) == 6 {
			rows[strings.TrimPrefix(cells[0], "| ")] = line
		}
	}
	for _, d := range all {
		result := "passed"
		if d.err != nil {
			result = "**failed**"
		}
		rows[d.name] = fmt.Sprintf("| %s | %s | %s | %.0f | %s at %s | `%s` |\n", d.name, d.what, result, d.took.Minutes(),
			now.UTC().Format("2006-01-02"), commit, d.command)
	}
	var b strings.Builder
	b.WriteString("# The last night\n\n`make night` writes such a page to `bin/night.md`, without the step `node`; ")
	b.WriteString("`go run ./hack/night -page docs/night.md` writes this one.\n\n")
	b.WriteString("| step | what | result | minutes | when | to repeat it |\n|---|---|---|---|---|---|\n")
	for _, s := range steps(now, 0) {
		b.WriteString(rows[s.name])
	}
	for _, d := range all {
		if d.err != nil {
			fmt.Fprintf(&b, "\n## %s failed\n\n%s. It printed last:\n\n```\n%s\n```\n", d.name, reason(d.err), strings.TrimSpace(d.last))
		}
	}
	return b.String()
}

// reason says how a step ended.
func reason(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "It ended with " + exit.String()
	}
	return "It could not run: " + err.Error()
}
