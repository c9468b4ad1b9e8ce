// SPDX-License-Identifier: Apache-2.0

package kindfleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// modules are the parts that are installed from the configuration in their modules, by the folder of hack/tools that
// pins them.
var modules = map[string]string{
	parts.SourceController:    "github.com/fluxcd/source-controller",
	parts.KustomizeController: "github.com/fluxcd/kustomize-controller",
	parts.HelmController:      "github.com/fluxcd/helm-controller",
	parts.Kamaji:              "github.com/clastix/kamaji",
}

// Modules downloads the modules to install, at the versions that hack/tools pins, and returns their folders.
func Modules(ctx context.Context, root string) (map[string]string, error) {
	dirs := map[string]string{}
	for name, module := range modules {
		cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
		cmd.Dir = filepath.Join(root, "hack", "tools", name)
		var problem strings.Builder
		cmd.Stderr = &problem
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("download %s: %w: %s", module, err, strings.TrimSpace(problem.String()))
		}
		var got struct{ Dir string }
		if err := json.Unmarshal(out, &got); err != nil {
			return nil, fmt.Errorf("download %s: %w", module, err)
		}
		dirs[name] = got.Dir
	}
	return dirs, nil
}

// Prepare writes the files that the plan's commands read into the options' folder.
func Prepare(o Options) error {
	for _, c := range FluxControllers {
		dir := filepath.Join(o.Dir, c)
		// It is a copy, because kustomize reads files outside a folder only by a path, and takes a path that contains
		// "github.com" for a URL.
		if err := os.CopyFS(filepath.Join(dir, "config"), os.DirFS(filepath.Join(o.Modules[c], "config"))); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(dir, "overlay"), 0o700); err != nil {
			return err
		}
		for name, text := range overlay(c) {
			if err := os.WriteFile(filepath.Join(dir, "overlay", name), []byte(text), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// String returns the step as a person would type it.
func (s Step) String() string {
	words := make([]string, len(s.Argv))
	for i, w := range s.Argv {
		if words[i] = w; strings.ContainsAny(w, " {}[]*$&;|<>") {
			words[i] = "'" + w + "'"
		}
	}
	return strings.Join(words, " ")
}

// Write prints a plan.
func (p Plan) Write(out io.Writer) {
	for _, env := range p.Env {
		_, _ = fmt.Fprintf(out, "export %s\n", env)
	}
	for _, s := range append(append([]Step{}, p.Steps...), p.After...) {
		_, _ = fmt.Fprintf(out, "# %s\n%s", s.Name, s)
		if s.Stdin != "" {
			_, _ = fmt.Fprintf(out, " <<'EOF'\n%sEOF", s.Stdin)
		}
		_, _ = fmt.Fprintln(out)
	}
}

// Run runs a plan, and prints on out each step and how long it took. The output of the commands goes there too. It
// stops at the first command that fails. The steps in After run in any case, also if the context has ended.
func (p Plan) Run(ctx context.Context, dir string, out io.Writer) (err error) {
	defer func() {
		for _, s := range p.After {
			err = errors.Join(err, p.step(context.WithoutCancel(ctx), s, dir, out))
		}
	}()
	for _, s := range p.Steps {
		if err := p.step(ctx, s, dir, out); err != nil {
			return err
		}
	}
	return nil
}

func (p Plan) step(ctx context.Context, s Step, dir string, out io.Writer) error {
	begin := time.Now()
	for try := 1; ; try++ {
		_, _ = fmt.Fprintf(out, "==> %s\n", s.Name)
		cmd := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), p.Env...), out, out
		cmd.Stdin = strings.NewReader(s.Stdin)
		err := cmd.Run()
		if err == nil {
			_, _ = fmt.Fprintf(out, "    %s took %s\n", s.Name, time.Since(begin).Round(time.Second))
			return nil
		}
		if try >= s.Tries || ctx.Err() != nil {
			return fmt.Errorf("%s: %s: %w", s.Name, s, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(p.Pause):
		}
	}
}
