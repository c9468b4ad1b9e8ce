// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func shell(t *testing.T, script string, ready func(context.Context) error) (*Process, error) {
	t.Helper()
	return start(t.Context(), command{name: "part", path: "/bin/sh", args: []string{"-c", script}, dir: t.TempDir(), ready: ready})
}

func TestStartSaysWhyAPartEnded(t *testing.T) {
	_, err := shell(t, "echo the port is taken; exit 3", func(context.Context) error { return errors.New("nobody answers") })
	if err == nil {
		t.Fatal("a part that ended passed as ready")
	}
	for _, want := range []string{"part ended", "exit status 3", "the port is taken"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := start(ctx, command{name: "part", path: "/bin/sh", args: []string{"-c", "exec sleep 60"}, dir: t.TempDir(), ready: func(context.Context) error {
		cancel()
		return errors.New("nobody answers")
	}})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nobody answers") {
		t.Errorf("got %v", err)
	}
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	dir := t.TempDir()
	p, err := start(t.Context(), command{name: "part", path: "/bin/sh", args: []string{"-c", "sleep 60 & echo $! > " + dir + "/pid; wait"}, dir: dir, ready: hasPID(dir)})
	if err != nil {
		t.Fatal(err)
	}
	child, err := readPID(dir)
	if err != nil {
		t.Fatal(err)
	}
	p.Stop()
	waitGone(t, child)
	p.Stop() // again, and nothing happens
}

// waitGone waits until a process has ended. Whoever is to reap it may be slow, so a zombie counts.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	err := poll(t.Context(), 10*time.Millisecond, func(context.Context) error {
		out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		if err != nil || strings.HasPrefix(string(out), "Z") {
			return nil // ps knows no such process
		}
		return fmt.Errorf("process %d is still there: %s", pid, out)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestFreePort(t *testing.T) {
	seen := map[int]bool{}
	for range 100 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("port %d was given twice", port)
		}
		seen[port] = true
		// Another fleet asks in the same way, before the part listens.
		if mark, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = mark.Close()
			t.Fatalf("port %d is another fleet's for the asking", port)
		}
	}
}

// hasPID is the readiness of a part that writes a number into the file pid.
func hasPID(dir string) func(context.Context) error {
	return func(context.Context) error {
		_, err := readPID(dir)
		return err
	}
}

func readPID(dir string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(raw)))
}
