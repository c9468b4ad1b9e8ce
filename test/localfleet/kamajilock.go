// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// lockKamaji waits until no other fleet of this machine runs Kamaji. The kernel gives the lock back even if this process is killed.
func lockKamaji(ctx context.Context, waiting func(holder string)) (unlock func(), err error) {
	cache, err := parts.CacheDir()
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(cache, ".kamaji.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	unlock = func() { _ = file.Close() }
	if err := waitForLock(ctx, file, waiting); err != nil {
		unlock()
		return nil, err
	}
	if err := portIsFree(); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

func waitForLock(ctx context.Context, file *os.File, waiting func(string)) error {
	for said := false; ; said = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return sign(file)
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("lock %s: %w", file.Name(), err)
		}
		holder := holderOf(file)
		if !said && waiting != nil {
			waiting(holder)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while Kamaji, which can run once on a machine, runs for %s", context.Cause(ctx), holder)
		case <-time.After(200 * time.Millisecond): // a blocked flock could not be interrupted
		}
	}
}

// sign writes the name of the lock's holder into the file, for those who wait.
func sign(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt(fmt.Appendf(nil, "%s (process %d)", filepath.Base(os.Args[0]), os.Getpid()), 0)
	return err
}

func holderOf(file *os.File) string {
	raw, err := io.ReadAll(io.NewSectionReader(file, 0, 1024))
	if holder := strings.TrimSpace(string(raw)); err == nil && holder != "" {
		return holder
	}
	return "another process"
}

// portIsFree returns an error if another program, without the lock, has Kamaji's port. Otherwise only Kamaji's log
// would say so, later.
func portIsFree() error {
	_, port, _ := net.SplitHostPort(kamajiAddress)
	l, err := net.Listen("tcp", ":"+port) // as Kamaji does, on every interface
	if err != nil {
		return fmt.Errorf("port %s is taken, and Kamaji takes no other: %w", port, err)
	}
	return l.Close()
}
