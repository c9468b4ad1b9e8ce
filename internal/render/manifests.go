// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/nearest"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/status"
)

func isCRD(o map[string]any) bool {
	apiVersion, _ := o["apiVersion"].(string)
	return o["kind"] == "CustomResourceDefinition" && strings.HasPrefix(apiVersion, "apiextensions.k8s.io/")
}

// Which of the objects the chart picks.
const (
	selectCRDs   = "crds"
	selectOthers = "others"
)

// release is one Helm release that delivers manifests.
type release struct {
	name, selects string
	dependsOn     []hubv1.AddonReference
	objects       []any
	movedFrom     []hubv1.MovedAddon
}

// manifests returns the releases that deliver plain objects, and the part that their bodies share, and the copies that
// both read. There is one release, and a second one for CustomResourceDefinitions if there are any.
// A definition is never in the first: if it
// had to change from one release to the other, Helm would delete it, and with it all its objects.
func (r *renderer) manifests(a *compile.Addon, body map[string]any) ([]release, map[string]any, []document.Copy, error) {
	if r.t.Chart.URL == "" {
		return nil, nil, nil, fmt.Errorf("this hub serves no chart for plain manifests: start it with --chart-url")
	}
	var m fluxspec.Manifests
	raw, err := json.Marshal(body)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("manifests: %w", err)
	}
	objects, _ := body["objects"].([]any)
	texts, crds := make([]any, 0, len(objects)), make([]any, 0)
	for _, x := range objects {
		o, _ := x.(map[string]any)
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("manifests: %w", err)
		}
		if isCRD(o) {
			crds = append(crds, string(text))
		} else {
			texts = append(texts, string(text))
		}
	}
	from, err := r.manifestsFrom(m.ManifestsFrom)
	if err != nil {
		return nil, nil, nil, err
	}
	spec := map[string]any{
		"chartRef": map[string]any{"kind": sourcev1.OCIRepositoryKind, "name": identity.ChartRepository(r.t.HubID, r.t.Chart.Digest)},
		"values":   from.values(),
		// Objects that take the place of another chart are asked for as another chart is (out.Chart).
		"upgrade": map[string]any{"chartNameChangeStrategy": string(helmv2.ChartNameChangeStrategyReinstall)},
	}
	for _, f := range []string{"interval", "timeout", "targetNamespace"} {
		if v, ok := body[f]; ok {
			spec[f] = v
		}
	}
	if len(from.references) > 0 {
		spec["valuesFrom"] = from.references
	}
	if m.Strategy == fluxspec.StrategyApplyOnce {
		spec["driftDetection"] = map[string]any{"mode": "disabled"}
	}
	rest := release{name: a.Name, selects: selectOthers, dependsOn: a.DependsOn, objects: texts, movedFrom: a.MovedFrom}
	if len(crds) == 0 && !from.crds {
		return []release{rest}, spec, from.copies, nil
	}
	first := release{name: a.Name + compile.CRDSuffix, selects: selectCRDs, dependsOn: a.DependsOn, objects: crds}
	for _, m := range a.MovedFrom {
		m.Name += compile.CRDSuffix
		first.movedFrom = append(first.movedFrom, m)
	}
	rest.dependsOn = append(a.DependsOn[:len(a.DependsOn):len(a.DependsOn)], hubv1.AddonReference{Name: first.name})
	return []release{first, rest}, spec, from.copies, nil
}

// hasKeys says which keys a document has in place of one.
func hasKeys(keys []string, meant string) string {
	if len(keys) == 0 {
		return "it has none"
	}
	return "it has " + status.List(keys, 3) + nearest.Meant(meant, keys)
}

// chartArchive is the media type of a chart's archive in a registry (https://helm.sh/docs/topics/registries).
const chartArchive = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// chartRepository returns the source of the hub's own chart. Flux asks for the chart by its digest, and refuses any other bytes: add-ons
// and the rights of Teams are installed with it as an administrator, and the network between is not the hub's. The hub updates the
// address in place, which is not part of what a cluster gets; another digest is another source.
func (r *renderer) chartRepository() (flux.Shared, error) {
	host, insecure := strings.CutPrefix(r.t.Chart.URL, "http://")
	spec := map[string]any{
		"url":           "oci://" + strings.TrimSuffix(strings.TrimPrefix(host, "https://"), "/") + "/" + r.t.Chart.Name,
		"interval":      "1h",
		"ref":           map[string]any{"digest": r.t.Chart.Digest},
		"layerSelector": map[string]any{"mediaType": chartArchive, "operation": sourcev1.OCILayerCopy},
	}
	if insecure {
		spec["insecure"] = true
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(sourceKind(sourcev1.OCIRepositoryKind))
	u.SetNamespace(r.t.Namespace)
	u.SetName(identity.ChartRepository(r.t.HubID, r.t.Chart.Digest))
	u.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "chandler", hubv1.SourceLabel: r.t.HubID})
	hash, err := flux.Stamp(u)
	return flux.Shared{Object: u, Hash: hash, InPlace: true}, err
}
