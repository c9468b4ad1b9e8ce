// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// IsFleetFile returns whether a file is one of Rancher Fleet's.
func IsFleetFile(name string) bool { return path.Base(name) == "fleet.yaml" }

// fleetHelm is how Fleet installs a chart.
type fleetHelm struct {
	Chart, Repo, Version, ReleaseName string
	Values                            map[string]any
	ValuesFiles                       []string
}

// fleetFile is what a fleet.yaml says.
type fleetFile struct {
	DefaultNamespace, Namespace string
	Helm                        *fleetHelm
	Kustomize                   *struct{ Dir string }
	TargetCustomizations        []fleetTarget
}

// fleetTarget is what it says for some clusters.
type fleetTarget struct {
	Name            string
	ClusterSelector *metav1.LabelSelector
	ClusterName     string
	DoNotDeploy     bool
	Helm            *fleetHelm
	Kustomize       *struct{ Dir string }
}

// Fleet writes a set for a fleet.yaml of Rancher Fleet. The folder that it is in names the set.
func Fleet(file string, raw []byte, namespace string) (*Set, error) {
	all := map[string]any{}
	in := fleetFile{}
	if err := yaml.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	_ = yaml.Unmarshal(raw, &all) // it could be read just now
	name := strings.ToLower(cmp.Or(strings.Trim(path.Base(path.Dir(file)), "."), "fleet"))
	w := newWriter(name, namespace)
	w.set.Spec.SelectAll = true
	w.note("the targets of Fleet's GitRepo are not read: write them as clusterSelector")
	charted := w.fleetAddon(name, file, &in)
	for i := range in.TargetCustomizations {
		w.fleetOverlay(name, path.Dir(file), charted, &in.TargetCustomizations[i])
	}
	if len(in.TargetCustomizations) > 1 {
		w.note("Fleet takes the first of targetCustomizations that matches, and the hub all overlays that match, in order")
	}
	w.unread(all, "", "defaultNamespace", "namespace", "helm", "kustomize", "targetCustomizations")
	return w.finish(file)
}

// fleetAddon adds the add-on, and returns whether it is a chart.
func (w *writer) fleetAddon(name, file string, in *fleetFile) (charted bool) {
	target := cmp.Or(in.Namespace, in.DefaultNamespace)
	charted = in.Helm != nil && in.Helm.Chart != "" && (in.Helm.Repo != "" || strings.HasPrefix(in.Helm.Chart, "oci://"))
	if charted {
		c := chart{addon: name, url: in.Helm.Repo, name: in.Helm.Chart, version: in.Helm.Version, release: in.Helm.ReleaseName, namespace: target}
		if at := strings.LastIndex(in.Helm.Chart, "/"); in.Helm.Repo == "" {
			c.url, c.name = in.Helm.Chart[:at], in.Helm.Chart[at+1:]
		}
		c.values = w.fleetValues(name, in.Helm)
		w.helm(c)
	} else {
		dir := path.Dir(file)
		if in.Kustomize != nil {
			dir = path.Join(dir, in.Kustomize.Dir)
		}
		body := map[string]any{"interval": "10m", "prune": true, "path": "./" + dir,
			"sourceRef": map[string]any{"kind": "GitRepository", "name": "fleet"}}
		if target != "" {
			body["targetNamespace"] = target
		}
		w.set.Spec.Addons = []hubv1.Addon{{Name: name, AddonBody: hubv1.AddonBody{Kustomization: object(body)}}}
		w.note("the repository of Fleet's GitRepo is GitRepository fleet here: make it, or write it into spec.sources")
		if in.Helm != nil {
			w.note("a chart that lies in the repository is a helmRelease with a GitRepository as its source: write it by hand")
		}
	}
	return charted
}

// fleetOverlay adds what is otherwise on some clusters. dir is the folder of the file.
func (w *writer) fleetOverlay(name, dir string, charted bool, t *fleetTarget) {
	o := hubv1.Overlay{Name: t.Name, ClusterSelector: t.ClusterSelector}
	if t.ClusterName != "" {
		o.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.NameLabel: t.ClusterName}}
	}
	if o.ClusterSelector == nil || len(o.ClusterSelector.MatchLabels)+len(o.ClusterSelector.MatchExpressions) == 0 {
		w.note("targetCustomizations %s selects all clusters, or a group: write it by hand", t.Name)
		return
	}
	a := hubv1.AddonOverlay{Name: name}
	switch {
	case t.DoNotDeploy:
		exclude := true
		a.Exclude = &exclude
	case t.Helm != nil && charted && len(t.Helm.Values)+len(t.Helm.Version) > 0:
		change := map[string]any{}
		if t.Helm.Version != "" {
			change["chart"] = map[string]any{"spec": map[string]any{"version": t.Helm.Version}}
		}
		if values := w.fleetValues(name, t.Helm); values != nil {
			change["values"] = values
		}
		a.HelmRelease = object(change)
	case t.Kustomize != nil && !charted:
		a.Kustomization = object(map[string]any{"path": "./" + path.Join(dir, t.Kustomize.Dir)})
	default:
		w.note("targetCustomizations %s changes what has no counterpart: write it by hand", t.Name)
		return
	}
	o.Addons = []hubv1.AddonOverlay{a}
	w.set.Spec.Overlays = append(w.set.Spec.Overlays, o)
}

// fleetValues reads values that may hold Fleet's templates.
func (w *writer) fleetValues(addon string, h *fleetHelm) any {
	if len(h.ValuesFiles) > 0 {
		w.note("add-on %s: helm.valuesFiles are not taken over: write them as values", addon)
	}
	if len(h.Values) == 0 {
		return nil
	}
	out, left := rancher.all(normal(h.Values))
	if len(left) > 0 {
		w.note("add-on %s: templates in its values have no expression: %s", addon, strings.Join(left, ", "))
	}
	return out
}

// variable adds a variable to the set.
func (w *writer) variable(name string, v any) {
	if w.set.Spec.Variables == nil {
		w.set.Spec.Variables = map[string]apiextensionsv1.JSON{}
	}
	w.set.Spec.Variables[name] = *object(v)
}
