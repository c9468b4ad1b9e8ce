// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// Meaning returns what the spec of a Flux object says to Flux, in a form that is the same for all spellings: without what
// the hub owns (kubeConfig, suspend, dependsOn), and with the defaults of Flux's and the namespaces that it takes from the
// object. chart is the HelmChart that the spec refers to, if the hub made that of a chart template; nil otherwise.
//
// It reads the spec by the types and functions of Flux's own API, and so in another way than what is folded is written.
func Meaning(u, chart *unstructured.Unstructured) (map[string]any, error) {
	u = u.DeepCopy()
	spec, _ := u.Object["spec"].(map[string]any)
	if spec == nil {
		return nil, fmt.Errorf("%s %s/%s has no spec", u.GetKind(), u.GetNamespace(), u.GetName())
	}
	var typed any
	var err error
	if u.GetKind() == fluxspec.KustomizationKind {
		k := &kustomizev1.Kustomization{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, k)
		typed = kustomization(k)
	} else {
		if chart != nil {
			if err := putBack(spec, chart); err != nil {
				return nil, err
			}
		}
		r := &helmv2.HelmRelease{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r)
		typed = release(r)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	raw, err := json.Marshal(typed)
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	out := map[string]any{}
	return out, utiljson.Unmarshal(raw, &out)
}

func kustomization(k *kustomizev1.Kustomization) *kustomizev1.KustomizationSpec {
	s := k.Spec.DeepCopy()
	s.KubeConfig, s.Suspend, s.DependsOn = nil, false, nil
	s.RetryInterval = &metav1.Duration{Duration: k.GetRetryInterval()}
	s.Timeout = &metav1.Duration{Duration: k.GetTimeout()}
	if s.DeletionPolicy == "" {
		s.DeletionPolicy = kustomizev1.DeletionPolicyMirrorPrune
	}
	if s.SourceRef.Namespace == "" {
		s.SourceRef.Namespace = k.Namespace
	}
	return s
}

func release(r *helmv2.HelmRelease) *helmv2.HelmReleaseSpec {
	s := r.Spec.DeepCopy()
	s.KubeConfig, s.Suspend, s.DependsOn = nil, false, nil
	s.ReleaseName, s.TargetNamespace, s.StorageNamespace = r.GetReleaseName(), r.GetReleaseNamespace(), r.GetStorageNamespace()
	install, upgrade := r.GetInstall(), r.GetUpgrade()
	if install.Strategy == nil {
		install.Strategy = &helmv2.InstallStrategy{Name: string(helmv2.ActionStrategyRemediateOnFailure)}
	}
	if upgrade.Strategy == nil {
		upgrade.Strategy = &helmv2.UpgradeStrategy{Name: string(helmv2.ActionStrategyRemediateOnFailure)}
	}
	upgrade.ChartNameChangeStrategy = upgrade.GetChartNameChangeStrategy()
	drift := r.GetDriftDetection()
	drift.Mode = drift.GetMode()
	s.Install, s.Upgrade, s.DriftDetection = &install, &upgrade, &drift
	if s.ChartRef != nil && s.ChartRef.Namespace == "" {
		s.ChartRef.Namespace = r.Namespace
	}
	if s.Chart != nil {
		chart(s, r.Namespace)
	}
	return s
}

// chart fills in what Flux takes for a chart template that does not say it.
func chart(s *helmv2.HelmReleaseSpec, namespace string) {
	c := &s.Chart.Spec
	if c.SourceRef.Namespace == "" {
		c.SourceRef.Namespace = namespace
	}
	// source-controller looks at the version of a chart in a repository of charts only.
	if c.Version == "" || c.SourceRef.Kind != sourcev1.HelmRepositoryKind {
		c.Version = "*"
	}
	if c.Interval == nil {
		c.Interval = &metav1.Duration{Duration: s.Interval.Round(time.Nanosecond)}
	}
	if c.ReconcileStrategy == "" {
		c.ReconcileStrategy = sourcev1.ReconcileStrategyChartVersion
	}
}

// putBack replaces the reference to a HelmChart of the hub's by the template that it was made of.
func putBack(spec map[string]any, chart *unstructured.Unstructured) error {
	ref, _ := spec["chartRef"].(map[string]any)
	if ref["kind"] != sourcev1.HelmChartKind || ref["name"] != chart.GetName() || ref["namespace"] != chart.GetNamespace() {
		return fmt.Errorf("spec.chartRef does not lead to HelmChart %s/%s", chart.GetNamespace(), chart.GetName())
	}
	delete(spec, "chartRef")
	template, _ := runtime.DeepCopyJSONValue(chart.Object["spec"]).(map[string]any)
	if err := unstructured.SetNestedField(template, chart.GetNamespace(), "sourceRef", "namespace"); err != nil {
		return err
	}
	out := map[string]any{"spec": template}
	metadata := map[string]any{}
	for field, texts := range map[string]map[string]string{"labels": chart.GetLabels(), "annotations": chart.GetAnnotations()} {
		kept := map[string]any{}
		for k, v := range texts {
			kept[k] = v
		}
		maps.DeleteFunc(kept, func(k string, _ any) bool {
			return k == "app.kubernetes.io/managed-by" || k == hubv1.ChartLabel || k == hubv1.HashAnnotation
		})
		if len(kept) > 0 {
			metadata[field] = kept
		}
	}
	if len(metadata) > 0 {
		out["metadata"] = metadata
	}
	spec["chart"] = out
	return nil
}
