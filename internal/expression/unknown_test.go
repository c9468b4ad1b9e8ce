// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"testing"
)

// TestUnknown: what nobody knows of a cluster is an error that names it, and not 0, by which a condition would come out as if it were
// known. An expression that comes out without it is no error.
func TestUnknown(t *testing.T) {
	lack := Lack{Why: "it has not answered"}
	c := &Cluster{Name: "eu-1", Provider: "Secret", Unknown: map[string]Lack{"version": lack, "kubernetesVersion": lack, "nodes": lack,
		"uid": lack, "apiServer": lack, "podCIDRs": lack}}
	known := &Cluster{Version: Version{Major: 1, Minor: 33, Git: "v1.33.0"}, KubernetesVersion: "v1.33.0", Nodes: 3, UID: "u",
		APIServer: Endpoint{Host: "h", Port: 1}}
	for text, fact := range map[string]string{
		"<< cluster.version.minor >= 33 >>":                              "cluster.version",
		"<< cluster.version.minor >= 33 ? '2.x' : '1.x' >>":              "cluster.version",
		"<< cluster.version >>":                                          "cluster.version",
		"<< cluster.kubernetesVersion >>":                                "cluster.kubernetesVersion",
		"<< cluster.nodes > 2 >>":                                        "cluster.nodes",
		"<< cluster.uid >>":                                              "cluster.uid",
		"<< dyn(cluster).version.minor >>":                               "cluster.version",
		"https://<< cluster.apiServer.host >>:6443":                      "cluster.apiServer",
		"<< [cluster.apiServer.port] >>":                                 "cluster.apiServer",
		"<< {'p': cluster.podCIDRs} >>":                                  "cluster.podCIDRs",
		"<< cluster.podCIDRs + [] >>":                                    "cluster.podCIDRs",
		"<< cluster.podCIDRs.map(c, c + 'x') >>":                         "cluster.podCIDRs",
		"<< cluster.podCIDRs.exists(c, c == 'x') >>":                     "cluster.podCIDRs",
		"<< cel.bind(v, cluster.version, v.minor) >>":                    "cluster.version",
		"<< cluster.nodes > 2 || false >>":                               "cluster.nodes",
		"<< has(cluster.version.minor) >>":                               "cluster.version",
		"<< cluster >>":                                                  "cluster.uid",
		"<< cluster.nodes > 2 || true >>":                                "",
		"<< false && cluster.nodes > 2 >>":                               "",
		"<< true ? 1 : cluster.nodes >>":                                 "",
		"<< cluster.hubEndpoint + cluster.provider >>":                   "",
		"<< has(cluster.version) ? cluster.version.minor : 30 >>":        "",
		"<< cluster.?version.optMap(v, v.minor >= 33).orValue(false) >>": "",
		"<< cluster.?nodes.orValue(3) >>":                                "",
	} {
		t.Run(text, func(t *testing.T) {
			template, e := Compile(text)
			if e != nil {
				t.Fatal(e)
			}
			_, err := template.Eval(Input{Cluster: c})
			var unknown *Unknown
			switch {
			case fact == "" && err != nil:
				t.Errorf("got %v", err)
			case fact != "" && (!errors.As(err, &unknown) || unknown.Fact != fact || unknown.Lack != lack):
				t.Errorf("got %v, want that %s is not known", err, fact)
			}
			if _, err := template.Eval(Input{Cluster: known}); err != nil {
				t.Errorf("all is known, and still: %v", err)
			}
		})
	}
}

// TestNoNodes: that a cluster has no nodes is known, as of a control plane without workers: it is not what somebody says for as long as it is not known.
func TestNoNodes(t *testing.T) {
	for text, want := range map[string]any{
		"<< cluster.nodes >>":             int64(0),
		"<< has(cluster.nodes) >>":        true,
		"<< cluster.?nodes.orValue(3) >>": int64(0),
		"<< cluster.?nodes >>":            int64(0),
		"<< has(cluster.provider) >>":     false,
	} {
		template := compiled(t, text)
		if got, err := template.Eval(Input{Cluster: &Cluster{Name: "c1"}}); err != nil || got != want {
			t.Errorf("%s gives %v, want %v; %v", text, got, want, err)
		}
	}
}
