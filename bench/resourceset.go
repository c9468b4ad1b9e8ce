// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// resourceSet is the ResourceSet of Flux Operator: one input for each cluster, as its docs have it for what comes and
// goes, and one ResourceSet with the Flux objects of a cluster.
func resourceSet() peer {
	const group = "fluxcd.controlplane.io/v1"
	return peer{
		made:  kinds,
		label: "cluster",
		crds:  []string{parts.SourceController, parts.KustomizeController, parts.HelmController},
		args: func(dir string) ([]string, error) {
			return []string{"--enable-leader-election=false", "--web-server-port=0", "--metrics-addr=0", "--health-addr=127.0.0.1:0",
				"--storage-path=" + filepath.Join(dir, "storage")}, nil
		},
		env:    []string{"RUNTIME_NAMESPACE=" + sets, "GODEBUG=fips140=on"}, // it does not start without
		inputs: schema.GroupVersionResource{Group: "fluxcd.controlplane.io", Version: "v1", Resource: "resourcesetinputproviders"},
		input: func(name string) *unstructured.Unstructured {
			return object(group, "ResourceSetInputProvider", name, map[string]any{"fleet": "yes"}, map[string]any{
				"type": "Static", "defaultValues": map[string]any{"name": name, "region": "eu"}})
		},
		rules: func(addons int, color string) []*unstructured.Unstructured {
			var resources []any
			for i := range addons {
				resources = append(resources, fluxObject(addonName(i), i%2 == 0, color))
				color = "v0" // only the first one changes
			}
			return []*unstructured.Unstructured{object(group, "ResourceSet", setName, nil, map[string]any{
				"inputsFrom": []any{map[string]any{"kind": "ResourceSetInputProvider",
					"selector": map[string]any{"matchLabels": map[string]any{"fleet": "yes"}}}},
				"resources": resources,
			})}
		},
	}
}

// fluxObject is a template of a Flux object with the same spec as the hub writes for the bench's set.
func fluxObject(addon string, chart bool, color string) map[string]any {
	kubeconfig := map[string]any{"secretRef": map[string]any{"name": "<< inputs.name >>-kubeconfig"}}
	spec := map[string]any{"interval": "10m", "kubeConfig": kubeconfig}
	o := map[string]any{"spec": spec, "metadata": map[string]any{"name": addon + "-<< inputs.name >>", "namespace": sets,
		"labels": map[string]any{"cluster": "<< inputs.name >>"}}}
	if !chart {
		o["apiVersion"], o["kind"] = "kustomize.toolkit.fluxcd.io/v1", "Kustomization"
		spec["path"], spec["prune"] = "./bench", true
		spec["sourceRef"] = map[string]any{"kind": "GitRepository", "name": "fleet"}
		spec["postBuild"] = map[string]any{"substitute": map[string]any{"name": addon + "-<< inputs.name >>", "color": color}}
		return o
	}
	o["apiVersion"], o["kind"] = "helm.toolkit.fluxcd.io/v2", "HelmRelease"
	spec["releaseName"], spec["targetNamespace"], spec["storageNamespace"] = addon, addon, addon
	spec["driftDetection"] = map[string]any{"mode": "enabled"}
	spec["install"] = map[string]any{"createNamespace": true, "strategy": map[string]any{"name": "RetryOnFailure"}}
	spec["upgrade"] = map[string]any{"strategy": map[string]any{"name": "RetryOnFailure"}}
	source := map[string]any{"kind": "HelmRepository", "name": "charts"}
	spec["chart"] = map[string]any{"spec": map[string]any{"chart": "settings", "sourceRef": source}}
	spec["values"] = map[string]any{"color": color, "cluster": "<< inputs.name >>", "region": "<< inputs.region >>",
		"resources": map[string]any{"limits": map[string]any{"cpu": "100m", "memory": "128Mi"}}}
	return o
}

// object returns an object in the namespace of the sets.
func object(apiVersion, kind, name string, labels, spec map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"namespace": sets, "name": name}
	if labels != nil {
		metadata["labels"] = labels
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata, "spec": spec}}
}
