// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a process may take to end by itself.
	stopGrace = 10 * time.Second
	// readyTimeout is far more than any part takes, even where many start at once on a small machine that has much else to do.
	readyTimeout = 5 * time.Minute
	// answerTimeout is for one request that asks whether a part is ready. A handshake takes seconds where the processor is busy.
	answerTimeout = 10 * time.Second
	// tailLines of a log are shown of a part that failed.
	tailLines = 15
)

// frugal is what API servers, etcd and Flux run with where twenty of them share two cores: they collect garbage more seldom, and each has
// one core. It saves a sixth of their processor time.
var frugal = []string{"GOGC=800", "GOMEMLIMIT=600MiB", "GOMAXPROCS=1"}

// Process is a part that runs.
type Process struct {
	Name string
	// Log is the file with all that it printed.
	Log     string
	cmd     *exec.Cmd
	stopped atomic.Bool // we asked for its end
	done    chan struct{}
	err     error // set when done is closed
	began   time.Time
}

// command says what to start.
type command struct {
	name string
	path string
	args []string
	env  []string
	dir  string // for the log
	// asReleased leaves CHANDLER_FRUGAL out: the hub takes what users see.
	asReleased bool
	// ready returns nil when the process serves; nil ready means at once.
	ready func(context.Context) error
}

// start runs a command and waits until it is ready. If it does not become so, the error shows the end of its log.
func start(ctx context.Context, c command) (*Process, error) {
	p := &Process{Name: c.name, Log: filepath.Join(c.dir, c.name+".log"), done: make(chan struct{}), began: time.Now()}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) // a part that is started again goes on in it
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(c.path, c.args...)
	p.cmd.Env = append(os.Environ(), c.env...)
	if !c.asReleased && os.Getenv("CHANDLER_FRUGAL") != "" {
		p.cmd.Env = append(p.cmd.Env, frugal...)
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = processAttributes()
	started := make(chan error)
	go func() {
		// Linux sends the death signal when the thread that started the child ends, so this thread must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			p.note()
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.done:
			cancel(p.Err())
		case <-ctx.Done():
		}
	}()
	err := poll(ctx, 50*time.Millisecond, ready)
	select {
	case <-p.done:
		return fmt.Errorf("before it was ready, %w", p.Err())
	default:
	}
	if err != nil {
		return fmt.Errorf("%s did not become ready: %w. The end of its log:\n%s", p.Name, err, p.Tail(tailLines))
	}
	return nil
}

// PID is the number by which the operating system knows it.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// CPU is the processor time that the process has spent so far, by /proc/PID/stat.
func (p *Process) CPU() (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0, err
	}
	// The name, in brackets, may hold spaces; utime and stime are the 12th and 13th field after it, in hundredths of a second.
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", p.PID(), len(fields))
	}
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, err
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}

// note writes into the file that CHANDLER_COSTS names what processor time the process took, in seconds: for who wants to know what a test
// costs, and where.
func (p *Process) note() {
	file := os.Getenv("CHANDLER_COSTS")
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return // it is no part of the test
	}
	spent := p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	_, _ = fmt.Fprintf(f, "%.2f %.1f %s %s\n", spent.Seconds(), time.Since(p.began).Seconds(), filepath.Base(filepath.Dir(p.Log)), p.Name)
	_ = f.Close()
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended, with the end of its log. It waits for that.
func (p *Process) Err() error {
	<-p.done
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended (%s). The end of its log:\n%s", p.Name, how, p.Tail(tailLines))
}

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
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopGrace):
		p.Kill()
	}
}

// Kill ends the process at once, with SIGKILL.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// signal ends the process's group, which is its own and so holds its children too.
func (p *Process) signal(s syscall.Signal) {
	p.stopped.Store(true)
	select {
	case <-p.done: // its number may belong to another process by now
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// poll calls f until it returns nil. The error is f's last one, which says more than that time is up.
func poll(ctx context.Context, interval time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last error
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

// answers returns a readiness check that wants status 200 of a URL.
func answers(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
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
