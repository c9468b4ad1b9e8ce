// SPDX-License-Identifier: Apache-2.0

package create

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/must"
)

// run runs the command line with `chandler create`, and returns what it prints.
func run(args ...string) (string, error) {
	out, _, err := clitest.Run([]*cobra.Command{New(factory.New(), nil)}, args...)
	return out, err
}

// TestCreateExamples: each example in the help of `chandler create` works as it is written, and makes what the API server takes.
func TestCreateExamples(t *testing.T) {
	n := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Example == "" || cmd.Long == "" {
			t.Errorf("%s has no example, or no text", cmd.CommandPath())
		}
		for _, line := range strings.Split(strings.ReplaceAll(cmd.Example, "\\\n", ""), "\n") {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			n++
			out, err := run(append(clitest.Words(line)[1:], "--export")...)
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			wantAccepted(t, line, out)
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(New(factory.New(), nil))
	if n < 8 {
		t.Errorf("only %d examples were tried", n)
	}
}

// wantAccepted holds the hub's own kinds in a stream of YAML to the schemas of their CRDs.
func wantAccepted(t *testing.T, what, stream string) {
	t.Helper()
	for _, doc := range strings.Split(stream, "---\n") {
		for _, kind := range []string{"Team", "AddonSet"} {
			if !strings.Contains(doc, "\nkind: "+kind+"\n") {
				continue
			}
			schema := crdschema.Ours(kind)
			if err := schema.Refuses([]byte(doc)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// TestCreate: what the commands print for Git.
func TestCreate(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	must.Do(t, os.WriteFile(values, []byte("replicas: 2\nbig: 9007199254740993\nnothing: null\n"), 0o600))
	for name, args := range map[string]string{
		"team":       "team shop --selector env=staging --team-namespace shop-team,shop-ci --cluster-namespace apps --cluster-namespace jobs --pod-security restricted --network-policy Isolated --allow-source https://git.example.org/shop/* --source-kind GitRepository --quota requests.cpu=8,pods=50 --group shop-devs --user ann@example.org --labels owner=shop --require-verification --delete-namespaces --cluster-role edit",
		"team-small": "team shop --all",
		"set-helm":   "set monitoring -l tier=prod --from-helm https://charts.example.org/stable/prometheus --chart-version 1.x --target-namespace monitoring --release-name prom --interval 1h --secret-ref charts --depends-on base --orphan --values " + values,
		"set-oci":    "set podinfo --all --from-helm oci://ghcr.io/stefanprodan/charts/podinfo --chart-version 6.5.0 -n shop",
		"set-git":    "set policies -l tier=prod --from-git ssh://git@git.example.org/fleet --tag-semver >=1.0.0 --path ./policies --secret-ref fleet-key --addon rules",
		"set-source": "set hello --all --source GitRepository/fleet --chart ./charts/hello",
		"set-folder": "set hello --all --source OCIRepository/fleet --path ./hello --target-namespace hello",
	} {
		t.Run(name, func(t *testing.T) {
			out := must.Get(run(append(append([]string{"create"}, strings.Fields(args)...), "--export")...)).Or(t)
			wantAccepted(t, name, out)
			clitest.Golden(t, name+".yaml", out)
		})
	}
}

// TestCreateOfWhat: a kind that is not there is told with those that are.
func TestCreateOfWhat(t *testing.T) {
	for args, want := range map[string]string{
		"create cluster x": `create: there is no "cluster": write one of set, team`,
	} {
		if _, err := run(strings.Fields(args)...); err == nil || err.Error() != want {
			t.Errorf("%s says %v, and not %s", args, err, want)
		}
	}
}

// TestCreateRefuses: what is wrong is told with the flag and what to write, before anything is printed.
func TestCreateRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"team":                                  "create team: write the name of the team: chandler create team NAME (-l LABELS | --all) [flags]",
		"team shop":                             "which clusters? Write --selector, such as --selector env=staging, or --all for every cluster",
		"team shop --all -l a=b":                "--all and --selector exclude each other: write one of them",
		"team shop -l a==b==c":                  `--selector "a==b==c": `,
		"team shop -l =":                        `--selector "=": `,
		"team Shop --all":                       `Team "Shop": the name is not valid: a lowercase RFC 1123 subdomain must`,
		"team shop.x --all":                     `hub namespace "shop.x"`,
		"team default --all":                    `hub namespace "default" is Kubernetes' own`,
		"team default --all --team-namespace x": `Team flux-system/default: metadata.name: is "default"`,
		"team shop --all --team-namespace kube-system":                                     `hub namespace "kube-system" is Kubernetes' own, and a team's people read Secrets in theirs`,
		"team shop --all --team-namespace flux-system":                                     `hub namespace "flux-system" is the Team's own, a platform namespace`,
		"team shop --all --team-namespace chandler-system":                                 `Team flux-system/shop: `,
		"team shop --all -n elsewhere":                                                     `Team elsewhere/shop: namespace "elsewhere" is not a platform namespace, so it governs nothing`,
		"team shop --all --pod-security strict":                                            `Team flux-system/shop: spec.namespaces[0].podSecurity: is "strict": write one of privileged, baseline or restricted`,
		"team shop --all --network-policy Open":                                            `spec.namespaces[0].networkPolicy: is "Open"`,
		"team shop --all --cluster-namespace kube-system":                                  `Team flux-system/shop: spec.namespaces[kube-system].name: `,
		"team shop --all --allow-source x":                                                 `spec.sources.allow[0]: is "x": is not a URL with scheme and host`,
		"team shop --all --quota cpu=much":                                                 `Team flux-system/shop: `,
		"set x --all":                                                                      "what is it to deliver? Write --from-helm",
		"set x --all --from-helm https://a.example.org/b --from-git https://c.example.org": "--from-helm and --from-git exclude each other",
		"set x --all --from-helm charts/hello":                                             `--from-helm "charts/hello" is not an address: write one that begins with https://, http://, oci://`,
		"set x --all --from-helm https://charts.example.org/":                              `names no chart`,
		"set x --all --from-helm https://charts.example.org":                               `names no chart`,
		"set x --all --from-helm https://me:hunter2@charts.example.org/hello":              "--from-helm holds a user or a password: put them into a Secret, and name that by --secret-ref",
		"set x --all --from-helm ftp://me:hunter2@charts.example.org/hello":                `--from-helm "…@charts.example.org/hello" is not an address`,
		"set x --all --from-helm oci://ghcr.io/x/y":                                        "which version? Write --chart-version",
		"set x --all --from-helm https://a.example.org/b --path ./x":                       "--path does not go with --from-helm",
		"set x --all --from-git https://a.example.org/b":                                   "which of its content? Write --branch, --tag or --tag-semver",
		"set x --all --from-git https://a.example.org/b --branch a --chart c":              "--chart does not go with --from-git",
		"set x --all --from-oci oci://a.example.org/b --branch a":                          "--branch does not go with --from-oci: write --tag or --tag-semver",
		"set x --all --source charts":                                                      `--source "charts": write KIND/NAME, such as HelmRepository/podinfo`,
		"set x --all --source HelmRepository/charts":                                       "which chart of --source HelmRepository/charts? Write --chart",
		"set x --all --source HelmRepository/charts --chart a --values none.yaml":          "--values: open none.yaml",
		"set x --all --from-helm https://a.example.org/b --addon B_":                       `"B_" is no name for an add-on`,
		"set x --all --from-helm https://a.example.org/Hello":                              `"Hello" is no name for an add-on: write one by --addon`,
	} {
		t.Run(args, func(t *testing.T) {
			out, err := run(append(append([]string{"create"}, strings.Fields(args)...), "--export")...)
			if err == nil || !strings.Contains(err.Error(), want) || out != "" {
				t.Errorf("says %v, and not %q; prints %q", err, want, out)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it holds the password: %v", err)
			}
		})
	}
}
