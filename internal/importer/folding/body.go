// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"fmt"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/match"
)

// local returns a field that Flux resolves in the object's own namespace; "" if there is none. With crossNamespace, sources
// do not count: the set may refer to them from elsewhere.
func local(kind, namespace string, spec map[string]any, crossNamespace bool) string {
	paths := [][]string{{"serviceAccountName"}, {"decryption"}, {"postBuild", "substituteFrom"}}
	refs := [][]string{{"sourceRef"}}
	if kind == fluxspec.HelmReleaseKind {
		paths, refs = [][]string{{"serviceAccountName"}, {"valuesFrom"}}, [][]string{{"chart", "spec", "sourceRef"}, {"chartRef"}}
	}
	for _, p := range paths {
		if v, ok, _ := unstructured.NestedFieldNoCopy(spec, p...); ok && v != nil {
			if list, is := v.([]any); is && len(list) == 0 {
				continue
			}
			return strings.Join(p, ".")
		}
	}
	for _, p := range refs {
		ref, ok, _ := unstructured.NestedFieldNoCopy(spec, p...)
		m, is := ref.(map[string]any)
		if !ok || !is || crossNamespace {
			continue
		}
		if ns, _ := m["namespace"].(string); ns == "" || ns == namespace {
			return strings.Join(p, ".")
		}
	}
	return ""
}

// place writes the add-on's body for its set, and checks it as the compiler does.
func (f *folder) place(m *member) string {
	m.confined = false
	if !f.reach(m.home).To(m.cluster.registration()) {
		m.confined = true
		return fmt.Sprintf("its set has to be in namespace %q, where Flux resolves its %s, and reaches only clusters that are registered "+
			"there, and not %s: write it by hand, or %s", m.home, m.local, m.cluster, f.toPlatform(m.home))
	}
	m.body = body(m.GetKind(), m.GetNamespace(), m.GetName(), m.spec(), m.home)
	if m.beside && m.home == f.in.Namespace {
		m.fromCluster(m.home)
	}
	checked, _ := expression.EscapeAll(m.body).(map[string]any)
	if bad := badKey(m.body); bad != "" {
		return fmt.Sprintf("spec: the key %q holds <<, which begins an expression in an AddonSet: rename it", bad)
	}
	problems := fluxspec.Check(m.GetKind(), checked, f.reach(m.home).Author(""))
	if len(problems) == 0 {
		return ""
	}
	why := fmt.Sprintf("spec.%s %s", problems[0].Path, problems[0].Message)
	m.confined = len(fluxspec.Check(m.GetKind(), checked, match.Reach{Namespace: m.home, Platform: true}.Author(""))) == 0
	if !m.confined {
		return why
	}
	because := ""
	if m.local != "" {
		because = ", where Flux resolves its " + m.local
	}
	return fmt.Sprintf("%s. Its set has to be there%s: write the source there too, or %s", why, because, f.toPlatform(m.home))
}

// toPlatform says how sets of a namespace get to do what those of platform namespaces do.
func (f *folder) toPlatform(namespaces ...string) string {
	return fmt.Sprintf("make it a platform namespace, whose sets reach every cluster (--platform-namespaces %s, here and for the hub)",
		strings.Join(slices.Concat(f.in.Hub.PlatformNamespaces, namespaces), ","))
}

func (f *folder) reach(namespace string) match.Reach {
	return match.Reach{Namespace: namespace, Platform: f.in.Hub.IsPlatform(namespace)}
}

// body returns the spec of an object as an add-on of a set in namespace home: without what the hub sets, with the
// defaults of Flux's wherever the hub's own differ, and with the namespaces that Flux would take from the object.
func body(kind, namespace, name string, spec map[string]any, home string) map[string]any {
	out := runtime.DeepCopyJSON(spec)
	for _, field := range []string{"kubeConfig", "suspend", "dependsOn"} {
		delete(out, field)
	}
	dropNulls(kind, out)
	shorten(out)
	d := filler{out}
	if kind == fluxspec.KustomizationKind {
		d.fill(false, "prune")
		if interval, ok := out["interval"]; ok {
			d.fill(interval, "retryInterval")
		}
		d.fill("MirrorPrune", "deletionPolicy")
		if out["force"] == false {
			delete(out, "force")
		}
		if home != namespace {
			d.fillIn("sourceRef", namespace)
		}
		return out
	}
	release := helmv2.HelmRelease{}
	release.Namespace, release.Name = namespace, name
	release.Spec.ReleaseName, _ = out["releaseName"].(string)
	release.Spec.TargetNamespace, _ = out["targetNamespace"].(string)
	release.Spec.StorageNamespace, _ = out["storageNamespace"].(string)
	out["releaseName"], out["targetNamespace"] = release.GetReleaseName(), release.GetReleaseNamespace()
	out["storageNamespace"] = release.GetStorageNamespace()
	d.fill(false, "install", "createNamespace")
	for _, action := range []string{"install", "upgrade"} {
		if _, remediated, _ := unstructured.NestedFieldNoCopy(out, action, "remediation"); !remediated {
			d.fill("RemediateOnFailure", action, "strategy", "name")
		}
	}
	d.fill("disabled", "driftDetection", "mode")
	if version, _ := fluxspec.IdleVersion(out); version != "" {
		unstructured.RemoveNestedField(out, "chart", "spec", "version")
	}
	if fluxspec.ChartName(out) == "" {
		d.fill(string(helmv2.ChartNameChangeStrategyReinstall), "upgrade", "chartNameChangeStrategy")
	}
	if home != namespace {
		d.fillIn("chartRef", namespace)
		d.fillIn("chart.spec.sourceRef", namespace)
	}
	return out
}

// shorten writes durations as people do: 10m0s, which the API server may give back, and 10m are the same.
func shorten(body map[string]any) {
	for _, path := range [][]string{{"interval"}, {"retryInterval"}, {"timeout"}, {"chart", "spec", "interval"}} {
		text, ok, err := unstructured.NestedString(body, path...)
		if !ok || err != nil {
			continue
		}
		if d, err := time.ParseDuration(text); err == nil {
			_ = unstructured.SetNestedField(body, excerpt.Duration(d), path...) // it was there
		}
	}
}

type filler struct{ body map[string]any }

// fill sets a field that is absent.
func (d filler) fill(v any, path ...string) {
	if _, there, err := unstructured.NestedFieldNoCopy(d.body, path...); !there && err == nil {
		_ = unstructured.SetNestedField(d.body, v, path...) // a parent that is no object is refused by the check
	}
}

// fillIn sets the namespace of a reference that has none.
func (d filler) fillIn(path, namespace string) {
	at := strings.Split(path, ".")
	if ref, ok, err := unstructured.NestedMap(d.body, at...); ok && err == nil {
		if ns, _ := ref["namespace"].(string); ns == "" {
			_ = unstructured.SetNestedField(d.body, namespace, append(at, "namespace")...) // the reference is an object
		}
	}
}

// dropNulls removes what is null, which says nothing to Flux, but not in Helm values, where it does.
func dropNulls(kind string, m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case map[string]any:
			if kind != fluxspec.HelmReleaseKind || k != "values" {
				dropNulls("", v)
			}
		}
	}
}

// badKey returns a key that would be taken for an expression; "" if there is none.
func badKey(v any) string {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if expression.Has(k) {
				return k
			}
			if bad := badKey(x); bad != "" {
				return bad
			}
		}
	case []any:
		for _, x := range v {
			if bad := badKey(x); bad != "" {
				return bad
			}
		}
	}
	return ""
}
