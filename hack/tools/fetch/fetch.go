// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// atOnce bounds how many programs are downloaded at the same time.
	atOnce = 4
	// reportEvery is how often a run says that it still downloads.
	reportEvery = 15 * time.Second
)

// fetchAll downloads what can be had, and says of the rest why it has to be built. The error is of what must not be built over: bytes
// that are not the pinned ones.
func fetchAll(ctx context.Context, out io.Writer, d *downloader, pins map[string]Pin, wants []want) error {
	log := &progress{out: out, missing: map[string][]string{}, running: map[string]bool{}}
	defer log.everyNow(reportEvery)()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, w := range wants {
		from, err := pins[w.name].source(w.version, d.on)
		if err != nil {
			log.failed(w.name, err)
			continue
		}
		group.Go(func() error {
			start := time.Now()
			log.started(w.name)
			size, err := d.fetch(ctx, from, w)
			log.ended(w.name)
			var why unavailable
			switch {
			case errors.As(err, &why):
				log.failed(w.name, why)
				return nil
			case err != nil:
				return fmt.Errorf("%s: %w", w.name, err)
			}
			log.say("%s %s downloaded, %d MB in %s", w.name, w.version, size>>20, time.Since(start).Round(100*time.Millisecond))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	log.summary()
	return nil
}

// fetch downloads a program into a folder beside its own, and then moves it there. size is the program's.
func (d *downloader) fetch(ctx context.Context, from source, w want) (size int64, err error) {
	temp, err := os.MkdirTemp(filepath.Dir(w.folder), "tmp-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temp)
	work, made := filepath.Join(temp, "work"), filepath.Join(temp, "made")
	for _, dir := range []string{work, made} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return 0, err
		}
	}
	program := filepath.Join(made, w.name)
	if err := d.program(ctx, from, work, program); err != nil {
		return 0, err
	}
	info, err := os.Stat(program)
	if err != nil {
		return 0, err
	}
	// A folder is there already where somebody removed just the program from it.
	if err := os.RemoveAll(w.folder); err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(made, w.folder)
}

// progress prints what happens, one line at a time.
type progress struct {
	mu  sync.Mutex
	out io.Writer
	// missing is the names of what was not had, by the reason.
	missing map[string][]string
	running map[string]bool
}

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "tools: "+format+"\n", args...)
}

func (p *progress) started(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[name] = true
}

func (p *progress) ended(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, name)
}

func (p *progress) failed(name string, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missing[why.Error()] = append(p.missing[why.Error()], name)
}

// summary says once for each reason what was not had.
func (p *progress) summary() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, why := range slices.Sorted(maps.Keys(p.missing)) {
		fmt.Fprintf(p.out, "tools: not downloaded: %s (%s)\n", strings.Join(slices.Sorted(slices.Values(p.missing[why])), ", "), why)
	}
}

// everyNow says from time to time what is being downloaded, until stop is called.
func (p *progress) everyNow(interval time.Duration) (stop func()) {
	done, ticker := make(chan struct{}), time.NewTicker(interval)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p.mu.Lock()
				if len(p.running) > 0 {
					fmt.Fprintln(p.out, "tools: still downloading", strings.Join(slices.Sorted(maps.Keys(p.running)), ", "))
				}
				p.mu.Unlock()
			}
		}
	}()
	return func() { close(done) }
}
