// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"fmt"
	"maps"
	"strings"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/compile"
)

// Key is how compile.Pins name a source or a HelmChart.
func Key(u *unstructured.Unstructured) string {
	return compile.SourceKey(u.GetKind(), u.GetNamespace(), u.GetName())
}

// Reference says what a source follows, for people: "branch main".
func Reference(u *unstructured.Unstructured) string {
	ref, _, _ := unstructured.NestedMap(u.Object, "spec", "ref")
	for _, field := range []string{"commit", "digest", "name", "semver", "tag", "branch"} { // the order in which Flux reads them
		if v, ok := ref[field]; ok {
			return fmt.Sprintf("%s %v", field, v)
		}
	}
	if u.GetKind() == sourcev1.OCIRepositoryKind {
		return "tag latest"
	}
	return "branch " + defaultBranch
}

// defaultBranch is what Flux follows in a GitRepository without ref (fluxcd/pkg/git, DefaultBranch).
const defaultBranch = "master"

// Follows returns whether what a source or a HelmChart gives may change while its spec stays.
func Follows(u *unstructured.Unstructured) bool {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, append([]string{"spec"}, path...)...)
		return s
	}
	switch u.GetKind() {
	case sourcev1.HelmChartKind:
		return text("sourceRef", "kind") == sourcev1.HelmRepositoryKind && !exact(text("version"))
	case sourcev1.GitRepositoryKind:
		return text("ref", "commit") == ""
	case sourcev1.OCIRepositoryKind:
		return text("ref", "digest") == ""
	case sourcev1.BucketKind:
		return true
	}
	return false // a HelmRepository is an index: what a chart's version follows, the HelmChart does
}

// exact returns whether a chart version names one version. Charts write it with and without a v.
func exact(version string) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	return err == nil
}

// Unpinnable says why a source that follows upstream cannot be held at what it has; "" if it can.
func Unpinnable(u *unstructured.Unstructured) string {
	switch u.GetKind() {
	case sourcev1.BucketKind:
		return "which has no revisions to go back to"
	case sourcev1.GitRepositoryKind:
		mode, _, _ := unstructured.NestedString(u.Object, "spec", "verify", "mode")
		if mode != "" && !strings.EqualFold(mode, string(sourcev1.ModeGitHEAD)) {
			return "whose verified signature is that of a tag, and a commit has none"
		}
		name, _, _ := unstructured.NestedString(u.Object, "spec", "ref", "name")
		if name != "" && !strings.HasPrefix(name, branches) && !strings.HasPrefix(name, "refs/tags/") {
			return "whose ref.name is neither a branch nor a tag: Flux cannot fetch a commit from there"
		}
	}
	return ""
}

const branches = "refs/heads/"

// Spec returns the spec of a copy of an object of a kind that is held at a version, commit or digest, which is to. spec is that of the
// object itself, and stays.
//
// Flux takes the commit first, and the branch only says where to look for it; without a branch it fetches all of them
// (fluxcd/pkg/git/gogit, cloneCommit). It fetches them again at each interval, though nothing can change: so the copy has
// a long one. It looks at the digest of an OCIRepository first, too (source-controller, getArtifactRef).
func Spec(kind string, spec map[string]any, to string) map[string]any {
	out := maps.Clone(spec)
	ref, _ := spec["ref"].(map[string]any)
	switch kind {
	case sourcev1.HelmChartKind:
		out["version"] = to
	case sourcev1.OCIRepositoryKind:
		out["ref"] = map[string]any{"digest": to}
	case sourcev1.GitRepositoryKind:
		at := map[string]any{"commit": to}
		name, _ := ref["name"].(string)
		switch {
		case strings.HasPrefix(name, branches):
			at["branch"] = strings.TrimPrefix(name, branches)
		case name != "" || ref["tag"] != nil || ref["semver"] != nil: // on any branch
		case ref["branch"] != nil:
			at["branch"] = ref["branch"]
		default:
			at["branch"] = defaultBranch
		}
		out["ref"], out["interval"] = at, pinnedInterval
	}
	return out
}

const pinnedInterval = "1h"
