// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/merge"
)

// Set is what `create set` is asked for: a set with one add-on, and what that comes from.
type Set struct {
	Object
	Selector string
	All      bool
	// Addon is the name of the add-on; by default the chart's or the set's.
	Addon string
	// FromHelm is the address of a chart: that of its repository, a slash, and its name. FromGit and FromOCI are the
	// addresses of a repository with manifests. Source names a source that exists already, as KIND/NAME. Exactly one of
	// them is set.
	FromHelm, FromGit, FromOCI, Source string
	// Chart is its name, with Source.
	Chart, ChartVersion string
	// Path is the folder in a repository with manifests.
	Path, Branch, Tag, TagSemver, SecretRef string
	ReleaseName, TargetNamespace            string
	Values                                  map[string]any
	Interval                                time.Duration
	DependsOn                               []string
	Orphan                                  bool
}

// Make returns the set.
func (s Set) Make() ([]*unstructured.Unstructured, error) {
	if err := s.check("AddonSet"); err != nil {
		return nil, err
	}
	spec := map[string]any{}
	if err := selector(spec, s.Selector, s.All); err != nil {
		return nil, err
	}
	addon, source, err := s.addon()
	if err != nil {
		return nil, err
	}
	if name, _ := addon["name"].(string); len(content.IsDNS1123Label(name)) > 0 || len(name) > maxAddon {
		return nil, fmt.Errorf("%q is no name for an add-on: write one by --addon, of lower-case letters, digits and -, with at most %d of them",
			name, maxAddon)
	}
	if source != nil {
		spec["sources"] = []any{source}
	}
	spec["addons"] = []any{addon}
	if len(s.DependsOn) > 0 {
		var sets []any
		for _, name := range s.DependsOn {
			sets = append(sets, map[string]any{"name": name})
		}
		spec["dependsOn"] = sets
	}
	if s.Orphan {
		spec["deletionPolicy"] = string(hubv1.DeletionPolicyOrphan)
	}
	u := document(hubv1.GroupVersion.String(), "AddonSet", s.Object)
	u.Object["spec"] = spec
	return []*unstructured.Unstructured{u}, nil
}

// maxAddon is how long the name of an add-on may be: it is that of its Helm release by default.
const maxAddon = 53

func (s Set) addon() (addon, source map[string]any, err error) {
	from := []string{"--from-helm", s.FromHelm, "--from-git", s.FromGit, "--from-oci", s.FromOCI, "--source", s.Source}
	if err := one(from...); err != nil {
		return nil, nil, err
	}
	switch {
	case s.FromHelm != "":
		return s.fromHelm()
	case s.FromGit != "":
		return s.fromRepository(sourcev1.GitRepositoryKind, s.FromGit)
	case s.FromOCI != "":
		return s.fromRepository(sourcev1.OCIRepositoryKind, s.FromOCI)
	case s.Source != "":
		addon, err = s.fromSource()
		return addon, nil, err
	}
	return nil, nil, errors.New("what is it to deliver? Write --from-helm REPOSITORY/CHART, --from-git URL, --from-oci URL, or --source " +
		"KIND/NAME for a source that exists")
}

// fromHelm returns an add-on of a chart, and the source that the hub keeps for it.
func (s Set) fromHelm() (addon, source map[string]any, err error) {
	if err := checkURL("--from-helm", s.FromHelm, "https", "http", "oci"); err != nil {
		return nil, nil, err
	}
	err = s.only("--from-helm", "--path", s.Path, "--branch", s.Branch, "--tag", s.Tag, "--tag-semver", s.TagSemver, "--chart", s.Chart)
	if err != nil {
		return nil, nil, err
	}
	i := strings.LastIndexByte(s.FromHelm, '/')
	repository, chart := s.FromHelm[:i], s.FromHelm[i+1:]
	if chart == "" || strings.HasSuffix(repository, "/") {
		return nil, nil, fmt.Errorf("--from-helm %q names no chart: write the repository's address, a slash, and the chart's name, such as "+
			"https://charts.jetstack.io/cert-manager", s.FromHelm)
	}
	body, ref := map[string]any{}, map[string]any{"name": s.sourceName(chart)}
	oci := strings.HasPrefix(s.FromHelm, "oci://")
	switch {
	case oci && s.ChartVersion == "":
		return nil, nil, errors.New("which version? Write --chart-version: a chart of an OCI registry has no newest one by itself")
	case oci:
		body["chartRef"] = ref
	default:
		spec := map[string]any{"chart": chart, "sourceRef": ref}
		set(spec, s.ChartVersion, "version")
		body["chart"] = map[string]any{"spec": spec}
	}
	src := upstream{kind: sourcev1.HelmRepositoryKind, url: repository, secretRef: s.SecretRef, flag: "--from-helm"}
	if oci {
		src = upstream{kind: sourcev1.OCIRepositoryKind, url: s.FromHelm, secretRef: s.SecretRef, flag: "--from-helm"}
		if isVersion(s.ChartVersion) {
			src.tag = s.ChartVersion
		} else {
			src.tagSemver = s.ChartVersion
		}
	}
	spec, err := src.spec()
	if err != nil {
		return nil, nil, err
	}
	if oci {
		spec["layerSelector"] = map[string]any{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "operation": "copy"}
	}
	s.release(body)
	return s.named(chart, "helmRelease", body), map[string]any{"name": ref["name"], "kind": src.kind, "spec": spec}, nil
}

// isVersion returns whether a text is one version, and not a range of them.
func isVersion(text string) bool {
	return strings.Count(text, ".") >= 2 && !strings.ContainsAny(text, "<>=~^*|xX ,")
}

