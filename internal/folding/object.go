// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/match"
)

// read makes members of the objects that are for other clusters, and leaves out what cannot be one.
func (f *folder) read() []*member {
	var out []*member
	named := map[string][]*Object{}
	for i := range f.in.Objects {
		o := &f.in.Objects[i]
		named[o.key()] = append(named[o.key()], o)
	}
	for i := range f.in.Objects {
		o := &f.in.Objects[i]
		if same := named[o.key()]; len(same) > 1 {
			other := same[0]
			if other == o {
				other = same[1]
			}
			f.out.Left = append(f.out.Left, Left{o, "exists twice, and nobody can tell which one counts: it is also in " + other.where() +
				". Remove one of them"})
			continue
		}
		if m := f.member(o); m != nil {
			out = append(out, m)
		}
	}
	out = f.namesakes(out)
	f.homes(out)
	out = slices.DeleteFunc(out, func(m *member) bool {
		why := f.place(m)
		if why != "" {
			f.leave(m.Object, "%s", why)
		}
		return why != ""
	})
	return f.releasesOnce(out)
}

// homes decides in which namespace the set of each add-on goes: that of the objects, if Flux resolves anything there, and
// with these all that they wait for or that waits for them.
func (f *folder) homes(members []*member) {
	byKey := map[string]*member{}
	for _, m := range members {
		byKey[m.key()] = m
		m.home = f.in.Namespace
		if m.local = local(m.GetKind(), m.GetNamespace(), m.spec(), f.in.CrossNamespace); m.local != "" || !f.in.Hub.IsPlatform(m.home) {
			m.home = m.GetNamespace()
		}
	}
	for changed := true; changed; {
		changed = false
		for _, m := range members {
			for _, need := range m.needs {
				changed = m.together(byKey[need]) || changed
			}
		}
	}
}

// together puts the set of an object, and of one that it waits for, into their own namespace, if one of them has to be
// there. It returns whether that was new.
func (m *member) together(other *member) bool {
	if other == nil || other.GetNamespace() != m.GetNamespace() || other.home == m.home {
		return false
	}
	for _, one := range []*member{m, other} {
		if one.local == "" {
			one.local = "dependsOn"
		}
		one.home = m.GetNamespace()
	}
	return true
}

// spec returns the object's own.
func (m *member) spec() map[string]any {
	spec, _ := m.Unstructured.Object["spec"].(map[string]any)
	return spec
}

// member returns an object as an add-on of its cluster; nil if it cannot be one.
func (f *folder) member(o *Object) *member {
	spec, ok := o.Object["spec"].(map[string]any)
	if !ok {
		f.leave(o, "has no spec")
		return nil
	}
	if o.GetLabels()[hubv1.ClusterKeyLabel] != "" { // the hub's own
		f.out.Ignored++
		return nil
	}
	if spec["kubeConfig"] == nil {
		f.out.Ignored++
		return nil
	}
	m := &member{Object: o}
	for _, step := range []func(*member, map[string]any) string{f.version, f.findCluster, f.state, f.dependencies} {
		if why := step(m, spec); why != "" {
			f.leave(o, "%s", why)
			return nil
		}
	}
	return m
}

// version wants the API version that the hub writes.
func (f *folder) version(m *member, _ map[string]any) string {
	want := map[string]string{fluxspec.HelmReleaseKind: "v2", fluxspec.KustomizationKind: "v1"}[m.GetKind()]
	if v := m.GroupVersionKind().Version; v != want {
		return fmt.Sprintf("apiVersion is %q: write %s/%s (flux migrate does it)", m.GetAPIVersion(), m.GroupVersionKind().Group, want)
	}
	return ""
}

// findCluster finds the cluster that an object is for.
func (f *folder) findCluster(m *member, spec map[string]any) string {
	kc, ok := spec["kubeConfig"].(map[string]any)
	if !ok {
		return "spec.kubeConfig is not an object"
	}
	if kc["configMapRef"] != nil {
		return "spec.kubeConfig.configMapRef is a workload identity, which has no kubeconfig to compare: the hub does not adopt what has one. " +
			"Register the cluster by hand, and write the add-on anew"
	}
	secret, _, err := unstructured.NestedString(kc, "secretRef", "name")
	key, _, keyErr := unstructured.NestedString(kc, "secretRef", "key")
	if err != nil || keyErr != nil {
		return "spec.kubeConfig.secretRef holds something that is no text: put it in quotes, since YAML reads y, no and 1 as something else"
	}
	if secret == "" {
		return "spec.kubeConfig.secretRef.name is missing: nobody can tell which cluster it is for"
	}
	for what, problems := range map[string][]string{
		"metadata.name": content.IsDNS1123Subdomain(m.GetName()), "metadata.namespace": content.IsDNS1123Label(m.GetNamespace()),
		"spec.kubeConfig.secretRef.name": content.IsDNS1123Subdomain(secret), "spec.kubeConfig.secretRef.key": keyProblems(key),
	} {
		if len(problems) > 0 {
			return what + " is none that an object can have: " + problems[0]
		}
	}
	own := f.in.Targets[m.GetNamespace()+"/"+secret+"/"+key]
	if own.Problem != "" {
		return fmt.Sprintf("its kubeconfig (Secret %q) %s", secret, own.Problem)
	}
	m.cluster = f.clusters.of(m.GetNamespace(), secret, key)
	return m.cluster.another(own, m.GetNamespace(), secret, key)
}

