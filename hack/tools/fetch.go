// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// Environment variables that decide whether the programs are downloaded or built.
const (
	// envWay names a way; empty means wayEither.
	envWay = "CHANDLER_TOOLS"
	// envMirror is the address of a mirror with everything by its host: $CHANDLER_TOOLS_MIRROR/github.com/..., and
	// the images as a registry.
	envMirror = "CHANDLER_TOOLS_MIRROR"
	// envPins is a file to read instead of pins.yaml.
	envPins = "CHANDLER_TOOLS_PINS"
)

// way says whether programs are downloaded or built.
type way string

const (
	wayEither   way = ""         // downloaded, and built where that cannot be
	wayBuild    way = "build"    // never downloaded
	wayDownload way = "download" // never built
)

func wayFromEnv() (way, error) {
	how := way(os.Getenv(envWay))
	if how != wayEither && how != wayBuild && how != wayDownload {
		return "", fmt.Errorf("$%s is %q: it is %q, %q or empty", envWay, how, wayBuild, wayDownload)
	}
	return how, nil
}

// fetch downloads as many of the items as it can, and returns those that must still be made. It prints which way it
// takes, and why.
func fetch(ctx context.Context, out io.Writer, how way, cache string, items []item) ([]item, error) {
	programs := slices.DeleteFunc(slices.Clone(items), func(i item) bool { return i.part == nil || i.prebuilt })
	if len(programs) == 0 {
		return items, nil
	}
	if how == wayBuild {
		fmt.Fprintf(out, "tools: building %s, as $%s says; each takes minutes while Go's build cache is cold\n", names(programs), envWay)
		return items, nil
	}
	fmt.Fprintf(out, "tools: downloading %s into %s, by pinned digest; $%s=%s builds them instead\n", names(programs), cache, envWay, wayBuild)
	err := downloadAll(ctx, out, cache, programs)
	if err != nil && (how == wayDownload || ctx.Err() != nil || !errors.Is(err, errNoDownloader)) {
		return nil, err
	}
	if err != nil {
		fmt.Fprintln(out, "tools: not downloaded:", err)
	}
	there := func(i item) bool { return !i.missing() }
	left := slices.DeleteFunc(programs, there)
	if len(left) > 0 && how == wayDownload {
		return nil, fmt.Errorf("%s cannot be downloaded, and are not built, as $%s says", names(left), envWay)
	}
	if len(left) > 0 {
		fmt.Fprintf(out, "tools: building %s; each takes minutes while Go's build cache is cold\n", names(left))
	}
	return slices.DeleteFunc(items, there), nil
}

var (
	// errNoDownloader says that the downloading program could not be built.
	errNoDownloader = errors.New("cannot build hack/tools/fetch")
	// errFetch says that the downloading program failed, and has printed why.
	errFetch = errors.New("see above")
)

// downloadAll runs the program in the folder fetch, which downloads what it can. If downloadAll returns an error,
// nothing may be built in place of the download.
func downloadAll(ctx context.Context, out io.Writer, cache string, programs []item) error {
	args := []string{"-mirror", os.Getenv(envMirror)}
	for _, each := range programs {
		version, err := version(ctx, *each.part)
		if err != nil {
			return err
		}
		args = append(args, fmt.Sprintf("%s@%s=%s", each.name, version, each.folder))
	}
	err := runFetch(ctx, out, cache, args)
	if errors.Is(err, errFetch) {
		return fmt.Errorf("%w; `%s=%s make tools` does without downloads", err, envWay, wayBuild)
	}
	return err
}

// pin writes the digests of what the publishers have, for the versions in use, into the pins.
func pin(ctx context.Context, out io.Writer, only []string) error {
	var args []string
	for _, part := range parts.All() {
		if len(only) > 0 && !slices.Contains(only, part.Name) {
			continue
		}
		version, err := version(ctx, part)
		if err != nil {
			return err
		}
		args = append(args, part.Name+"@"+version)
	}
	return runFetch(ctx, out, os.TempDir(), append([]string{"-pin", "-mirror", os.Getenv(envMirror)}, args...))
}

// rehearse serves the programs in the cache on loopback, as their projects publish them, and runs a command with an
// empty cache and $CHANDLER_TOOLS=download: `go run ./hack/tools rehearse make demo ARGS=--once`.
func rehearse(ctx context.Context, out io.Writer, command []string) error {
	args := []string{"-rehearse"}
	for _, part := range parts.All() {
		path, err := part.Binary()
		if err != nil {
			return err
		}
		if _, err := os.Stat(path); err != nil {
			continue
		}
		version, err := version(ctx, part)
		if err != nil {
			return err
		}
		args = append(args, fmt.Sprintf("%s@%s=%s", part.Name, version, path))
	}
	return runFetch(ctx, out, os.TempDir(), append(append(args, "--"), command...))
}

// runFetch builds the program in the folder fetch, below the folder temp, and runs it.
func runFetch(ctx context.Context, out io.Writer, temp string, args []string) error {
	source, err := parts.PinsDir("fetch")
	if err != nil {
		return err
	}
	pins := os.Getenv(envPins)
	if pins == "" {
		pins = filepath.Join(filepath.Dir(source), "pins.yaml")
	}
	if pins, err = filepath.Abs(pins); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(temp, tempPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "fetch")
	if _, err := goCommand(ctx, source, nil, "build", "-o", binary, "."); err != nil {
		return fmt.Errorf("%w: %w", errNoDownloader, err)
	}
	cmd := exec.CommandContext(ctx, binary, append([]string{"-pins", pins}, args...)...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) && ctx.Err() == nil {
		return errFetch
	}
	return err
}

// version returns the version of a part, which is that of its package's module.
func version(ctx context.Context, part parts.Part) (string, error) {
	dir, err := parts.PinsDir(part.Pins)
	if err != nil {
		return "", err
	}
	output, err := goCommand(ctx, dir, nil, "mod", "edit", "-json")
	if err != nil {
		return "", err
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(output, &file); err != nil {
		return "", fmt.Errorf("go mod edit -json in %s: %w", dir, err)
	}
	for _, module := range file.Require {
		if part.Package == module.Path || strings.HasPrefix(part.Package, module.Path+"/") {
			return module.Version, nil
		}
	}
	return "", fmt.Errorf("%s requires no module with %s", dir, part.Package)
}

func names(items []item) string {
	var list []string
	for _, each := range items {
		list = append(list, each.name)
	}
	return strings.Join(list, ", ")
}
