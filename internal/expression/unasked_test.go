// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"strings"
	"testing"
)

// TestUnasked: of a cluster that the hub cannot ask, what only the cluster knows is an error and not 0, by which a condition would come
// out as if it were known. What is known all the same is no error.
func TestUnasked(t *testing.T) {
	c := &Cluster{Name: "eu-1", Provider: "WorkloadIdentity", Unasked: true}
	known := *c
	known.Version, known.KubernetesVersion = Version{Major: 1, Minor: 33, Git: "v1.33.0"}, "v1.33.0"
	for text, says := range map[string]string{
		"<< cluster.version.minor >= 33 >>":                              "cluster.version is not known",
		"<< cluster.version >>":                                          "cluster.version is not known",
		"<< cluster.kubernetesVersion >>":                                "cluster.kubernetesVersion is not known",
		"<< cluster.nodes > 2 >>":                                        "cluster.nodes is not known",
		"<< cluster.uid >>":                                              "cluster.uid is not known",
		"<< dyn(cluster).version.minor >>":                               "cluster.version is not known",
		"<< cluster.hubEndpoint + cluster.provider >>":                   "",
		"<< has(cluster.version) ? cluster.version.minor : 30 >>":        "",
		"<< cluster.?version.optMap(v, v.minor >= 33).orValue(false) >>": "",
	} {
		t.Run(text, func(t *testing.T) {
			template, e := Compile(text)
			if e != nil {
				t.Fatal(e)
			}
			_, err := template.Eval(Input{Cluster: c})
			if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
				t.Errorf("got %v, want %q", err, says)
			}
			if _, err := template.Eval(Input{Cluster: &known}); err != nil && strings.Contains(text, "ersion") {
				t.Errorf("the version is known, and still: %v", err)
			}
		})
	}
}
