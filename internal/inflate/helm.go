// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/chartutil"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartv2util "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var (
	// chance matches what may come out otherwise each time. A word too many costs a second run, and nothing else.
	chance = regexp.MustCompile(`\b(rand\w*|shuffle|gen[A-Z]\w*|uuidv4|now|date\w*|ago|htpasswd|bcrypt|encryptAES|keys|values)\b`)
	// lookup matches a look at the objects of the cluster.
	lookup = regexp.MustCompile(`\blookup\b`)
	// asks matches a question for the APIs of the cluster.
	asks = regexp.MustCompile(`APIVersions`)
	// reads matches a look at the other files of the chart.
	reads = regexp.MustCompile(`\bFiles\b`)
)

// helm makes what a HelmRelease puts on its cluster.
func (f *Inflater) helm(ctx context.Context, in *Input) (*Result, error) {
	spec := in.chartSpec()
	chart, err := f.From.Chart(ctx, spec, in.source)
	if err != nil {
		return nil, err
	}
	packed := chart.Files
	if packed == nil && f.Read != nil {
		if packed, err = f.Read(chart); err != nil {
			return nil, fmt.Errorf("read the chart: %w", err)
		}
	}
	namespace := in.object.Flux.GetNamespace()
	values, err := chartutil.ChartValuesFromReferences(ctx, logr.Discard(), documents{from: f.From}, namespace, in.release.GetValues(),
		in.release.Spec.ValuesFrom...)
	if err != nil {
		return nil, fmt.Errorf("its values: %w", err)
	}
	files, err := WithValuesFiles(packed, spec)
	if err != nil {
		return nil, err
	}
	r := &release{HelmRelease: in.release, files: files, values: values, version: in.object.Version}
	out, err := r.result()
	if err != nil {
		return nil, err
	}
	if out.Asks {
		out.MadeOf = r.madeOf()
	}
	if !r.chance() {
		return out, nil
	}
	again, err := r.result()
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(out.Objects, again.Objects) {
		out.Again = again.Objects
	}
	return out, nil
}

// WithValuesFiles returns the files of a chart with the values that source-controller would put into it.
func WithValuesFiles(files []*archive.BufferedFile, spec *sourcev1.HelmChartSpec) ([]*archive.BufferedFile, error) {
	if len(spec.ValuesFiles) == 0 {
		return files, nil
	}
	values := map[string]any{}
	for _, name := range spec.ValuesFiles {
		i := slices.IndexFunc(files, func(f *archive.BufferedFile) bool { return f.Name == path.Clean(name) })
		if i < 0 && spec.IgnoreMissingValuesFiles {
			continue
		}
		if i < 0 {
			return nil, fmt.Errorf("the chart has no values file %q", name)
		}
		one, err := common.ReadValues(files[i].Data)
		if err != nil {
			return nil, fmt.Errorf("values file %q: %w", name, err)
		}
		values = chartutil.MergeMaps(values, one)
	}
	raw, err := yaml.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("its values files: %w", err)
	}
	out := slices.DeleteFunc(slices.Clone(files), func(f *archive.BufferedFile) bool { return f.Name == chartv2util.ValuesfileName })
	return append(out, &archive.BufferedFile{Name: chartv2util.ValuesfileName, Data: raw}), nil
}

// release is a release that is being made.
type release struct {
	*helmv2.HelmRelease
	files   []*archive.BufferedFile
	values  map[string]any
	version string
}

// chance returns whether the release may come out otherwise each time.
func (r *release) chance() bool { return r.matches(chance) }

// matches looks into all that may be a template: values too, other files where templates read them, and charts that are packed within:
// these are not read, and match.
func (r *release) matches(pattern *regexp.Regexp) bool {
	raw, err := yaml.Marshal(r.values)
	if err != nil || pattern.Match(raw) {
		return true
	}
	template := func(f *archive.BufferedFile) bool {
		return strings.Contains(f.Name, "templates/") || path.Base(f.Name) == chartv2util.ValuesfileName
	}
	all := slices.ContainsFunc(r.files, func(f *archive.BufferedFile) bool { return template(f) && reads.Match(f.Data) })
	return slices.ContainsFunc(r.files, func(f *archive.BufferedFile) bool {
		return (all || template(f)) && pattern.Match(f.Data) || strings.HasPrefix(f.Name, "charts/") && path.Ext(f.Name) == ".tgz"
	})
}

