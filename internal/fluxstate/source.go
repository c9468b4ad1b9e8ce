// SPDX-License-Identifier: Apache-2.0

package fluxstate

import (
	"fmt"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client" //nolint:depguard // the Object interface

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
)

// SourceGrace is how long Flux may wait for a source that fails or does not exist before the add-on counts as failed: a
// source may come a moment after what refers to it, and a registry may be away for a moment.
const SourceGrace = NodesGrace

// Refusal says that Flux could not fetch a source or chart. It is zero if Flux could, or has not tried yet.
type Refusal struct {
	// Source is its kind, namespace and name.
	Source string
	// Reason and Message are Flux's words.
	Reason, Message string
}

// RefusalOf returns what Flux says of a source or chart that it could not fetch. A source that has an artifact serves that one, however its
// last fetch ended; a chart has to be what its spec says.
func RefusalOf(source client.Object) Refusal {
	var conditions []metav1.Condition
	var artifact *fluxmeta.Artifact
	kind := ""
	switch o := source.(type) {
	case *sourcev1.HelmChart:
		kind, conditions = sourcev1.HelmChartKind, o.Status.Conditions
	case *sourcev1.HelmRepository:
		kind, conditions, artifact = sourcev1.HelmRepositoryKind, o.Status.Conditions, o.Status.Artifact
	case *sourcev1.GitRepository:
		kind, conditions, artifact = sourcev1.GitRepositoryKind, o.Status.Conditions, o.Status.Artifact
	case *sourcev1.OCIRepository:
		kind, conditions, artifact = sourcev1.OCIRepositoryKind, o.Status.Conditions, o.Status.Artifact
	case *sourcev1.Bucket:
		kind, conditions, artifact = sourcev1.BucketKind, o.Status.Conditions, o.Status.Artifact
	}
	c := meta.FindStatusCondition(conditions, hubv1.ReadyCondition)
	if c == nil || c.Status != metav1.ConditionFalse || c.ObservedGeneration != source.GetGeneration() || artifact != nil {
		return Refusal{}
	}
	return Refusal{
		Source: fmt.Sprintf("%s %s/%s", kind, source.GetNamespace(), source.GetName()), Reason: c.Reason,
		Message: excerpt.Cut(strings.Join(strings.Fields(fleeting.ReplaceAllString(c.Message, "")), " "), maxMessage),
	}
}
