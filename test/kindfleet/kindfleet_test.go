// SPDX-License-Identifier: Apache-2.0

package kindfleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/test/kindfleet"
)

func TestPreflight(t *testing.T) {
	all := []string{"docker", "kind", "kubectl", "helm"}
	for name, tc := range map[string]struct {
		there []string
		dead  bool
		want  []string
	}{
		"All":       {all, false, nil},
		"NoKind":    {[]string{"docker", "kubectl", "helm"}, false, []string{"kind is not in the PATH (go install sigs.k8s.io/kind@latest)"}},
		"NoDaemon":  {all, true, []string{"the Docker daemon does not answer: start it"}},
		"NoDocker":  {all[1:], true, []string{"docker is not in the PATH (install Docker)"}},
		"Nothing":   {nil, true, []string{"docker is not in", "kind is not in", "kubectl is not in", "helm is not in"}},
		"DeadNoCLI": {[]string{"docker", "kubectl"}, true, []string{"the Docker daemon does not answer", "kind is not in", "helm is not in"}},
	} {
		look := func(program string) (string, error) {
			if slices.Contains(tc.there, program) {
				return "/bin/" + program, nil
			}
			return "", errors.New("not found")
		}
		run := func(...string) error {
			if tc.dead {
				return errors.New("no daemon")
			}
			return nil
		}
		err := kindfleet.Preflight(look, run)
		if (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: want %q on one line, got %q", name, want, err)
			}
		}
	}
}

func TestPlan(t *testing.T) {
	o := kindfleet.Options{Name: "n", Root: "/src", Dir: "/dir", Modules: map[string]string{"kamaji": "/mod/kamaji"}, Tests: []string{"test", "./e2e/kamaji"}}
	p := kindfleet.New(o)
	var names []string
	for _, s := range p.Steps {
		names = append(names, s.Name)
	}
	for _, order := range [][2]string{
		{"build the hub's image", "load the image into it"}, {"create the cluster", "load the image into it"}, {"load the image into it", "install the hub"},
		{"wait for cert-manager", "install Kamaji"}, {"install source-controller", "install the hub"}, {"install Kamaji", "install the hub"}, {"install the hub", "run the tests"},
	} {
		first, then := slices.Index(names, order[0]), slices.Index(names, order[1])
		if first < 0 || then < 0 || first > then {
			t.Errorf("%q does not come before %q in %v", order[0], order[1], names)
		}
	}
	var out strings.Builder
	p.Write(&out)
	for _, want := range []string{"export KUBECONFIG=/dir/kubeconfig\n", "helm upgrade --install kamaji /mod/kamaji/charts/kamaji", "--set image.repository=chandler-hub", "go test ./e2e/kamaji\n", "kind delete cluster --name n\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	o.Keep = true
	if kept := kindfleet.New(o); len(kept.After) != 0 {
		t.Errorf("a cluster that is to be kept: %v", kept.After)
	}
}

// What is made is taken away again, whatever failed on the way, and the error says which command it was.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	p := kindfleet.Plan{
		Env: []string{"WHO=me"},
		Steps: []kindfleet.Step{
			{Name: "read", Argv: []string{"sh", "-c", "cat > got; echo $WHO >> got"}, Stdin: "text "},
			{Name: "in the end", Argv: []string{"sh", "-c", "echo x >> tried; test $(wc -l < tried) = 3"}, Tries: 3},
			{Name: "fail", Argv: []string{"sh", "-c", "echo why; exit 3"}},
			{Name: "never", Argv: []string{"touch", "never"}},
		},
		After: []kindfleet.Step{{Name: "clean", Argv: []string{"touch", "clean"}}},
	}
	var out strings.Builder
	err := p.Run(t.Context(), dir, &out)
	if err == nil || !strings.HasPrefix(err.Error(), "fail: sh -c 'echo why; exit 3': exit status 3") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(out.String(), "==> fail\nwhy\n") {
		t.Errorf("printed %q", out.String())
	}
	if got, err := os.ReadFile(filepath.Join(dir, "got")); err != nil || string(got) != "text me\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "never")); err == nil {
		t.Error("it went on after a failure")
	}
	if _, err := os.Stat(filepath.Join(dir, "clean")); err != nil {
		t.Error("it left what it had made")
	}
}

func TestPrepare(t *testing.T) {
	o := kindfleet.Options{Dir: t.TempDir(), Modules: map[string]string{}}
	for _, c := range kindfleet.FluxControllers {
		o.Modules[c] = t.TempDir()
		if err := os.MkdirAll(filepath.Join(o.Modules[c], "config", "manager"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := kindfleet.Prepare(o); err != nil {
		t.Fatal(err)
	}
	for _, c := range kindfleet.FluxControllers {
		for _, path := range []string{"config/manager", "overlay/kustomization.yaml", "overlay/namespace.yaml"} {
			if _, err := os.Stat(filepath.Join(o.Dir, c, path)); err != nil {
				t.Error(err)
			}
		}
	}
}
