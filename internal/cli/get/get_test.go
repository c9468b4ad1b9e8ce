// SPDX-License-Identifier: Apache-2.0

package get_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/get"
	"github.com/chandler-hub/chandler/internal/must"
)

// noon is the time of the commands.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// run runs `chandler get`.
func run(args ...string) (out, errs string, err error) {
	return clitest.Run([]*cobra.Command{get.New(clitest.At(noon), nil)}, append([]string{"get"}, args...)...)
}

// TestGet: what `chandler get` prints of a hub.
func TestGet(t *testing.T) {
	clitest.NewListedHub(t)
	for name, args := range map[string]string{
		"clusters":           "clusters",
		"clusters-wide":      "clusters -A -o wide",
		"clusters-namespace": "clusters -n fleet",
		"clusters-failed":    "clusters --failed --no-headers",
		"clusters-labels":    "clusters -l tier=prod -o name",
		"clusters-none":      "clusters -n nowhere",
		"clusters-names":     "clusters fleet/berlin edge1 other",
		"clusters-missing":   "clusters edge1 -n fleet",
		"cluster-yaml":       "cluster fleet/new -o yaml",
		"clusters-yaml":      "clusters -l tier=prod -o yaml",
		"clusters-json":      "clusters berlin new -o json",
		"sets":               "sets",
		"sets-wide":          "sets -o wide",
		"sets-failed":        "sets --failed",
		"addons":             "addons",
		"addons-cluster":     "addons edge1 -o wide",
		"addons-labels":      "addons --selector tier=prod --addon web",
		"addons-failed":      "addons --failed",
		"addons-name":        "addons stores/edge1 -o name",
		"addons-json":        "addons edge1 --addon dns -o json",
		"addons-yaml":        "addons berlin --addon web -o yaml",
		"addons-none":        "addons new",
		"addons-missing":     "addons other",
		"clusters-kubectl":   "clusters clusterregistration.chandler.dev/berlin",
		"sets-kubectl":       "sets addonset.chandler.dev/base",
		"addons-kubectl":     "addons clusterregistration.chandler.dev/edge1 --set addonset.chandler.dev/base",
		"set-missing":        "addons --set nosuch",
		"set-missing-there":  "addons --set platform/base",
		"set-missing-json":   "addons edge1 --set base -n platform -o json",
		"set-missing-watch":  "addons --set nosuch -w",
		"set-none":           "addons --set platform/monitoring -l tier=edge",
		"wrong-set":          "addons --set platform/base -n fleet",
		"wrong-set-name":     "addons --set a/b/c",
		"wrong-output":       "clusters -o xml",
		"wrong-namespace":    "clusters -A -n fleet",
		"wrong-label":        "clusters -l a=b=c",
		"wrong-name":         "clusters a/b/c",
		"wrong-watch":        "clusters -w -o json",
		"wrong-kind":         "nodes",
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, err := run(strings.Fields(args)...)
			text := "$ chandler get " + args + "\n" + out
			if errs != "" {
				text += "--- stderr\n" + errs
			}
			if err != nil {
				text += fmt.Sprintf("--- ends with: %v\n", err)
			}
			clitest.Golden(t, name+".txt", text)
		})
	}
}

// TestGetReadsPages: a fleet is read page by page, and one cluster without the others.
func TestGetReadsPages(t *testing.T) {
	h := clitest.NewListedHub(t)
	const clusters = 1200
	for i := range clusters {
		h.Add(t, fmt.Sprintf(`{apiVersion: chandler.dev/v1alpha1, kind: AddonDelivery, metadata: {name: d%d, namespace: flux-system, labels: {chandler.dev/cluster: c%d}},
  spec: {registrationRef: {namespace: fleet, name: c%d}, addonSetRef: {name: base}}, status: {addons: [{name: web, state: Ready}]}}`, i, i, i))
	}
	out, _, err := run("addons", "--no-headers")
	if lines := strings.Count(out, "\n"); err != nil || lines != clusters+4 || h.Most != 500 {
		t.Errorf("it prints %d lines, reads %d objects at once, and ends with %v", lines, h.Most, err)
	}
	if out, _, err = run("addons", "--no-headers", "-o", "json"); err != nil || !json.Valid([]byte(out)) {
		t.Errorf("as JSON it ends with %v", err)
	}
	h.Asked, h.Most = nil, 0
	if out, _, err = run("addons", "c7", "--no-headers"); err != nil || !strings.HasPrefix(out, "fleet/c7") || h.Most != 1 || len(h.Asked) != 1 {
		t.Errorf("of one cluster it prints %q, reads %d objects by %q, and ends with %v", out, h.Most, h.Asked, err)
	}
}

// TestGetWatch: a line is printed when it says something else, and when its object is gone; when the API server has forgotten, everything
// is read again.
func TestGetWatch(t *testing.T) {
	h := clitest.NewListedHub(t)
	event := func(typ, change string, i int) string {
		u := h.Objects[i].DeepCopy()
		u.SetResourceVersion("8")
		if change != "" {
			must.Do(t, unstructured.SetNestedField(u.Object, change, "status", "kubernetesVersion"))
		}
		raw := must.Get(json.Marshal(map[string]any{"type": typ, "object": u.Object})).Or(t)
		return string(raw)
	}
	h.Watched = []string{event("MODIFIED", "", 0), event("MODIFIED", "v1.37.0", 0), event("BOOKMARK", "", 0), event("DELETED", "", 2)}
	cmd := clitest.Root(get.New(clitest.At(noon), nil))
	out := &clitest.Output{}
	cmd.SetArgs([]string{"get", "clusters", "-n", "fleet", "-w"})
	cmd.SetOut(out)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	const printed = 7 // the heading, two clusters, what the watch brings of both, and both once more after the second list
	for until := time.Now().Add(20 * time.Second); strings.Count(out.String(), "\n") < printed && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
	}
	stop()
	must.Do(t, <-done)
	clitest.Golden(t, "watch.txt", out.String())
}
