// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/snapshot"
)

// copies are annotations in which tools keep the whole object.
var copies = map[string]string{
	"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"v1","kind":"Secret","data":{"value":"hunter2"}}`,
	"kapp.k14s.io/original":                            `{"apiVersion":"v1","data":{"value":"hunter2"},"kind":"Secret"}`,
	"objectset.rio.cattle.io/applied":                  "H4sIAhunter2AAAA/6tWSk5NLAEA",
	"example.com/packed":                               "eyJhunter2OiJoIn0=",
	"example.com/inner":                                `{"a":"{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"stringData\":{\"p\":\"hunter2\"}}"}`,
	"example.com/yaml":                                 "apiVersion: v1\nkind: Secret\nstringData:\n  p: hunter2\n",
}

func annotated(kind, namespace string, annotations map[string]string) string {
	text := fmt.Sprintf("%s\nmetadata:\n  name: a\n  namespace: %s\n  labels: {chandler.dev/register: \"true\"}\n  annotations:\n    chandler.dev/kubeconfig-key: mine\n    example.com/owner: us\n",
		kind, namespace)
	for k, v := range annotations {
		text += fmt.Sprintf("    %s: %q\n", k, v)
	}
	return text + "---\n"
}

// TestCopiesAreLeftOut: an export has no annotation that holds a whole object, and of a Secret only what is the hub's.
func TestCopiesAreLeftOut(t *testing.T) {
	const cluster, secret, registration = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster", "apiVersion: v1\nkind: Secret", "apiVersion: chandler.dev/v1alpha1\nkind: ClusterRegistration\nspec: {}"
	for name, tc := range map[string]struct {
		kind string
		kept bool
	}{"Cluster": {cluster, true}, "Registration": {registration, true}, "Secret": {secret, false}} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{"example.com/token": "other"}
			for k, v := range copies {
				annotations[k] = v
			}
			objects, _, err := preview.Parse("in.yaml", []byte(annotated(tc.kind, "fleet", annotations)))
			if err != nil {
				t.Fatal(err)
			}
			if len(objects) == 1 && objects[0].Origin != nil { // as the hub would give it, which leaves out nothing
				all := objects[0].Origin.GetAnnotations()
				for k, v := range annotations {
					all[k] = v
				}
				objects[0].Origin.SetAnnotations(all)
			}
			raw := must.Get(snapshot.Of(objects, nil, nil, time.Now()).Write()).Or(t)
			got := string(raw)
			if strings.Contains(got, "hunter2") || !strings.Contains(got, "chandler.dev/kubeconfig-key: mine") || strings.Contains(got, "example.com/owner") != tc.kept {
				t.Errorf("the export has\n%s", got)
			}
		})
	}
}

// TestSecretOfFiles: also what expressions read of a Secret in a file has no copy of it.
func TestSecretOfFiles(t *testing.T) {
	objects, _, err := preview.Parse("in.yaml", []byte(annotated("apiVersion: v1\nkind: Secret", "fleet", copies)))
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	got := objects[0].Origin.GetAnnotations()
	for k, v := range got {
		if strings.Contains(v, "hunter2") {
			t.Errorf("annotation %s is kept: %s", k, v)
		}
	}
	if got["example.com/owner"] != "us" || got["chandler.dev/kubeconfig-key"] != "mine" {
		t.Errorf("kept are %v", got)
	}
}
