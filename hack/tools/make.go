// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// tailLines is how much of a failed command's output is shown.
const tailLines = 25

// build builds a part into the folder out, with a copy of its pins in the folder work. A go.mod without the indirect
// requirements needs -mod=mod, which may write to the pins, and must not do so in the checkout.
func build(ctx context.Context, part parts.Part, work, out string) error {
	if err := copyPins(part.Pins, work); err != nil {
		return err
	}
	// The projects build what they publish without C.
	env := []string{"CGO_ENABLED=0"}
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=400") // It saves the compiler a twentieth of its work.
	}
	_, err := goCommand(ctx, work, env, "build", "-mod=mod", "-trimpath", "-buildvcs=false", "-ldflags", part.LDFlags,
		"-o", filepath.Join(out, part.Name), part.Package)
	return err
}

func copyPins(pins, work string) error {
	dir, err := parts.PinsDir(pins)
	if err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(work, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copyFiles copies the files of a set into the folder out.
func copyFiles(ctx context.Context, set parts.FileSet, work, out string) error {
	if err := copyPins(set.Pins, work); err != nil {
		return err
	}
	dir, err := download(ctx, work, set.Module)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(set.Files)))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no %s", set.Module, set.Files)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			if err := os.CopyFS(filepath.Join(out, filepath.Base(file)), os.DirFS(file)); err != nil {
				return err
			}
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, filepath.Base(file)), withoutConversion(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// download returns the folder of a module in the module cache. Go checks it against the go.sum in work.
func download(ctx context.Context, work, module string) (string, error) {
	output, err := goCommand(ctx, work, nil, "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var got struct{ Dir string }
	if err := json.Unmarshal(output, &got); err != nil {
		return "", fmt.Errorf("go mod download -json %s: %w", module, err)
	}
	return got.Dir, nil
}

// withoutConversion removes spec.conversion from a CRD. Kamaji's CRD names a webhook that only the operator's chart
// installs, and Cluster API adds one when it is packaged. Without these webhooks, an API server could not serve the
// objects in any version but the stored one. Without the stanza, it only changes their apiVersion. The CRDs come from
// generators that write one key per line and indent by two, so no YAML parser is needed, and the rest stays as it is.
func withoutConversion(crd []byte) []byte {
	var kept bytes.Buffer
	inSpec, inConversion := false, false
	for line := range bytes.Lines(crd) {
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		text := strings.TrimSpace(string(line))
		switch {
		case text == "":
		case indent == 0:
			inSpec, inConversion = text == "spec:", false
		case indent == 2:
			inConversion = inSpec && text == "conversion:"
		}
		if !inConversion {
			kept.Write(line)
		}
	}
	return kept.Bytes()
}

// goCommand runs go in dir, with env added to the environment, and returns its standard output. The error has the command and the end of
// its output.
func goCommand(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// A workspace around the cache folder must not change the build.
	cmd.Env = append(append(cmd.Environ(), "GOWORK=off"), env...)
	// Go removes its temporary files on an interrupt, and not when it is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		// Both, as `go mod download -json` reports its errors in its JSON.
		return nil, fmt.Errorf("%s: %w\n%s", commandLine(args), err, tail(stdout.String()+stderr.String()))
	}
	return stdout.Bytes(), nil
}

// commandLine returns a command as a person would type it.
func commandLine(args []string) string {
	var line strings.Builder
	line.WriteString("go")
	for _, arg := range args {
		if strings.Contains(arg, " ") {
			arg = "'" + arg + "'"
		}
		line.WriteString(" " + arg)
	}
	return line.String()
}

// tail returns the last lines of a text.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return strings.Join(lines, "\n")
}
