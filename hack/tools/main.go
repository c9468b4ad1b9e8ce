// SPDX-License-Identifier: Apache-2.0

// Command tools puts the real programs that the local fleet and the tests run (etcd, Kubernetes, Flux, kwok, Cluster
// API) into a cache outside the checkout, together with the files that go with them (mostly CRDs). It downloads the
// programs that have a digest in pins.yaml, and builds the others and those whose download fails. It leaves alone
// what is there already, so it can run before every test. Package parts knows what there is, and finds it.
//
//	go run ./hack/tools [-print] [NAME...]
//	go run ./hack/tools pin [NAME...]
//	go run ./hack/tools rehearse COMMAND...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// tempPrefix marks a folder of the cache that a run works in.
const tempPrefix = "tmp-"

// item is a program or a set of files for the cache.
type item struct {
	name string
	// path is what users of the item look for: a binary, or a folder of files.
	path string
	// folder is the folder in the cache. It must appear as a whole or not at all.
	folder string
	// prebuilt is true if the path is outside the cache.
	prebuilt bool
	// part is the program; nil for files.
	part *parts.Part
	// make fills the empty folder out. work is another empty folder, which is thrown away afterwards.
	make func(ctx context.Context, work, out string) error
}

func (i item) missing() bool {
	_, err := os.Stat(i.path)
	return err != nil
}

func main() {
	printOnly := flag.Bool("print", false, "build nothing, print the name and the path of each; fail if one is missing")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "go run ./hack/tools [-print] [NAME...]: downloads or builds what is missing, or only the named")
		fmt.Fprintln(flag.CommandLine.Output(), "go run ./hack/tools pin [NAME...]: asks the publishers for the digests of the versions in use")
		fmt.Fprintln(flag.CommandLine.Output(),
			"go run ./hack/tools rehearse COMMAND...: publishes what is there on loopback, and runs the command with an empty cache")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := func() error { return run(ctx, os.Stdout, *printOnly, flag.Args()) }
	switch flag.Arg(0) {
	case "pin":
		command = func() error { return pin(ctx, os.Stdout, flag.Args()[1:]) }
	case "rehearse":
		command = func() error { return rehearse(ctx, os.Stdout, flag.Args()[1:]) }
	}
	if err := command(); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		fmt.Fprintln(os.Stderr, "tools:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, printOnly bool, names []string) error {
	how, err := wayFromEnv()
	if err != nil {
		return err
	}
	cache, err := parts.CacheDir()
	if err != nil {
		return err
	}
	items, err := selected(names)
	if err != nil {
		return err
	}
	if printOnly {
		return printPaths(out, items)
	}
	all := len(items)
	if !slices.ContainsFunc(items, item.missing) {
		fmt.Fprintf(out, "tools: all %d are in %s\n", all, cache)
		return nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, out, filepath.Join(cache, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	removeLeftovers(cache)
	// This is checked only now, because the run that had the lock before may have built some of them.
	items = slices.DeleteFunc(items, func(i item) bool { return !i.missing() })
	if len(items) == 0 {
		fmt.Fprintf(out, "tools: all %d are in %s\n", all, cache)
		return nil
	}
	start := time.Now()
	if items, err = fetch(ctx, out, how, cache, items); err != nil {
		return err
	}
	if err := addAll(ctx, out, cache, items); err != nil {
		return err
	}
	fmt.Fprintf(out, "tools: done in %s\n", since(start))
	return nil
}

// addAll builds and copies the items one after the other, because each build uses every core.
func addAll(ctx context.Context, out io.Writer, cache string, items []item) error {
	for n, each := range items {
		began := time.Now()
		if err := add(ctx, out, cache, each); err != nil {
			return fmt.Errorf("%s: %w", each.name, err)
		}
		fmt.Fprintf(out, "tools: %s in %s (%d of %d)\n", each.name, since(began), n+1, len(items))
	}
	return nil
}

// selected returns the items of these names. If there are no names, it returns all but those of a real node.
func selected(names []string) ([]item, error) {
	var items []item
	programs := parts.All()
	if len(names) > 0 {
		programs = append(programs, parts.Node()...)
	}
	for _, p := range programs {
		path, prebuilt := parts.Prebuilt(p.Name)
		if !prebuilt {
			var err error
			if path, err = p.Binary(); err != nil {
				return nil, err
			}
		}
		items = append(items, item{
			name: p.Name, path: path, folder: filepath.Dir(path), prebuilt: prebuilt, part: &p,
			make: func(ctx context.Context, work, out string) error { return build(ctx, p, work, out) },
		})
	}
	for _, s := range parts.AllFiles() {
		dir, err := s.Dir()
		if err != nil {
			return nil, err
		}
		items = append(items, item{
			name: s.Name + "-files", path: dir, folder: dir,
			make: func(ctx context.Context, work, out string) error { return copyFiles(ctx, s, work, out) },
		})
	}
	if len(names) == 0 {
		return items, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(items, func(i item) bool { return i.name == name }) {
			return nil, fmt.Errorf("there is no %q", name)
		}
	}
	return slices.DeleteFunc(items, func(i item) bool { return !slices.Contains(names, i.name) }), nil
}

func printPaths(out io.Writer, items []item) error {
	for _, each := range items {
		fmt.Fprintln(out, each.name, each.path)
	}
	if slices.ContainsFunc(items, item.missing) {
		return errors.New("not all of these are built yet: run `make tools`")
	}
	return nil
}

// add makes an item in a folder of its own and then moves it to its place, so that nobody ever sees an incomplete
// item.
func add(ctx context.Context, out io.Writer, cache string, each item) error {
	if each.prebuilt {
		return fmt.Errorf("%s has gone from $%s", each.path, parts.EnvAssets)
	}
	temp, err := os.MkdirTemp(cache, tempPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	work, made := filepath.Join(temp, "work"), filepath.Join(temp, "made")
	for _, dir := range []string{work, made} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	stop := report(out, each.name)
	err = each.make(ctx, work, made)
	stop()
	if err != nil {
		return err
	}
	// The folder exists if somebody removed only the binary from it.
	if err := os.RemoveAll(each.folder); err != nil {
		return err
	}
	return os.Rename(made, each.folder)
}

// report prints every 15 s that the work goes on, until stop is called.
func report(out io.Writer, name string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	start, ticker := time.Now(), time.NewTicker(15*time.Second)
	go func() {
		defer close(ended)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(out, "tools: still building %s, %s\n", name, since(start))
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// removeLeftovers removes what killed runs left behind. The caller holds the lock, so no other run works there.
func removeLeftovers(cache string) {
	old, _ := filepath.Glob(filepath.Join(cache, tempPrefix+"*"))
	for _, dir := range old {
		// If this fails, only disk space is lost.
		_ = os.RemoveAll(dir)
	}
}

// lock waits until no other run holds the lock. The kernel frees it even if this process is killed. It polls, because
// a blocked flock could not be interrupted.
func lock(ctx context.Context, out io.Writer, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for said := false; ; said = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !said {
			fmt.Fprintln(out, "tools: another run is building, waiting for it")
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func since(start time.Time) time.Duration {
	d := time.Since(start)
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
