// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandler-hub/chandler/internal/fluxspec"
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
			f.out.Left = append(f.out.Left, Left{o, "exists twice, and it is not known which one counts: it is also in " + other.where() +
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
		if m.confined && !slices.Contains(f.out.Confined, m.home) {
			f.out.Confined = append(f.out.Confined, m.home)
		}
		return why != ""
	})
	return f.releasesOnce(out)
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
	if own(o) {
		f.out.Ignored++
		return nil
	}
	if spec["kubeConfig"] == nil {
		f.out.Ignored++
		return nil
	}
	current, converted, err := Convert(o.Unstructured)
	if err != nil {
		f.leave(o, "%s", err)
		return nil
	}
	m := &member{Object: o}
	if converted != "" {
		o.Unstructured = current
		spec, _ = current.Object["spec"].(map[string]any)
		m.note("%s", converted)
	}
	if version, kind := fluxspec.IdleVersion(spec); version != "" {
		m.note("spec.chart.spec.version is %q, and the add-on has none: it has no effect on a chart from a %s, which Flux takes as it is there",
			version, kind)
	}
	for _, step := range []func(*member, map[string]any) string{f.variables, f.findCluster, f.state, f.dependencies} {
		if why := step(m, spec); why != "" {
			f.leave(o, "%s", why)
			return nil
		}
	}
	return m
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
		return "spec.kubeConfig.secretRef.name is missing, so it is not known which cluster it is for"
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
	if note := m.cluster.unlike(own, m.GetNamespace(), secret); note != "" {
		m.note("%s", note)
	}
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
			"--from-cluster"
	case !applied(m.Object):
		return "is not Ready as it is written now, so what runs is something else, which would be left over after its adoption: let Flux " +
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
