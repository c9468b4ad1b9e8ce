// SPDX-License-Identifier: Apache-2.0

package register_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/register"
	"github.com/chandler-hub/chandler/internal/must"
)

// kubeconfigFor returns the kubeconfig of a cluster at an address, in base64.
func kubeconfigFor(t *testing.T, server string) string {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Or(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)).Or(t)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: u, user: {token: t}}]}`, server, ca))
}

// try runs the command, with what it writes and its exit code.
func try(args string) (stdout, stderr string, code int) {
	return clitest.Ends(clitest.Root(register.New(clitest.At(time.Time{}), nil)), strings.Fields(args)...)
}

// TestRegisterRule: the table of what a rule matches, with as what each is registered, or why not. Nothing is written.
func TestRegisterRule(t *testing.T) {
	good, local := kubeconfigFor(t, "https://192.0.2.7:6443"), kubeconfigFor(t, "https://127.0.0.1:8443")
	secret := func(namespace, name, more, data string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {namespace: " + namespace + ", name: " + name + ", labels: {app: vcluster" + more + "}}, data: {" + data + "}}"
	}
	h := clitest.NewSmallHub(t, strings.Join([]string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {chandler.dev/register-secrets: 'true'}}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: team-b}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: other, labels: {chandler.dev/register-secrets: 'true'}}}",
		secret("team-a", "vc-one", "", "config: "+good),
		secret("team-a", "vc-two", "", "config: "+local),
		secret("team-a", "vc-three", "", "value: "+good),
		secret("team-a", "vc-four", ", chandler.dev/register: 'false'", "config: "+good),
		secret("team-a", "vc-five", "", "config: "+good),
		secret("team-a", "vc-six", "", "config: "+good),
		secret("team-a", "vc-seven", "", "config: "+good),
		secret("team-a", "one", "", "config: "+good),
		secret("team-b", "vc-one", "", "config: "+good),
		secret("other", "vc-one", "", "config: "+good),
		"{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {namespace: team-a, name: five}, spec: {originRef: {kind: Secret, name: vc-five}}}",
		"{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {namespace: team-a, name: six}, spec: {kubeConfig: {secretRef: {name: mine}}}}",
		"{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {namespace: team-a, name: seven}, spec: {originRef: {kind: Secret, name: other}}}",
	}, "\n---\n"))
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(`rules:
- name: vcluster
  match: {kind: Secret, namespaces: [team-*], labels: {app: vcluster}, names: vc-*}
  register: {name: "*", labels: {tier: dev}, key: config}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := try("register --rule " + file + " --dry-run")
	if code != 0 || !strings.Contains(errs, "kubeconfigs are checked as by a hub without flags") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	clitest.Golden(t, "register-rule.txt", out)
	if out, _, _ := try("register --rule " + file + " --dry-run -n team-b"); strings.Count(out, "\n") != 2 || !strings.Contains(out, "may not register clusters") {
		t.Errorf("of one namespace:\n%s", out)
	}
	if _, errs, code := try("register --rule " + file + " --dry-run -n other"); code != 0 || !strings.Contains(errs, "The rules match nothing here.") {
		t.Errorf("of none: %d %s", code, errs)
	}
	for _, verb := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		if lines := h.Lines(verb); len(lines) > 0 {
			t.Errorf("it writes: %q", lines)
		}
	}
	h.Forbidden = "/namespaces/team-a/secrets/vc-one"
	if out, _, _ := try("register --rule " + file + " --dry-run -n team-a"); !strings.Contains(out, "would be registered as one; its kubeconfig is not checked: you may not read the Secret") {
		t.Errorf("without the right to read a Secret:\n%s", out)
	}
}

// TestRegisterRuleRefuses: what is wrong is said before the hub is asked.
func TestRegisterRuleRefuses(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	file := filepath.Join(t.TempDir(), "rules.yaml")
	must.Do(t, os.WriteFile(file, []byte("rules: [{name: a, match: {kind: Secret, namespaces: [x]}}]"), 0o600))
	for args, want := range map[string]string{
		"register --dry-run":                                  "--dry-run goes with --rule FILE",
		"register edge --dry-run":                             "--dry-run goes with --rule FILE",
		"register --rule " + file:                             "this command only tries them: write --dry-run",
		"register edge --rule " + file + " --dry-run":         "leave out NAME",
		"register --rule " + file + " --dry-run --labels a=b": "--labels is about one cluster, and not about --rule",
		"register --rule /nowhere/r.yaml --dry-run":           "--rule: open /nowhere/r.yaml",
		"register --rule " + file + " --dry-run":              file + `: rule "a": match: it matches every Secret: write labels, owner or names`,
	} {
		_, errs, code := try(args)
		if !strings.Contains(errs, want) || code != exit.Uncertain {
			t.Errorf("%s: exit code %d: %s", args, code, errs)
		}
	}
}
