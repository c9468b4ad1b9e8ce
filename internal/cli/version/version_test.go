// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/version"
)

// deployment is one with a label and an image.
func deployment(namespace, name, label, image string) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: %s, name: %s, labels: {%s}}, "+
		"spec: {template: {spec: {containers: [{name: a, image: %s}]}}}}", namespace, name, label, image)
}

// TestVersionNotKnown: which versions are not known is said on stderr, also if the API server answers and has nothing with a version.
func TestVersionNotKnown(t *testing.T) {
	const (
		noHub = "the version of the hub is not known: there is no Deployment with label app.kubernetes.io/name=chandler " +
			"in namespace chandler-system (--hub-namespace)"
		noFlux = "the version of Flux is not known: there is no Deployment with label app.kubernetes.io/part-of=flux " +
			"in namespace flux-system (--flux-namespace)"
	)
	hub := deployment("chandler-system", "chandler", "app.kubernetes.io/name: chandler", "r.example.org/hub:v1.2.3")
	flux := deployment("flux-system", "helm-controller", "app.kubernetes.io/part-of: flux", "r.example.org/helm:v1.4.0")
	other := deployment("default", "other", "app: other", "r.example.org/other:v1")
	for name, tc := range map[string]struct {
		objects, args, out string
		errs               []string
	}{
		"neither": {other, "", "", []string{noHub, noFlux}},
		"hub":     {hub, "", "hub v1.2.3\n", []string{noFlux}},
		"flux":    {flux, "", "flux helm-controller v1.4.0\n", []string{noHub}},
		"both":    {hub + "\n---\n" + flux, "", "hub v1.2.3\nflux helm-controller v1.4.0\n", nil},
		"client":  {other, " --client", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			clitest.NewSmallHub(t, tc.objects)
			ends := func(args string) string {
				out, errs, code := clitest.Ends(clitest.Root(version.New(clitest.At(time.Time{}), nil)), strings.Fields("version"+tc.args+args)...)
				want := ""
				for _, e := range tc.errs {
					want += e + "\n"
				}
				if code != 0 || errs != want {
					t.Errorf("exit code %d, and stderr\n%s\nwant\n%s", code, errs, want)
				}
				return out
			}
			out := ends("")
			if _, rest, _ := strings.Cut(out, "\n"); rest != tc.out {
				t.Errorf("it prints\n%s\nwant, after its first line,\n%s", out, tc.out)
			}
			out = ends(" -o json")
			var d version.Document
			if err := json.Unmarshal([]byte(out), &d); err != nil || d.Unknown != strings.Join(tc.errs, "; ") {
				t.Errorf("as JSON it is not known because of %q, and ends with %v", d.Unknown, err)
			}
		})
	}
}