// madeOf returns what tells the files and values of the release from others.
func (r *release) madeOf() string {
	files := map[string][]byte{}
	for _, f := range r.files {
		files[f.Name] = f.Data
	}
	sum := hash(map[string]any{"files": files, "values": r.values, "version": r.version})
	return hex.EncodeToString([]byte(sum))
}

// result does what helm-controller does, up to the objects that it would apply.
func (r *release) result() (out *Result, err error) {
	defer func() {
		if p := recover(); p != nil { // templates are other people's programs
			err = fmt.Errorf("Helm fails: %v", p)
		}
	}()
	chart, err := r.load()
	if err != nil {
		return nil, err
	}
	out = &Result{}
	capabilities, err := r.capabilities(out)
	if err != nil {
		return nil, err
	}
	if want := chart.Metadata.KubeVersion; want != "" && !chartv2util.IsCompatibleRange(want, capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("the chart wants Kubernetes %s, and the cluster has %s", want, capabilities.KubeVersion.Version)
	}
	if err := chartv2util.ProcessDependencies(chart, r.values); err != nil {
		return nil, fmt.Errorf("the charts that it depends on: %w", err)
	}
	check := !r.GetInstall().DisableSchemaValidation
	if check && refersElsewhere(chart) {
		check = false
		out.Notes = append(out.Notes, "its values are not held to the chart's schema, which refers to other files")
	}
	options := common.ReleaseOptions{Name: releaseName(r.GetReleaseName()), Namespace: r.GetReleaseNamespace(), Revision: 1, IsInstall: true}
	values, err := util.ToRenderValuesWithSchemaValidation(chart, r.values, options, capabilities, !check)
	if err != nil {
		return nil, fmt.Errorf("its values: %w", err)
	}
	texts, err := engine.Render(chart, values)
	if err != nil {
		return nil, fmt.Errorf("Helm: %w", err)
	}
	if out.Objects, err = r.objects(texts, out); err != nil {
		return nil, err
	}
	if out.CRDs, err = crds(chart); err != nil {
		return nil, err
	}
	return out, nil
}

// load reads the chart. Helm changes it when it renders, so each run has its own.
func (r *release) load() (*chartv2.Chart, error) {
	chart, err := loader.LoadFiles(r.files)
	if err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	if chart.Metadata == nil || chart.Metadata.Type == "library" {
		return nil, errors.New("the chart is none that can be installed")
	}
	for _, d := range chart.Metadata.Dependencies {
		if !slices.ContainsFunc(chart.Dependencies(), func(c *chartv2.Chart) bool { return c.Name() == d.Name }) {
			return nil, fmt.Errorf("the chart depends on chart %s, which its folder charts/ does not have", d.Name)
		}
	}
	return chart, nil
}

// capabilities returns what a chart can ask about the cluster.
func (r *release) capabilities(out *Result) (*common.Capabilities, error) {
	all := common.DefaultCapabilities.Copy()
	if r.matches(lookup) {
		out.Asks = true
		out.Notes = append(out.Notes, "the chart looks what its cluster has (lookup): here it finds nothing")
	}
	if r.matches(asks) {
		out.Asks = true
		out.Notes = append(out.Notes, "the chart may ask which APIs its cluster has: those of Kubernetes itself count, and no others")
	}
	if r.version == "" {
		if r.matches(regexp.MustCompile(`KubeVersion|kubeVersion|Capabilities`)) {
			out.Asks = true
			out.Notes = append(out.Notes, fmt.Sprintf("the version of Kubernetes is not known: it counts as %s", all.KubeVersion.Version))
		}
		return all, nil
	}
	version, err := common.ParseKubeVersion(r.version)
	if err != nil {
		return nil, fmt.Errorf("the version of Kubernetes: %w", err)
	}
	all.KubeVersion = *version
	return all, nil
}

