// SPDX-License-Identifier: Apache-2.0

// Command fetch takes programs from where their projects publish them, by pinned digest. hack/tools runs it, and builds what it cannot
// have. It is a module of its own, so that the hub's does not depend on a client of registries.
//
//	fetch [-pins FILE] [-mirror URL] NAME@VERSION=FOLDER...
//	fetch -pin [-pins FILE] NAME@VERSION...
//	fetch -rehearse [-pins FILE] NAME@VERSION=PROGRAM... -- COMMAND...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

func main() {
	pinsFile := flag.String("pins", "pins.yaml", "what is pinned")
	mirror := flag.String("mirror", "", "address below which everything lies by its host: URL/github.com/...; empty for the publishers")
	pin := flag.Bool("pin", false, "ask the publishers for the digests of these versions, and write them to the pins")
	rehearsal := flag.Bool("rehearse", false, "publish programs of this machine on loopback, and run a command that has nothing but those")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := jobFetch
	switch {
	case *pin:
		do = jobPin
	case *rehearsal:
		do = jobRehearse
	}
	if err := run(ctx, os.Stdout, *pinsFile, *mirror, do, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// job is what the program is to do.
type job int

const (
	jobFetch job = iota
	jobPin
	jobRehearse
)

func run(ctx context.Context, out io.Writer, pinsFile, mirror string, do job, args []string) error {
	base, err := parseMirror(mirror)
	if err != nil {
		return err
	}
	var command []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, command = args[:i], args[i+1:]
	}
	wants, err := parseWants(args)
	if err != nil {
		return err
	}
	pins, err := loadPins(pinsFile)
	if err != nil {
		return err
	}
	on := platform{runtime.GOOS, runtime.GOARCH}
	d := &downloader{transport: newTransport(defaultLimits), mirror: base, on: on}
	switch {
	case do == jobPin:
		return pinAll(ctx, out, d, pinsFile, pins, wants)
	case do == jobRehearse && len(command) > 0:
		return rehearse(ctx, out, on, pinsFile, pins, wants, command)
	case do == jobRehearse:
		return errors.New("a rehearsal needs a command")
	}
	return fetchAll(ctx, out, d, pins, wants)
}

// want is a program that is asked for.
type want struct {
	name, version string
	// folder that has to appear with the program in it, at once or not at all. Its parent is there.
	folder string
}

func parseWants(args []string) ([]want, error) {
	var wants []want
	for _, arg := range args {
		named, folder, _ := strings.Cut(arg, "=")
		name, version, ok := strings.Cut(named, "@")
		if !ok || name == "" || version == "" {
			return nil, fmt.Errorf("%q is not NAME@VERSION or NAME@VERSION=FOLDER", arg)
		}
		wants = append(wants, want{name: name, version: version, folder: folder})
	}
	return wants, nil
}

func parseMirror(address string) (*url.URL, error) {
	if address == "" {
		return nil, nil
	}
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil {
		return nil, err
	}
	if base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, errors.New("a mirror is http://HOST or https://HOST, and is not " + address)
	}
	return base, nil
}
