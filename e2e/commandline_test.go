// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// buildCommandLine builds it once for all tests, and returns the binary.
var buildCommandLine = sync.OnceValues(func() (string, error) { return localfleet.BuildCommandLine(context.Background(), workDir) })

// chandler runs the command line and returns what it printed, and its exit code.
func chandler(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	binary, err := buildCommandLine()
	check(t, err)
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// running is a command that goes on while the test looks at what it prints.
type running struct {
	cmd *exec.Cmd
	out *lockedBuffer
}

// lockedBuffer is written and read at the same time.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// chandlerStart starts the command line.
func chandlerStart(t *testing.T, args ...string) *running {
	t.Helper()
	binary, err := buildCommandLine()
	check(t, err)
	r := &running{cmd: exec.CommandContext(t.Context(), binary, args...), out: &lockedBuffer{}}
	r.cmd.Stdout, r.cmd.Stderr = r.out, r.out
	check(t, r.cmd.Start())
	return r
}

// says waits for a line with a text, and returns the line.
func (r *running) says(t *testing.T, text string) (line string) {
	t.Helper()
	soon(t, "it says "+text, func() error {
		for l := range strings.Lines(r.out.String()) {
			if line = strings.TrimSpace(l); strings.Contains(line, text) {
				return nil
			}
		}
		return fmt.Errorf("it says\n%s", r.out)
	})
	return line
}

// ends waits for its end, and returns all that it has printed.
func (r *running) ends(t *testing.T, code int) string {
	t.Helper()
	_ = r.cmd.Wait()
	t.Logf("%s\n%s", strings.Join(r.cmd.Args[1:], " "), r.out)
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("chandler %s: exit code %d, want %d:\n%s", strings.Join(r.cmd.Args[1:], " "), got, code, r.out)
	}
	return r.out.String()
}

