// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"cmp"
	"slices"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
)

// Source is a source of Flux, or a HelmChart.
type Source interface {
	GetArtifact() *fluxmeta.Artifact
	GetConditions() []metav1.Condition
}

// Upstream returns what a source has, as it is pinned, or why it has nothing; both are empty while Flux is at work. What Flux has
// read before counts also while it fails: no set pins less because upstream is down. rendered is the source as the hub makes it.
func Upstream(rendered *unstructured.Unstructured, obj Source) (upstream, why string) {
	if a := obj.GetArtifact(); a != nil {
		files, _, _ := unstructured.NestedSlice(rendered.Object, "spec", "valuesFiles")
		upstream, err := Read(rendered.GetKind(), a.Revision, len(files) > 0)
		if err != nil {
			return "", err.Error()
		}
		return upstream, Failure(obj)
	}
	return "", Failure(obj)
}

// Failure returns why a source fails; "" if it does not.
func Failure(obj Source) string {
	if c := apimeta.FindStatusCondition(obj.GetConditions(), hubv1.ReadyCondition); c != nil && c.Status == metav1.ConditionFalse {
		return c.Message
	}
	return ""
}

// Followed says what a set follows, and what its newest revision holds of it, for at most so many sources.
func Followed(namespace string, floats []Float, pins *compile.Pins, most int) []hubv1.FollowedSource {
	var out []hubv1.FollowedSource
	for i := range floats {
		if f := &floats[i]; len(out) < most {
			out = append(out, f.Status(namespace, pins))
		}
	}
	slices.SortFunc(out, func(a, b hubv1.FollowedSource) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}
