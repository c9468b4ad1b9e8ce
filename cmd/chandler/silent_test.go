// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/must"
)

// notLive are the commands that ask no hub. A command that is not here is live, and has to end when its hub is silent.
var notLive = []string{"chandler completion", "chandler create", "chandler export", "chandler get", "chandler removals", "chandler options", "chandler render",
	"chandler rollout", "chandler version", "chandler"}

// liveArgs are the words by which a live command asks its hub at once, one line for each way to. A command without a line is called
// without words.
var liveArgs = map[string][]string{
	"chandler create set":       {"x --all --from-git https://example.org/x --branch main --path x"},
	"chandler create team":      {"x --all --cluster-namespace x"},
	"chandler diff":             {"-f FLEET", "-f FLEET --live"},
	"chandler events":           {"", "x", "set x", "x y", "--follow", "x y --follow"},
	"chandler explain":          {"x", "x y", "x --tree"},
	"chandler get addons":       {"", "x", "-w"},
	"chandler get clusters":     {"", "x", "-w", "-l a=b"},
	"chandler get outdated":     {"", "x"},
	"chandler get sets":         {"", "-w"},
	"chandler import":           {"--from-cluster"},
	"chandler install":          {"--image example.org/x:v1"},
	"chandler pause":            {"x", "set x --reason y"},
	"chandler reconcile":        {"x", "x --with-source"},
	"chandler register":         {"x -n fleet --cluster-kubeconfig FLEET"},
	"chandler removals approve": {"x --yes"},
	"chandler resume":           {"x"},
	"chandler rollout approve":  {"x y"},
	"chandler rollout expedite": {"x"},
	"chandler rollout history":  {"x"},
	"chandler rollout plan":     {"x"},
	"chandler rollout redo":     {"x"},
	"chandler rollout retry":    {"x"},
	"chandler rollout status":   {"x", "x -w"},
	"chandler rollout undo":     {"x"},
	"chandler ui":               {"--no-open"},
	"chandler uninstall":        {"--yes"},
	"chandler unregister":       {"x -n fleet --yes"},
}

// liveLines returns all the lines by which a hub is asked: every command of the tree that is not excluded.
func liveLines(t *testing.T) (lines []string) {
	t.Helper()
	fleet := filepath.Join(t.TempDir(), "fleet.yaml")
	write(t, fleet, clitest.Fleet)
	known := map[string]bool{}
	var below func(*cobra.Command)
	below = func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		known[path] = true
		if !slices.Contains(notLive, path) && cmd.Runnable() {
			ways := liveArgs[path]
			if ways == nil {
				ways = []string{""}
			}
			for _, way := range ways {
				lines = append(lines, strings.TrimSpace(strings.TrimPrefix(path, "chandler ")+" "+strings.ReplaceAll(way, "FLEET", fleet)))
			}
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.Name() != "help" {
				below(c)
			}
		}
	}
	below(newCommand(made))
	for path := range liveArgs {
		if !known[path] {
			t.Errorf("there is no command %s", path)
		}
	}
	return lines
}

// silentHub is a listener that takes connections and never answers.
type silentHub struct {
	net.Listener
	once  sync.Once
	asked chan struct{}
}

func newSilentHub(t *testing.T) *silentHub {
	t.Helper()
	l := must.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")).Or(t)
	s := &silentHub{Listener: l, asked: make(chan struct{})}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.once.Do(func() { close(s.asked) })
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return s
}

// kubeconfigOf writes one that leads to an address.
func kubeconfigOf(t *testing.T, address string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	write(t, file, "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: '"+address+
		"'}}], contexts: [{name: c, context: {cluster: c, namespace: fleet}}]}")
	return file
}

// at adds to a line where its hub is.
func at(line, config string) []string {
	return append(strings.Fields(line), "--kubeconfig", config)
}

// begun is a command that runs, with the time that it has taken when it is over.
func begun(ctx context.Context, args []string) <-chan finished {
	over := make(chan finished, 1)
	go func() {
		began := time.Now()
		cmd := newCommand(made)
		var out bytes.Buffer
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetIn(strings.NewReader(""))
		err := cmd.ExecuteContext(ctx)
		over <- finished{out.String(), err, time.Since(began)}
	}()
	return over
}

type finished struct {
	out  string
	err  error
	took time.Duration
}

// slack is what a slow machine may take on top of what is promised.
const slack = 10 * time.Second

// all calls a function for each line at once: what is tested is how long they wait. The functions do not end the test.
func all(lines []string, each func(line string)) {
	var waits sync.WaitGroup
	for _, line := range lines {
		waits.Go(func() { each(line) })
	}
	waits.Wait()
}

