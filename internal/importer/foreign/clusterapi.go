// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// clusterResourceSet writes a set for a ClusterResourceSet of Cluster API.
func (w *writer) clusterResourceSet(u *unstructured.Unstructured) error {
	in := struct {
		ClusterSelector metav1.LabelSelector `json:"clusterSelector"`
		Resources       []struct{ Kind, Name string }
		Strategy        string
	}{}
	if err := read(spec(u), &in); err != nil {
		return err
	}
	w.selects(&in.ClusterSelector)
	var from []any
	for _, r := range in.Resources {
		from = append(from, map[string]any{"kind": r.Kind, "name": r.Name})
	}
	if len(from) == 0 {
		return nil
	}
	body := map[string]any{"manifestsFrom": from, "strategy": cmp.Or(in.Strategy, "ApplyOnce")}
	w.set.Spec.Addons = []hubv1.Addon{{Name: u.GetName(), AddonBody: hubv1.AddonBody{Manifests: object(body)}}}
	w.set.Spec.DeletionPolicy = hubv1.DeletionPolicyOrphan // a ClusterResourceSet removes nothing
	w.unread(spec(u), "spec.", "clusterSelector", "resources", "strategy")
	return nil
}

// helmChartProxy writes a set for a HelmChartProxy of Cluster API's add-on provider for Helm.
func (w *writer) helmChartProxy(u *unstructured.Unstructured) error {
	in := struct {
		ClusterSelector                                                     metav1.LabelSelector `json:"clusterSelector"`
		ChartName, RepoURL, ReleaseName, Namespace, Version, ValuesTemplate string
	}{}
	if err := read(spec(u), &in); err != nil {
		return err
	}
	if in.ChartName == "" || in.RepoURL == "" {
		w.note("spec.chartName or spec.repoURL is missing")
		return nil
	}
	if in.ReleaseName == "" {
		w.note("spec.releaseName is missing, so its releases have generated names: the set installs one more. Write releaseName as it is " +
			"on the clusters")
	}
	w.selects(&in.ClusterSelector)
	w.helm(chart{addon: u.GetName(), url: in.RepoURL, name: in.ChartName, version: in.Version, release: in.ReleaseName,
		namespace: cmp.Or(in.Namespace, "default"), values: w.values(u.GetName(), in.ValuesTemplate, clusterAPI)})
	w.unread(spec(u), "spec.", "clusterSelector", "chartName", "repoURL", "releaseName", "namespace", "version", "valuesTemplate")
	return nil
}
