// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// argoSource is a source of an Application.
type argoSource struct {
	RepoURL, Path, TargetRevision, Chart string
	Helm                                 struct {
		ReleaseName, Values string
		ValuesObject        any
		Parameters          []struct{ Name, Value string }
		ValueFiles          []string
	}
}

// applicationSet writes a set for an ApplicationSet of Argo CD that has one generator of clusters.
func (w *writer) applicationSet(u *unstructured.Unstructured) error {
	in := struct {
		Generators []struct {
			Clusters *struct {
				Selector metav1.LabelSelector
				Values   map[string]string
			}
		}
		Template struct {
			Spec struct {
				Source      *argoSource
				Sources     []argoSource
				Destination struct{ Namespace string }
			}
		}
	}{}
	if err := read(spec(u), &in); err != nil {
		return err
	}
	if len(in.Generators) != 1 || in.Generators[0].Clusters == nil {
		w.note("it has other generators than one of clusters: a list of folders is a set with an add-on for each, and a matrix has no " +
			"counterpart")
		return nil
	}
	delete(in.Generators[0].Clusters.Selector.MatchLabels, "argocd.argoproj.io/secret-type") // every cluster of Argo CD has it
	w.selects(&in.Generators[0].Clusters.Selector)
	dialect := argo
	for name, value := range in.Generators[0].Clusters.Values {
		written, left := argo.text(value)
		if len(left) > 0 {
			w.note("generators.clusters.values.%s has a template without an expression: write it by hand", name)
		}
		dialect = dialect.with(`\.?values\.`+name, "vars."+name)
		w.variable(name, written)
	}
	sources := in.Template.Spec.Sources
	if in.Template.Spec.Source != nil {
		sources = append(sources, *in.Template.Spec.Source)
	}
	for i, s := range sources {
		name := u.GetName()
		if len(sources) > 1 {
			name = cmp.Or(s.Chart, fmt.Sprintf("%s-%d", name, i+1))
		}
		w.argoSource(name, s, in.Template.Spec.Destination.Namespace, dialect)
	}
	w.unread(spec(u), "spec.", "generators", "template", "goTemplate", "goTemplateOptions")
	return nil
}

func (w *writer) argoSource(name string, s argoSource, namespace string, dialect dialect) {
	text := func(what, v string) string {
		out, left := dialect.text(v)
		if len(left) > 0 {
			w.note("add-on %s: the template in %s has no expression that means the same: write it by hand", name, what)
		}
		return out
	}
	if len(s.Helm.ValueFiles)+len(s.Helm.Parameters) > 0 {
		w.note("add-on %s: helm.valueFiles and helm.parameters are not taken over: write them as values", name)
	}
	if s.Chart != "" {
		values, left := dialect.all(normal(s.Helm.ValuesObject))
		if len(left) > 0 {
			w.note("add-on %s: templates in helm.valuesObject have no expression: %s", name, strings.Join(left, ", "))
		}
		if s.Helm.ValuesObject == nil {
			values = w.values(name, s.Helm.Values, dialect)
		}
		w.helm(chart{addon: name, url: s.RepoURL, name: s.Chart, version: text("targetRevision", s.TargetRevision),
			release: text("helm.releaseName", s.Helm.ReleaseName), namespace: text("destination.namespace", namespace), values: values})
		w.note("add-on %s: Argo CD applies what the chart renders, and keeps no Helm release. The hub installs one over the objects: "+
			"compare the values, and delete the Application without cascading first", name)
		return
	}
	git := map[string]any{"url": s.RepoURL, "interval": "1m"}
	if revision := text("targetRevision", s.TargetRevision); revision != "" && revision != "HEAD" {
		git["ref"] = map[string]any{"branch": revision}
		w.note("add-on %s: targetRevision %s is taken for a branch: write tag or commit in its place if it is one", name, s.TargetRevision)
	}
	body := map[string]any{"interval": "10m", "prune": true, "path": "./" + strings.TrimPrefix(text("path", s.Path), "./"),
		"sourceRef": map[string]any{"kind": "GitRepository", "name": w.source("GitRepository", name, git)}}
	if namespace != "" {
		body["targetNamespace"] = text("destination.namespace", namespace)
		w.note("add-on %s: destination.namespace counts for objects without a namespace there, and targetNamespace for all of them", name)
	}
	w.set.Spec.Addons = append(w.set.Spec.Addons, hubv1.Addon{Name: name, AddonBody: hubv1.AddonBody{Kustomization: object(body)}})
}