// TestSilentHub: every live command ends by itself when its hub takes a connection and says nothing, when one request has taken what
// --request-timeout allows.
func TestSilentHub(t *testing.T) {
	silent := newSilentHub(t)
	address := "http://" + silent.Addr().String()
	config := kubeconfigOf(t, address)
	want := "no hub at " + address + ": it does not answer within 200ms (--request-timeout); is the kubeconfig right?"
	all(liveLines(t), func(line string) {
		select {
		case got := <-begun(t.Context(), append(at(line, config), "--request-timeout", "200ms")):
			if code, text := exit.Told(got.err); got.err == nil || code != exit.Uncertain || !strings.HasPrefix(text, want) || strings.Count(text, "no hub") != 1 || got.took > 200*time.Millisecond+slack {
				t.Errorf("%s: after %s it ends with %d, and says\n%s\nwant\n%s", line, got.took, code, text, want)
			}
		case <-time.After(2 * slack):
			t.Errorf("%s goes on for ever", line)
		}
	})
}

// TestSilentHubAndCancel: every live command ends at once when somebody ends it while it waits for its hub.
func TestSilentHubAndCancel(t *testing.T) {
	lines := liveLines(t)
	hubs, configs := map[string]*silentHub{}, map[string]string{}
	for _, line := range lines {
		hubs[line] = newSilentHub(t)
		configs[line] = kubeconfigOf(t, "http://"+hubs[line].Addr().String())
	}
	all(lines, func(line string) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		over := begun(ctx, at(line, configs[line]))
		select {
		case <-hubs[line].asked:
		case got := <-over:
			t.Errorf("%s does not ask its hub: %v\n%s\nSay in liveArgs how it does, or in notLive that it never does", line, got.err, got.out)
			return
		}
		end()
		select {
		case <-over: // some say that nothing went wrong: somebody has seen enough
		case <-time.After(slack):
			t.Errorf("%s goes on although somebody has ended it", line)
		}
	})
}

// completed returns the lines of which a shell asks how they go on: after each command, and after each of its flags that completes names.
func completed() (lines [][]string) {
	var below func(*cobra.Command)
	below = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		if cmd.ValidArgsFunction != nil && cmd.Flags().Lookup("request-timeout") != nil {
			for _, before := range [][]string{nil, {"x"}, {"set"}, {"cluster"}} {
				lines = append(lines, slices.Concat(path, before))
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if _, there := cmd.GetFlagCompletionFunc(f.Name); there && cmd.Flags().Lookup("request-timeout") != nil {
				lines = append(lines, append(slices.Clone(path), "--"+f.Name))
			}
		})
		for _, c := range cmd.Commands() {
			below(c)
		}
	}
	below(newCommand(made))
	return lines
}

// TestSilentCompletion: the shell gets an answer within the three seconds that completion --help promises, whatever command and flag it
// asks about.
func TestSilentCompletion(t *testing.T) {
	silent := newSilentHub(t)
	t.Setenv("KUBECONFIG", kubeconfigOf(t, "http://"+silent.Addr().String()))
	var lines []string
	for _, words := range completed() {
		lines = append(lines, strings.Join(words, " "))
	}
	all(lines, func(line string) {
		select {
		case got := <-begun(t.Context(), append(append([]string{"__complete"}, strings.Fields(line)...), "")):
			if got.err != nil || got.took > hub.Patience+slack {
				t.Errorf("%s: after %s: %v\n%s", line, got.took, got.err, got.out)
			}
		case <-time.After(hub.Patience + 2*slack):
			t.Errorf("%s: the shell waits", line)
		}
	})
	select {
	case <-silent.asked:
	default:
		t.Error("no completion asks the hub")
	}
}

// TestSilentHubAndSignal: the first Ctrl-C ends the program, which says so in one line, and says nothing of its libraries.
func TestSilentHubAndSignal(t *testing.T) {
	for _, line := range []string{"get clusters", "doctor", "ui --no-open"} {
		for _, sent := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			silent := newSilentHub(t)
			cmd := exec.Command(os.Args[0], at(line, kubeconfigOf(t, "http://"+silent.Addr().String()))...)
			cmd.Env = append(os.Environ(), asProgram+"=1")
			var errs bytes.Buffer
			cmd.Stderr = &errs
			must.Do(t, cmd.Start())
			late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
			<-silent.asked
			_ = cmd.Process.Signal(sent)
			_ = cmd.Wait() // the code says it
			late.Stop()
			if cmd.ProcessState.ExitCode() < 1 || errs.String() != "chandler: ended by a signal\n" {
				t.Errorf("%s and %s: it ends with %d, and says\n%s", line, sent, cmd.ProcessState.ExitCode(), &errs)
			}
		}
	}
}

// TestSilentHubWithoutKlog: nothing of client-go's own log is printed.
func TestSilentHubWithoutKlog(t *testing.T) {
	silent := newSilentHub(t)
	cmd := exec.Command(os.Args[0], append(at("doctor", kubeconfigOf(t, "http://"+silent.Addr().String())), "--request-timeout", "200ms")...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.CombinedOutput()
	var code *exec.ExitError
	if !errors.As(err, &code) || code.ExitCode() != exit.Uncertain || strings.Count(string(out), "\n") != 1 || !strings.HasPrefix(string(out), "chandler: no hub at ") {
		t.Errorf("%v, and it says\n%s", err, out)
	}
}
