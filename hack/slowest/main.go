// SPDX-License-Identifier: Apache-2.0

// Command slowest runs `go test` with its own arguments, prints what `go test` prints, and then lists the tests that
// took longest, with their slowest steps. CI has a time limit, so everybody should see what a test costs.
//
//	go run ./hack/slowest -timeout 60m ./e2e
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// How many tests are listed, and how many steps of each, among those that took a while.
const (
	shownTests = 15
	shownSteps = 3
	while      = 2.0 // seconds
)

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func main() {
	cmd := exec.Command("go", append([]string{"test", "-json"}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	// Ctrl-C reaches `go test` too, and ends the tests. Their output must still be shown.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		os.Exit(1)
	}
	began := time.Now()
	show(out, os.Stdout, began)
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(max(1, exit.ExitCode()))
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		os.Exit(1)
	}
}

// show prints what `go test` prints without -v: the output of each package, and of each test that failed. Then it
// prints what took longest.
func show(in io.Reader, out io.Writer, began time.Time) {
	said := map[string][]string{} // by package and test, until it is known whether that failed
	var took []event
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) != nil || e.Action == "" {
			_, _ = out.Write(line) // what is not of a test, such as a package that does not compile
		} else {
			e.note(out, said, &took)
		}
		if err != nil {
			break
		}
	}
	table(out, took, time.Since(began))
}

func (e *event) note(out io.Writer, said map[string][]string, took *[]event) {
	top, _, isPart := strings.Cut(e.Test, "/")
	of := e.Package + " " + top
	switch e.Action {
	case "output", "build-output":
		if e.Test == "" { // the verdict on a package; PASS alone is said with -v only
			_, _ = io.WriteString(out, strings.TrimPrefix(e.Output, "PASS\n"))
		} else {
			said[of] = append(said[of], e.Output)
		}
	case "pass", "skip", "fail":
		if e.Test == "" && e.Action == "fail" { // what tests said that did not come to their end
			for of, lines := range said {
				if strings.HasPrefix(of, e.Package+" ") {
					_, _ = io.WriteString(out, strings.Join(lines, ""))
				}
			}
		}
		if e.Test != "" && e.Elapsed >= while {
			*took = append(*took, *e)
		}
		if e.Test == "" || isPart {
			return
		}
		if e.Action == "fail" {
			_, _ = io.WriteString(out, strings.Join(said[of], ""))
		}
		delete(said, of)
	}
}
