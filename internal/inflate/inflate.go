// SPDX-License-Identifier: Apache-2.0

// Package inflate makes the objects that a Flux object puts on its cluster: what Helm makes of a chart, and kustomize of a folder, by the
// libraries that Flux uses, with the settings that Flux gives them. It asks no cluster and no network. Charts and folders come from the
// caller, who has fetched them.
//
// Nothing here reads a Secret. What rests on one is an error that says so.
package inflate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/kustomize"
)

// Object is a Flux object, and what it is about.
type Object struct {
	// Flux is a HelmRelease or Kustomization, and Shared are the HelmCharts and sources that the hub makes for it.
	Flux   *unstructured.Unstructured
	Shared []*unstructured.Unstructured
	// Version of Kubernetes on its cluster, such as v1.34.2; empty if nobody knows.
	Version string
}

// Source is a Flux source.
type Source struct {
	Kind, Namespace, Name string
	Spec                  map[string]any
	// Local says where the caller has its content, if it does not come from the address in its spec.
	Local string
}

// String names a source in messages.
func (s *Source) String() string { return s.Kind + " " + s.Namespace + "/" + s.Name }

// Chart is a chart as it was packaged.
type Chart struct {
	// Digest tells it from others.
	Digest string
	// Version is that of the chart, as far as whoever fetched it knows.
	Version string
	// Path is where it is on disk: an archive, or a folder. Files are what it has, once they are read.
	Path  string
	Files []*archive.BufferedFile
}

// Folder is the content of a source, with regular files alone.
type Folder struct {
	Digest string
	// Root is where it is on disk.
	Root string
}

// From has what Flux objects refer to.
type From interface {
	// Source returns a source that the hub does not make; nil if it is not known.
	Source(kind, namespace, name string) *Source
	// Local says where the content of a source is, if it is not to be fetched.
	Local(kind, namespace, name string) string
	// Chart and Folder return the content of a source.
	Chart(ctx context.Context, spec *sourcev1.HelmChartSpec, source *Source) (*Chart, error)
	Folder(ctx context.Context, source *Source) (*Folder, error)
	// ConfigMap returns the data of one on the management cluster.
	ConfigMap(namespace, name string) (data map[string]string, found bool)
	// HasSecret returns whether there is a Secret.
	HasSecret(namespace, name string) bool
}

// Result is what a Flux object puts on its cluster.
type Result struct {
	Objects []*unstructured.Unstructured
	// CRDs are those of the folder crds/ of a chart, which Helm does not count to the release.
	CRDs []*unstructured.Unstructured
	// Again is what came out when it was done once more, if a chart may come out otherwise each time.
	Again []*unstructured.Unstructured
	// Notes say what is assumed.
	Notes []string
	// Asks is true if what comes out may rest on what its cluster has. MadeOf tells then what it is made of from anything else.
	Asks   bool
	MadeOf string
}

// Inflater makes objects. It keeps what several clusters have in common.
type Inflater struct {
	From From
	// Read reads the files of a chart that the caller has on disk.
	Read func(*Chart) ([]*archive.BufferedFile, error)
	// Work has a task done elsewhere, if it is set: charts and folders are other people's programs.
	Work    func(context.Context, *Task) (*Result, error)
	results *kept[*Result]
	builds  *kept[*kustomize.Built]
}

// How much is kept: most clusters of a fleet have one of a few results.
const (
	keptResults = 200
	keptBuilds  = 50
	// longest is how many characters of an error are told.
	longest = 400
)

// New returns an Inflater.
func New(from From) *Inflater {
	return &Inflater{From: from, results: newKept[*Result](keptResults), builds: newKept[*kustomize.Built](keptBuilds)}
}

// Input is a Flux object with everything that decides what comes out of it, but the content of its source.
type Input struct {
	// Key is equal if all of it is equal, whatever the object is called.
	Key string

	object  *Object
	release *helmv2.HelmRelease
	chart   *sourcev1.HelmChartSpec
	kust    *kustomizev1.Kustomization
	source  *Source
}

// Source names the source of its content.
func (in *Input) Source() string { return in.source.String() }