// sourceName returns the name of the source within the set.
func (s Set) sourceName(chart string) string { return cmp.Or(s.Addon, chart) }

// fromRepository returns an add-on of a folder of manifests, and the source that the hub keeps for it.
func (s Set) fromRepository(kind, url string) (addon, source map[string]any, err error) {
	flag := map[string]string{sourcev1.GitRepositoryKind: "--from-git", sourcev1.OCIRepositoryKind: "--from-oci"}[kind]
	err = s.only(flag, "--chart", s.Chart, "--chart-version", s.ChartVersion, "--release-name", s.ReleaseName)
	if err == nil && len(s.Values) > 0 {
		err = fmt.Errorf("--values is for a chart: leave it out with %s", flag)
	}
	if err != nil {
		return nil, nil, err
	}
	src := upstream{kind: kind, url: url, branch: s.Branch, tag: s.Tag, tagSemver: s.TagSemver, secretRef: s.SecretRef, flag: flag}
	if kind == sourcev1.GitRepositoryKind && s.Branch+s.Tag+s.TagSemver == "" {
		return nil, nil, errors.New("which of its content? Write --branch, --tag or --tag-semver")
	}
	if kind == sourcev1.OCIRepositoryKind && s.Branch != "" {
		return nil, nil, errors.New("--branch does not go with --from-oci: write --tag or --tag-semver")
	}
	spec, err := src.spec()
	if err != nil {
		return nil, nil, err
	}
	name := cmp.Or(s.Addon, s.Name)
	body := map[string]any{"sourceRef": map[string]any{"name": name}}
	s.folder(body)
	return s.named(s.Name, "kustomization", body), map[string]any{"name": name, "kind": kind, "spec": spec}, nil
}

// fromSource returns an add-on that refers to a source that exists.
func (s Set) fromSource() (map[string]any, error) {
	kind, name, ok := strings.Cut(s.Source, "/")
	if !ok || name == "" || !slices.Contains(append(fluxspec.SourceKinds, sourcev1.HelmChartKind), kind) {
		return nil, fmt.Errorf("--source %q: write KIND/NAME, such as HelmRepository/podinfo; kinds are %s", s.Source,
			strings.Join(fluxspec.SourceKinds, ", "))
	}
	err := s.only("--source", "--branch", s.Branch, "--tag", s.Tag, "--tag-semver", s.TagSemver, "--secret-ref", s.SecretRef)
	if err != nil {
		return nil, err
	}
	ref := map[string]any{"kind": kind, "name": name}
	if kind == sourcev1.HelmRepositoryKind && s.Chart == "" {
		return nil, fmt.Errorf("which chart of --source %s? Write --chart", s.Source)
	}
	body := map[string]any{}
	switch {
	case s.Chart != "":
		spec := map[string]any{"chart": s.Chart, "sourceRef": ref}
		set(spec, s.ChartVersion, "version")
		body["chart"] = map[string]any{"spec": spec}
	case kind == sourcev1.HelmChartKind:
		body["chartRef"] = ref
	default:
		if err := s.only("--source without --chart", "--chart-version", s.ChartVersion, "--release-name", s.ReleaseName); err != nil {
			return nil, err
		}
		if len(s.Values) > 0 {
			return nil, errors.New("--values is for a chart: write --chart, or leave it out")
		}
		body["sourceRef"] = ref
		s.folder(body)
		return s.named(s.Name, "kustomization", body), nil
	}
	if s.Path != "" {
		return nil, errors.New("--path is for manifests, and --chart is there: leave one of them out")
	}
	s.release(body)
	return s.named(lastOf(s.Chart, s.Name), "helmRelease", body), nil
}

// lastOf returns the last part of a path, or else a name.
func lastOf(path, name string) string {
	path = strings.Trim(path, "./")
	return cmp.Or(path[strings.LastIndexByte(path, '/')+1:], name)
}

// only refuses flags that do not go with another one. It takes names and values in turn.
func (s Set) only(with string, flags ...string) error {
	for i := 0; i < len(flags); i += 2 {
		if flags[i+1] != "" {
			return fmt.Errorf("%s does not go with %s: leave one of them out", flags[i], with)
		}
	}
	return nil
}

// release writes what is said of a Helm release into its spec.
func (s Set) release(body map[string]any) {
	set(body, s.Interval, "interval")
	set(body, s.ReleaseName, "releaseName")
	set(body, s.TargetNamespace, "targetNamespace")
	if len(s.Values) > 0 {
		body["values"] = s.Values
	}
}

// folder writes what is said of a Kustomization into its spec.
func (s Set) folder(body map[string]any) {
	set(body, s.Interval, "interval")
	set(body, s.Path, "path")
	set(body, s.TargetNamespace, "targetNamespace")
	body["wait"] = true
}

// named returns the add-on with its body, called as the user wants or otherwise by default.
func (s Set) named(byDefault, field string, body map[string]any) map[string]any {
	return map[string]any{"name": cmp.Or(s.Addon, byDefault), field: body}
}

// Values returns Helm values with those of a file, in YAML or JSON, over them.
func Values(values map[string]any, raw []byte) (map[string]any, error) {
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, err
	}
	var file any
	if err := utiljson.Unmarshal(asJSON, &file); err != nil {
		return nil, err
	}
	over, ok := file.(map[string]any)
	if !ok && file != nil {
		return nil, errors.New("Helm values are an object, and this is none")
	}
	merge.Merge(values, over, merge.Options{KeepNull: func([]string) bool { return true }})
	return values, nil
}
