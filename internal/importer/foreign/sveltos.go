// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// profile writes a set for a ClusterProfile or Profile of Sveltos.
func (w *writer) profile(u *unstructured.Unstructured) error {
	in := struct {
		ClusterSelector      any    `json:"clusterSelector"`
		SyncMode             string `json:"syncMode"`
		StopMatchingBehavior string `json:"stopMatchingBehavior"`
		Tier                 int32  `json:"tier"`
		DependsOn            []string
		HelmCharts           []sveltosChart `json:"helmCharts"`
		PolicyRefs           []sveltosRef   `json:"policyRefs"`
		KustomizationRefs    []sveltosRef   `json:"kustomizationRefs"`
	}{}
	if err := read(spec(u), &in); err != nil {
		return err
	}
	selector := &metav1.LabelSelector{}
	if text, ok := in.ClusterSelector.(string); ok { // v1alpha1
		parsed, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			return err
		}
		selector = parsed
	} else if err := read(in.ClusterSelector, selector); err != nil {
		return err
	}
	w.selects(selector)
	for _, c := range in.HelmCharts {
		w.sveltosChart(c)
	}
	if len(in.PolicyRefs) > 0 {
		w.policies(u.GetName(), in.SyncMode, in.PolicyRefs)
	}
	for _, k := range in.KustomizationRefs {
		body := map[string]any{"interval": "10m", "prune": true, "path": cmp.Or(k.Path, "./"),
			"sourceRef": map[string]any{"kind": k.Kind, "name": k.Name, "namespace": k.Namespace}}
		if k.TargetNamespace != "" {
			body["targetNamespace"] = k.TargetNamespace
		}
		w.set.Spec.Addons = append(w.set.Spec.Addons, hubv1.Addon{Name: k.Name, AddonBody: hubv1.AddonBody{Kustomization: object(body)}})
	}
	if in.StopMatchingBehavior == "LeavePolicies" {
		w.set.Spec.DeletionPolicy = hubv1.DeletionPolicyOrphan
	}
	if in.Tier != 0 {
		w.set.Spec.Priority = 100 - in.Tier // a lower tier wins there, and a higher priority here
	}
	for _, name := range in.DependsOn {
		w.set.Spec.DependsOn = append(w.set.Spec.DependsOn, hubv1.AddonSetReference{Name: name})
	}
	if in.SyncMode == "DryRun" {
		w.note("syncMode DryRun: nothing is delivered there, and the set would deliver. Use chandler render, and pause the set")
	}
	w.unread(spec(u), "spec.", "clusterSelector", "syncMode", "stopMatchingBehavior", "tier", "dependsOn", "helmCharts", "policyRefs",
		"kustomizationRefs")
	return nil
}

type sveltosRef struct{ Kind, Name, Namespace, Path, TargetNamespace, DeploymentType string }

type sveltosChart struct {
	RepositoryURL, RepositoryName, ChartName, ChartVersion, ReleaseName, ReleaseNamespace, HelmChartAction, Values string
	ValuesFrom                                                                                                     []sveltosRef
}

func (w *writer) sveltosChart(c sveltosChart) {
	name := c.ChartName[strings.LastIndex(c.ChartName, "/")+1:]
	if c.HelmChartAction == "Uninstall" {
		w.note("chart %s: helmChartAction Uninstall is not taken over: leave the add-on out, and remove the release by hand", c.ChartName)
		return
	}
	var from []any
	for _, v := range c.ValuesFrom {
		if v.Namespace != "" && v.Namespace != w.set.Namespace {
			w.note("chart %s: %s %s/%s has to be in the set's namespace, %s", c.ChartName, v.Kind, v.Namespace, v.Name, w.set.Namespace)
		}
		w.note("chart %s: each key of %s %s holds values there; valuesFrom takes one key, by default values.yaml", c.ChartName, v.Kind, v.Name)
		from = append(from, map[string]any{"kind": v.Kind, "name": v.Name})
	}
	release, left := clusterAPI.text(c.ReleaseName)
	if len(left) > 0 {
		w.note("chart %s: the template in releaseName has no expression: write it by hand", c.ChartName)
	}
	w.helm(chart{addon: cmp.Or(addonName(c.ReleaseName), name), url: c.RepositoryURL, name: name, version: c.ChartVersion, release: release,
		namespace: c.ReleaseNamespace, values: w.values(name, c.Values, clusterAPI), valuesFrom: from})
}

// addonName returns a release name as the name of an add-on; "" if it holds templates.
func addonName(release string) string {
	if strings.Contains(release, "{") {
		return ""
	}
	return release
}

// policies adds the manifests in ConfigMaps and Secrets.
func (w *writer) policies(name, mode string, refs []sveltosRef) {
	var from []any
	for _, r := range refs {
		switch {
		case r.Kind != "ConfigMap" && r.Kind != "Secret":
			w.note("policyRefs: %s %s is no ConfigMap or Secret: deliver it as a kustomization", r.Kind, r.Name)
			continue
		case r.DeploymentType == "Local":
			w.note("policyRefs: %s %s is for the management cluster (deploymentType Local), which a set does not serve", r.Kind, r.Name)
			continue
		case r.Namespace == "":
			w.note("policyRefs: %s %s lies in the namespace of each cluster, and a set reads its own: move it", r.Kind, r.Name)
		case r.Namespace != w.set.Namespace:
			w.note("policyRefs: %s %s/%s has to be in the set's namespace, %s", r.Kind, r.Namespace, r.Name, w.set.Namespace)
		}
		from = append(from, map[string]any{"kind": r.Kind, "name": r.Name})
	}
	if len(from) == 0 {
		return
	}
	body := map[string]any{"manifestsFrom": from}
	if mode == "OneTime" {
		body["strategy"] = "ApplyOnce"
	}
	w.note("templates in those ConfigMaps and Secrets are not looked into: the hub delivers what they hold as it is")
	w.set.Spec.Addons = append(w.set.Spec.Addons, hubv1.Addon{Name: name + "-policies", AddonBody: hubv1.AddonBody{Manifests: object(body)}})
}