// aside are the fields of a Flux object's spec that say when and how something is applied, and not what.
var aside = []string{"kubeConfig", "dependsOn", "interval", "retryInterval", "timeout", "serviceAccountName", "suspend", "chart",
	"chartRef", "sourceRef", "prune", "wait", "force", "healthChecks", "healthCheckExprs", "deletionPolicy", "driftDetection", "rollback",
	"uninstall", "persistentClient", "maxHistory", "storageNamespace"}

// IsAside returns whether a field of a Flux object's spec says when and how something is applied, and not what.
func IsAside(field string) bool {
	return slices.Contains(aside, field) && field != "chart" && field != "chartRef" && field != "sourceRef"
}

// Input finds out what a Flux object is made of. It fetches nothing. If the source of its content is not known, it returns an error with an
// Input whose Key has the rest.
func (f *Inflater) Input(o *Object) (*Input, error) {
	in := &Input{object: o}
	spec, _ := o.Flux.Object["spec"].(map[string]any)
	rest := maps.Clone(spec)
	for _, field := range aside {
		delete(rest, field)
	}
	say := map[string]any{"kind": o.Flux.GetKind(), "spec": rest, "version": o.Version}
	var err error
	switch o.Flux.GetKind() {
	case helmv2.HelmReleaseKind:
		in.release = &helmv2.HelmRelease{}
		if err = decode(o.Flux, in.release); err != nil {
			return nil, err
		}
		err = f.chartOf(in, spec)
		say["chart"], say["name"], say["namespace"] = in.chart, in.release.GetReleaseName(), in.release.GetReleaseNamespace()
		say["values"] = f.documents(o, in.release.Spec.ValuesFrom)
	case kustomizev1.KustomizationKind:
		in.kust = &kustomizev1.Kustomization{}
		if err = decode(o.Flux, in.kust); err != nil {
			return nil, err
		}
		ref := in.kust.Spec.SourceRef
		in.source, err = f.source(o, ref.Kind, ref.Namespace, ref.Name)
		if in.kust.Spec.PostBuild != nil {
			say["from"] = f.documents(o, in.kust.Spec.PostBuild.SubstituteFrom)
		}
	default:
		return nil, fmt.Errorf("is a %s: it is not known what it puts on a cluster", o.Flux.GetKind())
	}
	if err != nil {
		say["unknown"] = err.Error()
		in.Key = hash(say)
		return in, err
	}
	say["source"], say["local"], say["included"] = in.source.Spec, in.source.Local, f.included(in.source)
	if in.source.Spec == nil {
		say["source"] = in.source.String()
	}
	in.Key = hash(say)
	return in, nil
}

// included returns the specs of the sources whose content a GitRepository takes into its own.
func (f *Inflater) included(s *Source) (out []any) {
	list, _, _ := unstructured.NestedSlice(s.Spec, "include")
	for i := range list {
		one, _ := list[i].(map[string]any)
		name, _, _ := unstructured.NestedString(one, "repository", "name")
		if of := f.From.Source(s.Kind, s.Namespace, name); of != nil {
			out = append(out, name, of.Spec, of.Local)
		}
	}
	return out
}

func decode(u *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("read the %s: %w", u.GetKind(), err)
	}
	return nil
}

func hash(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return string(sum[:])
}

// documents returns what the ConfigMaps hold that an object refers to.
func (f *Inflater) documents(o *Object, refs any) any {
	var out []any
	for _, ref := range referred(refs) {
		if ref.Kind == configMapKind {
			data, found := f.From.ConfigMap(o.Flux.GetNamespace(), ref.Name)
			out = append(out, ref.Name, found, data)
		} else {
			out = append(out, ref.Name, f.From.HasSecret(o.Flux.GetNamespace(), ref.Name))
		}
	}
	return out
}

// Secrets names the Secrets, in the namespace of a Flux object, whose content decides what it puts on its cluster.
func Secrets(flux *unstructured.Unstructured) (out []string) {
	for _, path := range [][]string{{"spec", "valuesFrom"}, {"spec", "postBuild", "substituteFrom"}} {
		refs, _, _ := unstructured.NestedSlice(flux.Object, path...)
		for _, ref := range referred(refs) {
			if ref.Kind == "Secret" {
				out = append(out, ref.Name)
			}
		}
	}
	if name, _, _ := unstructured.NestedString(flux.Object, "spec", "decryption", "secretRef", "name"); name != "" {
		out = append(out, name)
	}
	return out
}

