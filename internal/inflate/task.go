// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"context"
	"errors"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Task is everything that decides what a Flux object puts on its cluster, for another process to make it. It has no Secret.
type Task struct {
	Flux    *unstructured.Unstructured   `json:"flux"`
	Shared  []*unstructured.Unstructured `json:"shared,omitempty"`
	Version string                       `json:"version,omitempty"`
	Source  *Source                      `json:"source"`
	Chart   *Chart                       `json:"chart,omitempty"`
	Folder  *Folder                      `json:"folder,omitempty"`
	// ConfigMaps are those that it refers to, by their names, and Secrets says which of those that it refers to are known.
	ConfigMaps map[string]map[string]string `json:"configMaps,omitempty"`
	Secrets    []string                     `json:"secrets,omitempty"`
}

// task fetches what a Flux object is made of.
func (f *Inflater) task(ctx context.Context, in *Input) (*Task, error) {
	o := in.object
	t := &Task{Flux: o.Flux, Shared: o.Shared, Version: o.Version, Source: in.source, ConfigMaps: map[string]map[string]string{}}
	var err error
	var refs any
	if in.release != nil {
		refs = in.release.Spec.ValuesFrom
		t.Chart, err = f.From.Chart(ctx, in.chartSpec(), in.source)
	} else {
		if in.kust.Spec.PostBuild != nil {
			refs = in.kust.Spec.PostBuild.SubstituteFrom
		}
		t.Folder, err = f.From.Folder(ctx, in.source)
	}
	if err != nil {
		return nil, err
	}
	for _, ref := range referred(refs) {
		if ref.Kind != configMapKind {
			if f.From.HasSecret(o.Flux.GetNamespace(), ref.Name) {
				t.Secrets = append(t.Secrets, ref.Name)
			}
		} else if data, found := f.From.ConfigMap(o.Flux.GetNamespace(), ref.Name); found {
			t.ConfigMaps[ref.Name] = data
		}
	}
	return t, nil
}

// chartSpec says which chart it is; nothing of it if a source is a chart.
func (in *Input) chartSpec() *sourcev1.HelmChartSpec {
	if in.chart == nil {
		return &sourcev1.HelmChartSpec{}
	}
	return in.chart
}

// Do makes the objects of a task, with what an Inflater has kept of tasks before.
func (t *Task) Do(ctx context.Context, f *Inflater) (*Result, error) {
	if t.Flux == nil || t.Source == nil {
		return nil, errors.New("the task is not complete")
	}
	f.From = taskFrom{t}
	in, err := f.Input(&Object{Flux: t.Flux, Shared: t.Shared, Version: t.Version})
	if err != nil {
		return nil, err
	}
	return f.made(ctx, in) // whoever sends the task keeps the result
}

// taskFrom has what a task has.
type taskFrom struct{ *Task }

func (t taskFrom) Source(kind, namespace, name string) *Source {
	if s := t.Task.Source; s.Kind == kind && s.Namespace == namespace && s.Name == name {
		return s
	}
	return nil
}

func (t taskFrom) Local(kind, namespace, name string) string {
	if s := t.Source(kind, namespace, name); s != nil {
		return s.Local
	}
	return ""
}

func (t taskFrom) Chart(context.Context, *sourcev1.HelmChartSpec, *Source) (*Chart, error) {
	if t.Task.Chart == nil {
		return nil, fmt.Errorf("the task of a %s has no chart", helmv2.HelmReleaseKind)
	}
	return t.Task.Chart, nil
}

func (t taskFrom) Folder(context.Context, *Source) (*Folder, error) {
	if t.Task.Folder == nil {
		return nil, errors.New("the task has no folder")
	}
	return t.Task.Folder, nil
}

func (t taskFrom) ConfigMap(_, name string) (data map[string]string, found bool) {
	data, found = t.ConfigMaps[name]
	return data, found
}

func (t taskFrom) HasSecret(_, name string) bool {
	for _, s := range t.Secrets {
		if s == name {
			return true
		}
	}
	return false
}
