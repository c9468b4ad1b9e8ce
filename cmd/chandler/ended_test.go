// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/sandbox"
)

// asProgram is a variable that has the test binary be chandler.
const asProgram = "CHANDLER_TEST_AS_PROGRAM"

// TestEnded: a command that waits for a pipe ends at once when somebody ends it, says so, and shows nothing.
func TestEnded(t *testing.T) {
	fleet := filepath.Join(t.TempDir(), "fleet.yaml")
	write(t, fleet, clitest.Fleet)
	for name, tc := range map[string]struct {
		args string
		code int
		sent os.Signal
	}{
		"diff of standard input":        {args: "diff -f - --against FILE", code: exit.Uncertain, sent: syscall.SIGTERM},
		"diff of a pipe":                {args: "diff -f PIPE --against FILE", code: exit.Uncertain, sent: os.Interrupt},
		"diff of a pipe with the hub":   {args: "diff -f PIPE", code: exit.Uncertain, sent: syscall.SIGTERM},
		"diff against a pipe":           {args: "diff -f FILE --against PIPE", code: exit.Uncertain, sent: syscall.SIGTERM},
		"diff with a fleet from a pipe": {args: "diff -f FILE --against FILE --fleet PIPE", code: exit.Uncertain, sent: syscall.SIGTERM},
		"render of a pipe":              {args: "render -f PIPE", code: exit.Failed, sent: syscall.SIGTERM},
		"import of a pipe":              {args: "import PIPE", code: exit.Failed, sent: syscall.SIGTERM},
		"rollout plan of a pipe":        {args: "rollout plan -f PIPE", code: exit.Failed, sent: syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Skip("no pipes here:", err)
			}
			cmd := exec.Command(os.Args[0], strings.Fields(strings.NewReplacer("FILE", fleet, "PIPE", pipe).Replace(tc.args))...)
			cmd.Env = append(os.Environ(), asProgram+"=1")
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			in := must.Get(cmd.StdinPipe()).Or(t)
			must.Do(t, cmd.Start())
			late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
			defer late.Stop()
			// It reads as soon as it has taken more than a pipe holds, and as soon as a named pipe can be opened for writing.
			if strings.Contains(tc.args, "PIPE") {
				w := must.Get(os.OpenFile(pipe, os.O_WRONLY, 0)).Or(t)
				defer func() { _ = w.Close() }()
			} else if _, err := in.Write(bytes.Repeat([]byte("#\n"), 1<<19)); err != nil {
				t.Fatal(err)
			}
			must.Do(t, cmd.Process.Signal(tc.sent))
			_ = cmd.Wait() // the code says it
			if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(errs.String(), "ended by a signal") || out.Len() > 0 {
				t.Errorf("ends with %d, want %d:\n%s\n%s", code, tc.code, &out, &errs)
			}
		})
	}
}

// TestEndedSafely: what other people wrote into files, and an error quotes, does not decide over the terminal.
func TestEndedSafely(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "crd.yaml"), `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: "x\e[2J"}, spec: {versions: 3}}`)
	write(t, filepath.Join(dir, "fleet.yaml"), clitest.Fleet)
	cmd := exec.Command(os.Args[0], "render", "-f", filepath.Join(dir, "fleet.yaml"), "--crds", dir)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("read CRD x")) || bytes.Contains(out, []byte("\x1b")) {
		t.Errorf("%v, and it says %q", err, out)
	}
}

func TestMain(m *testing.M) {
	sandbox.Main() // diff --charts starts this program for what it does not trust
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}