type reference struct{ Kind, Name string }

// referred returns to what references lead. They are of two types with the same fields.
func referred(refs any) (out []reference) {
	raw, err := json.Marshal(refs)
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// chartOf finds the chart of a HelmRelease, and where it comes from.
func (f *Inflater) chartOf(in *Input, spec map[string]any) error {
	o, r := in.object, in.release
	if ref := r.Spec.ChartRef; ref != nil && ref.Kind != sourcev1.HelmChartKind {
		var err error
		in.source, err = f.source(o, ref.Kind, ref.Namespace, ref.Name)
		return err
	} else if ref != nil {
		chart := o.shared(sourcev1.HelmChartKind, ref.Name)
		if chart == nil {
			return fmt.Errorf("HelmChart %s/%s is not known", o.Flux.GetNamespace(), ref.Name)
		}
		spec = map[string]any{"chart": map[string]any{"spec": chart.Object["spec"]}}
	}
	template, _, _ := unstructured.NestedMap(spec, "chart", "spec")
	in.chart = &sourcev1.HelmChartSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, in.chart); err != nil {
		return fmt.Errorf("read the chart: %w", err)
	}
	namespace, _, _ := unstructured.NestedString(template, "sourceRef", "namespace")
	var err error
	in.source, err = f.source(o, in.chart.SourceRef.Kind, namespace, in.chart.SourceRef.Name)
	in.chart.SourceRef, in.chart.Interval = sourcev1.LocalHelmChartSourceReference{}, metav1.Duration{} // they say when, and not what
	return err
}

func (o *Object) shared(kind, name string) *unstructured.Unstructured {
	i := slices.IndexFunc(o.Shared, func(u *unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
	if i < 0 {
		return nil
	}
	return o.Shared[i]
}

func (f *Inflater) source(o *Object, kind, namespace, name string) (*Source, error) {
	if namespace == "" {
		namespace = o.Flux.GetNamespace()
	}
	local := f.From.Local(kind, namespace, name)
	if u := o.shared(kind, name); u != nil {
		spec, _ := u.Object["spec"].(map[string]any)
		return &Source{Kind: kind, Namespace: namespace, Name: name, Spec: spec, Local: local}, nil
	}
	if s := f.From.Source(kind, namespace, name); s != nil {
		return s, nil
	}
	if local != "" {
		return &Source{Kind: kind, Namespace: namespace, Name: name, Local: local}, nil
	}
	return nil, fmt.Errorf("%s %s/%s is not in the files: add it, or map it to a folder", kind, namespace, name)
}

// Objects returns what a Flux object puts on its cluster. The result is shared: nobody may change it.
func (f *Inflater) Objects(ctx context.Context, in *Input) (*Result, error) {
	if one, err, ok := f.results.get(in.Key); ok {
		return one, err
	}
	out, err := f.made(ctx, in)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("not finished: %w", ctx.Err())
	}
	if err != nil { // templates quote whole files in what they say
		err = errors.New(excerpt.Cut(strings.Join(strings.Fields(err.Error()), " "), longest))
	}
	f.results.put(in.Key, out, err)
	return out, err
}

func (f *Inflater) made(ctx context.Context, in *Input) (*Result, error) {
	switch {
	case f.Work != nil:
		task, err := f.task(ctx, in)
		if err != nil {
			return nil, err
		}
		return f.Work(ctx, task)
	case in.release != nil:
		return f.helm(ctx, in)
	}
	return f.kustomize(ctx, in)
}

// kept keeps the newest of some results.
type kept[T any] struct {
	most  int
	by    map[string]answer[T]
	order []string
}

type answer[T any] struct {
	value T
	err   error
}

func newKept[T any](most int) *kept[T] { return &kept[T]{most: most, by: map[string]answer[T]{}} }

func (k *kept[T]) get(key string) (T, error, bool) {
	a, ok := k.by[key]
	return a.value, a.err, ok
}

func (k *kept[T]) put(key string, value T, err error) {
	if len(k.order) >= k.most {
		delete(k.by, k.order[0])
		k.order = k.order[1:]
	}
	k.by[key] = answer[T]{value, err}
	k.order = append(k.order, key)
}