// objects reads what the templates gave, and applies what the HelmRelease wants done with it.
func (r *release) objects(texts map[string]string, out *Result) ([]*unstructured.Unstructured, error) {
	var hooks, plain []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if path.Base(name) == "NOTES.txt" || strings.HasPrefix(path.Base(name), "_") || strings.TrimSpace(texts[name]) == "" {
			continue
		}
		documents := releaseutil.SplitManifests(texts[name])
		keys := slices.Collect(maps.Keys(documents))
		slices.SortFunc(keys, compareKeys)
		for _, k := range keys {
			found, err := read([]byte(documents[k]))
			if err != nil {
				return nil, fmt.Errorf("%s gives no object: %w", name, err)
			}
			for _, u := range found {
				if _, hook := u.GetAnnotations()[hookAnnotation]; hook {
					hooks = append(hooks, u)
				} else {
					plain = append(plain, u)
				}
			}
		}
	}
	return r.postRender(slices.DeleteFunc(hooks, func(u *unstructured.Unstructured) bool { return r.isIdle(u, out) }), plain)
}

// compareKeys compares two keys that Helm has numbered.
func compareKeys(a, b string) int {
	switch order := releaseutil.BySplitManifestsOrder([]string{a, b}); {
	case a == b:
		return 0
	case order.Less(0, 1):
		return -1
	}
	return 1
}

const hookAnnotation = "helm.sh/hook"

// hookEvents are the events that Helm knows hooks of. Those that are true happen when Flux installs or upgrades a release.
var hookEvents = map[string]bool{
	"pre-install": true, "post-install": true, "pre-upgrade": true, "post-upgrade": true,
	"pre-delete": false, "post-delete": false, "pre-rollback": false, "post-rollback": false, "test": false, "test-success": false,
}

// isIdle returns whether a hook puts nothing on the cluster when Flux installs or upgrades the release. Helm skips an object of whose
// events it does not know one, such as crd-install of Helm 2: a note says so.
func (r *release) isIdle(u *unstructured.Unstructured, out *Result) bool {
	events := u.GetAnnotations()[hookAnnotation]
	runs := false
	for event := range strings.SplitSeq(events, ",") {
		event = strings.ToLower(strings.TrimSpace(event))
		happens, known := hookEvents[event]
		if !known {
			out.Notes = append(out.Notes, fmt.Sprintf("%s %s is never applied: Helm does not know a hook %q and skips the object",
				u.GetKind(), u.GetName(), event))
			return true
		}
		runs = runs || happens || strings.HasPrefix(event, "test") && r.GetTest().Enable
	}
	return !runs || r.GetInstall().DisableHooks && r.GetUpgrade().DisableHooks
}

// crds returns what the folders crds/ of a chart hold.
func crds(chart *chartv2.Chart) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, one := range chart.CRDObjects() {
		found, err := read(one.File.Data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Filename, err)
		}
		out = append(out, slices.DeleteFunc(found, func(u *unstructured.Unstructured) bool {
			return u.GetKind() != "CustomResourceDefinition" // Flux ignores what else is there
		})...)
	}
	return out, nil
}

// What helm-controller does with the folder crds/ of a chart: it leaves out what it has, makes what is not there, or replaces all.
const (
	CRDSkip    = "Skip"
	CRDCreate  = "Create"
	CRDReplace = "CreateReplace"
)

// CRDPolicy returns what becomes of the folder crds/ of the chart of a HelmRelease.
func CRDPolicy(flux *unstructured.Unstructured, upgrade bool) string {
	policy, action := CRDCreate, "install"
	if upgrade {
		policy, action = CRDSkip, "upgrade"
	}
	if said, _, _ := unstructured.NestedString(flux.Object, "spec", action, "crds"); said != "" {
		policy = said
	}
	return policy
}

// maxName is the longest name of a release.
const maxName = 53

// releaseName returns the name of a release as helm-controller shortens it.
func releaseName(name string) string {
	if len(name) <= maxName {
		return name
	}
	return fmt.Sprintf("%s-%s", name[:40], sum(name)[:12])
}
