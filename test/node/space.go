// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

const (
	// envStage says to a program that Enter starts which part of the way in it is.
	envStage = "CHANDLER_NODE_STAGE"
	// envDir is the folder of the place.
	envDir = "CHANDLER_NODE_DIR"

	// envMachine is the name of the machine that stageMachine is for.
	envMachine = "CHANDLER_NODE_MACHINE"

	stageSetUp   = "set-up"
	stageInside  = "inside"
	stageMachine = "machine"

	// prefix of the names of folders and cgroups.
	prefix = "chandler-node-"
)

// Inside is true in a place for a node.
func Inside() bool { return os.Getenv(envStage) == stageInside }

// Entering is true where Enter has started this program, and Main has to be called.
func Entering() bool { return os.Getenv(envStage) != "" }

// Dir is the folder of the place, in which everything goes that is to go with it.
func Dir() string { return os.Getenv(envDir) }

// Tests are those of a package: a testing.M, or what runs one.
type Tests interface{ Run() int }

// Main runs the tests of a package in a place for a node, and removes the place. prepare runs before, outside, where
// there is a network; it may put things into the folder. If the machine can run no node, the tests are skipped by Require.
func Main(m Tests, prepare func(ctx context.Context, dir string) error) int {
	switch os.Getenv(envStage) {
	case stageSetUp:
		fmt.Fprintln(os.Stderr, "node:", setUp()) // it only returns if it fails
		return 1
	case stageMachine:
		fmt.Fprintln(os.Stderr, "node:", setUpMachine(os.Getenv(envMachine))) // likewise
		return 1
	case stageInside:
		return m.Run()
	}
	if Missing() != nil {
		return m.Run()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := Enter(ctx, prepare, os.Args[1:]...); err != nil {
		var ended *exec.ExitError
		if errors.As(err, &ended) && ended.Exited() {
			return ended.ExitCode()
		}
		fmt.Fprintln(os.Stderr, "node:", err)
		return 1
	}
	return 0
}

// Enter runs this program again in a place for a node, and removes the place with all that is in it.
func Enter(ctx context.Context, prepare func(ctx context.Context, dir string) error, args ...string) (err error) {
	removeAbandoned()
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return err
	}
	unlock, err := hold(dir)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	defer unlock()
	defer func() { err = errors.Join(err, removePlace(dir)) }()
	if err := buildPause(ctx, dir); err != nil {
		return err
	}
	if prepare != nil {
		if err := prepare(ctx, dir); err != nil {
			return err
		}
	}
	return enter(ctx, dir, args)
}

// machineFile is where a machine of its own in this place says under which number its first process runs, once it is set up.
func machineFile(name string) string { return filepath.Join(Dir(), name, "pid") }

func buildPause(ctx context.Context, dir string) error {
	return Build(ctx, "./test/node/pause", filepath.Join(dir, "pause"))
}

// Build builds a program of this checkout as the image of a release has it: static, for a file system with nothing else.
func Build(ctx context.Context, pkg, path string, ldflags ...string) error {
	root, err := parts.Root()
	if err != nil {
		return err
	}
	flags := "-s -w"
	for _, each := range ldflags {
		flags += " " + each
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", flags, "-o", path, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// removeAbandoned removes the places of runs that were killed.
func removeAbandoned() {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range old {
		unlock, err := hold(dir)
		if err != nil {
			continue // somebody is in there
		}
		_ = removePlace(dir)
		unlock()
	}
}

func removePlace(dir string) error {
	return errors.Join(removeCgroups(filepath.Base(dir)), os.RemoveAll(dir))
}

// hold takes a place for this process. The kernel lets go of it even if the process is killed.
func hold(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}
