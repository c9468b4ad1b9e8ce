// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chandler-hub/chandler/internal/fetch"
	"github.com/chandler-hub/chandler/internal/inflate"
)

// Box is the other process, which is started when it is needed, and again after it had to be ended.
type Box struct {
	// Program is what is started with Argument; empty for this program.
	Program string
	// Fetching and Making are how long one request may take. Defaults two minutes and one.
	Fetching, Making time.Duration

	mu      sync.Mutex
	process *process
}

type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Fetch fetches the content of a source.
func (b *Box) Fetch(ctx context.Context, r *fetch.Request) (*fetch.Content, error) {
	a, err := b.do(ctx, &request{Fetch: r}, orElse(b.Fetching, 2*time.Minute))
	if err != nil {
		return nil, err
	}
	if a.Content == nil {
		return nil, errors.New("nothing was fetched")
	}
	return a.Content, nil
}

// Make makes the objects of a task.
func (b *Box) Make(ctx context.Context, t *inflate.Task) (*inflate.Result, error) {
	a, err := b.do(ctx, &request{Make: t}, orElse(b.Making, time.Minute))
	if err != nil {
		return nil, err
	}
	if a.Result == nil {
		return nil, errors.New("nothing was made")
	}
	return a.Result, nil
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// do has one request answered. A process that has not answered in time is ended.
func (b *Box) do(ctx context.Context, r *request, most time.Duration) (*answer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if b.process == nil {
		if err := b.start(); err != nil {
			return nil, err
		}
	}
	p := b.process
	a := &answer{}
	failed := make(chan error, 1)
	go func() {
		err := send(p.in, r)
		if err == nil {
			err = receive(p.out, a)
		}
		failed <- err
	}()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		b.end()
		if err = errors.Join(ctx.Err(), <-failed); errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("it was not done in %s", most)
		}
		return nil, ctx.Err() //nolint:wrapcheck // the command is being ended
	}
	if err != nil {
		if b.end() == tooMuch {
			return nil, fmt.Errorf("it took more than %d MiB of memory", maxMemory>>20)
		}
		return nil, errors.New("it has broken the process in which it was read")
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a, nil
}

// start starts the process.
func (b *Box) start() error {
	program := b.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
	}
	cmd := exec.Command(program, Argument)
	cmd.Env = environment(os.Environ())
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start another process: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start another process: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start another process: %w", err)
	}
	b.process = &process{cmd, in, bufio.NewReader(out)}
	return nil
}

// passed are the variables that the process gets: those that lead to a proxy, to certificates, and to a folder for what is temporary.
var passed = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT"}

func environment(all []string) []string {
	out := []string{"GOTRACEBACK=none"}
	for _, one := range all {
		name, _, _ := strings.Cut(one, "=")
		for _, p := range passed {
			if strings.EqualFold(name, p) {
				out = append(out, one)
			}
		}
	}
	return out
}

// end ends the process, and returns its exit code.
func (b *Box) end() int {
	p := b.process
	b.process = nil
	if p == nil {
		return 0
	}
	_ = p.in.Close()
	timer := time.AfterFunc(time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// Close ends the process.
func (b *Box) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
}