// TestCommandLine holds the command line to the hub: what is previewed from files is what the hub has made, to the byte, and
// what is explained is what is there.
func TestCommandLine(t *testing.T) {
	beside(t)
	g := startGeneration(t, "hub-commands")
	ctx := t.Context()
	g.apply(t, strings.NewReplacer("gen-layers", "cmd-layers", "name: layers", "name: commands").Replace(layersSet)+`    - name: objects
      when: "<< cluster.labels.region == 'eu' >>"
      addons: [{name: cmd-objects, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: cmd-objects}, data: {a: overlay}}]}}]
---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: more, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  addons:
    - {name: cmd-extra, when: "<< cluster.labels.region == 'eu' >>", manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: cmd-extra}}]}}
`)
	soon(t, "the mistake in it is told", func() error {
		set := addonSet("flux-system", "commands")
		if err := condition(ctx, g.Client, set, hubv1.StalledCondition, "True", hubv1.InvalidSpecReason); err != nil {
			return err
		}
		for _, c := range set.Status.Conditions {
			if c.Type == hubv1.StalledCondition && strings.Contains(c.Message, `overlay "objects", add-on "cmd-objects": there is no add-on of that name in this set`) {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", set.Status.Conditions)
	})
	g.apply(t, strings.NewReplacer("gen-layers", "cmd-layers", "name: layers", "name: commands").Replace(layersSet))
	g.patchRegistration(t, "one", `{"spec":{"overrides":[{"name":"cmd-layers","helmRelease":{"values":{"size":9007199254740993}},"reason":"a test"}]}}`)
	soon(t, "all is delivered", func() error {
		return errors.Join(g.addonOf(ctx, "one", "commands", "cmd-layers", hubv1.AddonReady, ""), g.addonOf(ctx, "two", "commands", "cmd-layers", hubv1.AddonReady, ""),
			g.addonOf(ctx, "one", "more", "cmd-extra", hubv1.AddonReady, ""))
	})

	t.Run("render", func(t *testing.T) {
		dir := t.TempDir()
		g.save(t, filepath.Join(dir, "fleet.yaml"))
		soon(t, "the preview is what the hub has made", func() error {
			out, errs, code := chandler(t, "render", "-f", dir, "--platform-namespaces=flux-system,platform", "--secret-namespaces=*")
			if code != 0 {
				return fmt.Errorf("exit code %d: %s", code, errs)
			}
			return g.sameAsLive(t, out)
		})
		bad := filepath.Join(dir, "bad.yaml")
		check(t, os.WriteFile(bad, []byte("apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: bad, namespace: flux-system}\nspec: {selectAll: true, addons: [{name: x, helmRelease: {chrat: {}}}]}\n"), 0o600))
		out, errs, code := chandler(t, "render", "-f", dir, "--platform-namespaces=flux-system,platform", "--secret-namespaces=*")
		if want := `error: AddonSet flux-system/bad: add-on "x": helmRelease.chrat: is not a field of a Flux HelmRelease`; code != 1 || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, want 1 and %q:\n%s", code, want, errs)
		}
		check(t, g.sameAsLive(t, out))
	})

	t.Run("get", func(t *testing.T) {
		flags := []string{"--kubeconfig", g.KubeconfigFile()}
		for args, wants := range map[string][]string{
			"get clusters":                              {"one", "two", "True"},
			"get clusters one -o name":                  {"clusterregistration.chandler.dev/one"},
			"get sets -n flux-system --no-headers":      {"commands", "more"},
			"get addons one":                            {"cmd-layers", "cmd-extra", "Ready"},
			"get addons -l region=eu --addon cmd-extra": {"/one", "Ready"},
			"get addons one --addon cmd-layers -o json": {`"addonSet": "flux-system/commands"`, `"state": "Ready"`},
		} {
			soon(t, args, func() error {
				out, errs, code := chandler(t, append(strings.Fields(args), flags...)...)
				if code != 0 {
					return fmt.Errorf("exit code %d: %s", code, errs)
				}
				for _, want := range wants {
					if !strings.Contains(out, want) {
						return fmt.Errorf("it does not say %q:\n%s", want, out)
					}
				}
				return nil
			})
		}
		if _, errs, code := chandler(t, append([]string{"get", "addons", "three"}, flags...)...); code != 1 || !strings.Contains(errs, `no cluster "three"`) {
			t.Errorf("an unknown cluster: exit code %d: %s", code, errs)
		}
		watch := chandlerStart(t, append([]string{"get", "clusters", "one", "-w", "-o", "wide"}, flags...)...)
		watch.says(t, "one")
		if out, errs, code := chandler(t, append([]string{"pause", "cluster", "one", "--until", "2099-01-01T00:00:00Z", "--reason", "a test"}, flags...)...); code != 0 {
			t.Errorf("pause: exit code %d: %s%s", code, out, errs)
		}
		watch.says(t, "2099-01-01T00:00:00Z")
		watch.says(t, "Paused")
		if out, errs, code := chandler(t, append([]string{"resume", "cluster", "one"}, flags...)...); code != 0 {
			t.Errorf("resume: exit code %d: %s%s", code, out, errs)
		}
		check(t, watch.cmd.Process.Signal(os.Interrupt))
		watch.ends(t, 0)
	})

	t.Run("explain", func(t *testing.T) {
		flags := []string{"--kubeconfig", g.KubeconfigFile(), "--platform-namespaces=flux-system,platform"}
		for args, wants := range map[string][]string{
			"explain one":            {"cmd-layers", "flux-system/commands", "Ready"},
			"explain two":            {"cmd-extra", "Excluded", "its when is not true here"},
			"explain two cmd-layers": {"hello two.example.com", `overlay "us"`, "the set"},
			"explain one cmd-layers": {"9007199254740993", "the cluster's override"},
			"explain one --tree":     {"├─ AddonSet flux-system/commands  Ready=True", "HelmRelease flux-system/", "Ready=True ("},
		} {
			soon(t, args, func() error { // the override may still be on its way, which it would say
				out, errs, code := chandler(t, append(strings.Fields(args), flags...)...)
				if code != 0 {
					return fmt.Errorf("exit code %d: %s", code, errs)
				}
				for _, want := range wants {
					if !strings.Contains(out, want) {
						return fmt.Errorf("it does not say %q:\n%s", want, out)
					}
				}
				return nil
			})
		}
		if _, errs, code := chandler(t, append([]string{"explain", "three"}, flags...)...); code != 1 || !strings.Contains(errs, "one") || !strings.Contains(errs, "two") {
			t.Errorf("an unknown cluster: exit code %d: %s", code, errs)
		}
	})
	t.Run("reconcile", g.reconciles)
	t.Run("events", g.happened)
	g.patchRegistration(t, "one", `{"spec":{"overrides":null}}`)
	t.Run("diff", g.diffs)
	t.Run("objects", g.diffsObjects)
	t.Run("register", g.registers)
	g.remove(t, "flux-system", "commands")
	g.remove(t, "flux-system", "more")
}

// save writes what a repository would hold into a file, and what the hub found out about the clusters.
func (g *generation) save(t *testing.T, path string) {
	t.Helper()
	var b strings.Builder
	for kind, apiVersion := range map[string]string{"AddonSet": "chandler.dev/v1alpha1", "ClusterRegistration": "chandler.dev/v1alpha1", "ConfigMap": "v1", "Secret": "v1"} {
		list := unstructuredList(apiVersion, kind)
		check(t, g.Client.List(t.Context(), list))
		for i := range list.Items {
			u := &list.Items[i]
			if kind == "Secret" && u.GetNamespace() != "fleet" || kind == "ConfigMap" && u.GetNamespace() != "flux-system" {
				continue
			}
			u.SetManagedFields(nil)
			raw, err := yaml.Marshal(u.Object)
			check(t, err)
			b.WriteString("---\n" + string(raw))
		}
	}
	check(t, os.WriteFile(path, []byte(b.String()), 0o600))
}

// sameAsLive compares the HelmReleases in a stream of YAML with those on the hub.
func (g *generation) sameAsLive(t *testing.T, stream string) error {
	live := &helmv2.HelmReleaseList{}
	if err := g.Client.List(t.Context(), live, client.HasLabels{hubv1.ClusterKeyLabel}); err != nil {
		return err
	}
	want := map[string]string{}
	for i := range live.Items {
		want[live.Items[i].Name] = live.Items[i].Annotations[hubv1.HashAnnotation]
	}
	got := map[string]string{}
	for _, doc := range strings.Split(stream, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return err
		}
		if u.GetKind() == "HelmRelease" {
			got[u.GetName()] = u.GetAnnotations()[hubv1.HashAnnotation]
		}
	}
	if len(want) == 0 || fmt.Sprint(want) != fmt.Sprint(got) {
		return fmt.Errorf("the hub has %v, and the preview %v", want, got)
	}
	return nil
}
