// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a process may take to end by itself.
const stopGrace = 10 * time.Second

// Process is a part that runs.
type Process struct {
	Name string
	// Log is the file with all that it printed.
	Log  string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// command says what to start.
type command struct {
	name string
	path string
	args []string
	env  []string
	dir  string // for the log
	// ready returns nil when the process serves; nil ready means at once.
	ready func(context.Context) error
}

// start runs a command and waits until it is ready. If it does not become so, the error shows the end of its log.
func start(ctx context.Context, c command) (*Process, error) {
	p := &Process{Name: c.name, Log: filepath.Join(c.dir, c.name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.Log)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(c.path, c.args...)
	p.cmd.Env = append(os.Environ(), c.env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = processAttributes()
	started := make(chan error)
	go func() {
		// Linux sends the death signal when the thread ends that started the child, so this one stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
		_ = log.Close()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	if c.ready == nil {
		return p, nil
	}
	if err := p.waitReady(ctx, c.ready); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

func (p *Process) waitReady(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready (%v). The end of its log:\n%s", p.Name, p.err, p.Tail(15))
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready: %w. The end of its log:\n%s", p.Name, err, p.Tail(15))
		case <-tick.C:
		}
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Tail returns the last lines of the log.
func (p *Process) Tail(lines int) string {
	raw, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Stop asks the process to end, and ends it if it does not.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopGrace):
		p.Kill()
	}
}

// Kill ends the process at once, with SIGKILL.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// freePort returns a port on loopback that nothing listens on. Another process may take it before it is used; parts that can
// choose a port themselves should.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// answers returns a readiness check that wants status 200 of a URL.
func answers(url string) func(context.Context) error {
	client := &http.Client{Timeout: time.Second}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}
}
