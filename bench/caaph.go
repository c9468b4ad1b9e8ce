// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"

	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// addonProvider is Cluster API's add-on provider for Helm: one HelmChartProxy for each add-on, which makes a
// HelmReleaseProxy for each Cluster. The clusters' control planes are not there yet, so that it makes these objects and
// does not go on to Helm's work, which Flux does for the others.
func addonProvider() peer {
	const group = "addons.cluster.x-k8s.io/v1alpha1"
	return peer{
		made:  []schema.GroupVersionResource{{Group: "addons.cluster.x-k8s.io", Version: "v1alpha1", Resource: "helmreleaseproxies"}},
		label: "cluster.x-k8s.io/cluster-name",
		crds:  []string{parts.ClusterAPICRDs},
		args: func(dir string) ([]string, error) {
			certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
			if err != nil {
				return nil, err
			}
			port, err := localfleet.FreePort()
			if err != nil {
				return nil, err
			}
			args := []string{"--diagnostics-address=0", "--health-addr=127.0.0.1:0", fmt.Sprintf("--webhook-port=%d", port),
				"--webhook-cert-dir=" + dir}
			return args, errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600),
				os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
		},
		inputs: schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "clusters"},
		input: func(name string) *unstructured.Unstructured {
			o := object("cluster.x-k8s.io/v1beta2", "Cluster", name, map[string]any{"fleet": "yes", "region": "eu"}, map[string]any{
				"clusterNetwork": map[string]any{"serviceDomain": "cluster.local"}})
			o.Object["status"] = map[string]any{"initialization": map[string]any{"controlPlaneInitialized": false}}
			return o
		},
		rules: func(addons int, color string) (out []*unstructured.Unstructured) {
			for i := range addons {
				out = append(out, object(group, "HelmChartProxy", addonName(i), nil, map[string]any{
					"clusterSelector": map[string]any{"matchLabels": map[string]any{"fleet": "yes"}},
					"chartName":       "settings", "repoURL": "http://127.0.0.1:1", "version": "1.0.0",
					"releaseName": addonName(i), "namespace": addonName(i),
					"valuesTemplate": "color: " + color + "\ncluster: {{ .Cluster.metadata.name }}\n" +
						"region: {{ .Cluster.metadata.labels.region }}\nresources: {limits: {cpu: 100m, memory: 128Mi}}\n",
				}))
				color = "v0"
			}
			return out
		},
	}
}