// keyProblems returns what is wrong with a key of a Secret.
func keyProblems(key string) []string {
	if key == "" {
		return nil
	}
	return validation.IsConfigMapKey(key)
}

// state refuses what is not running: if the hub took it over, it would go on.
func (f *folder) state(m *member, spec map[string]any) string {
	switch {
	case m.GetDeletionTimestamp() != nil:
		return "is being deleted"
	case spec["suspend"] == true:
		return "is suspended, and an add-on is not: `flux resume` it first, or leave it as it is"
	case open(m.Object):
		return "holds ${, which Flux replaces if spec.postBuild of what applies it says so: import the folder with that Kustomization, or " +
			"--live"
	case !applied(m.Object):
		return "is not Ready as it is written now, so what runs is something else, which nobody would remove after its adoption: let Flux " +
			"finish first"
	}
	return ""
}

// open returns whether an object of a file may have holes that Flux fills when it applies it. What an API server has printed
// has none any more.
func open(o *Object) bool {
	if o.File == "" || o.Built || o.GetUID() != "" {
		return false
	}
	raw, _ := json.Marshal(o.Unstructured.Object["spec"]) // what was read as YAML always can be written
	return bytes.Contains(raw, []byte("${"))
}

// applied returns whether Flux has applied an object as it is now. Of one in a file without a status nobody knows.
func applied(o *Object) bool {
	status, there := o.Unstructured.Object["status"].(map[string]any)
	if o.File != "" && !there {
		return true
	}
	if seen, _, err := unstructured.NestedInt64(status, "observedGeneration"); err != nil || seen != o.GetGeneration() {
		return false
	}
	conditions, _ := status["conditions"].([]any)
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		seen, there := condition["observedGeneration"]
		return condition["type"] == "Ready" && condition["status"] == "True" && (!there || seen == o.GetGeneration())
	})
}

// dependencies finds the objects that one depends on.
func (f *folder) dependencies(m *member, spec map[string]any) string {
	list, _, err := unstructured.NestedSlice(spec, "dependsOn")
	if err != nil {
		return "spec.dependsOn is not a list"
	}
	for _, x := range list {
		d, _ := x.(map[string]any)
		name, _ := d["name"].(string)
		namespace, _ := d["namespace"].(string)
		if namespace == "" {
			namespace = m.GetNamespace()
		}
		if d["readyExpr"] != nil {
			return fmt.Sprintf("spec.dependsOn has a readyExpr for %q, and add-ons wait for Ready: take it out", name)
		}
		m.needs = append(m.needs, m.GetKind()+" "+namespace+"/"+name)
	}
	slices.Sort(m.needs)
	m.needs = slices.Compact(m.needs)
	return ""
}

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
	if !f.reach(m.home).To(m.cluster.registration()) {
		return fmt.Sprintf("its set has to be in namespace %q, where Flux resolves its %s, and reaches only clusters that are registered "+
			"there, and not %s: write it by hand, or make %q a platform namespace", m.home, m.local, m.cluster, m.home)
	}
	m.body = body(m.GetKind(), m.GetNamespace(), m.GetName(), m.spec(), m.home)
	checked, _ := escape(m.body).(map[string]any)
	if bad := badKey(m.body); bad != "" {
		return fmt.Sprintf("spec: the key %q holds <<, which begins an expression in an AddonSet: rename it", bad)
	}
	author := f.reach(m.home).Author("")
	if problems := fluxspec.Check(m.GetKind(), checked, author); len(problems) > 0 {
		why := fmt.Sprintf("spec.%s %s", problems[0].Path, problems[0].Message)
		if m.local != "" && m.home != f.in.Namespace && strings.HasSuffix(problems[0].Path, ".namespace") {
			why += fmt.Sprintf(". Its set has to be in namespace %q, where Flux resolves its %s", m.home, m.local)
		}
		return why
	}
	return ""
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
			text = d.String()
			if strings.HasSuffix(text, "m0s") {
				text = strings.TrimSuffix(text, "0s")
			}
			if strings.HasSuffix(text, "h0m") {
				text = strings.TrimSuffix(text, "0m")
			}
			_ = unstructured.SetNestedField(body, text, path...) // it was there
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

// escape returns a value in which no text is taken for an expression.
func escape(v any) any {
	switch v := v.(type) {
	case string:
		return expression.Escape(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = escape(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = escape(v[i])
		}
		return out
	}
	return v
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

// releasesOnce leaves out objects that install one Helm release on one cluster: nobody knows which of them is meant.
func (f *folder) releasesOnce(members []*member) []*member {
	first := map[string][]*member{}
	at := func(m *member) string {
		return fmt.Sprint(m.cluster, " ", m.body["storageNamespace"], "/", m.body["releaseName"])
	}
	for _, m := range members {
		if m.GetKind() == fluxspec.HelmReleaseKind {
			first[at(m)] = append(first[at(m)], m)
		}
	}
	return slices.DeleteFunc(members, func(m *member) bool {
		same := first[at(m)]
		if m.GetKind() != fluxspec.HelmReleaseKind || len(same) < 2 {
			return false
		}
		other := same[0]
		if other == m {
			other = same[1]
		}
		f.leave(m.Object, "installs Helm release %q, with its records in namespace %q, on cluster %s, and so does %s: remove one of them",
			m.body["releaseName"], m.body["storageNamespace"], m.cluster, other)
		return true
	})
}
