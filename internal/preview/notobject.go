// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
)

// NotObject is the error for a document, or an item of a list, that is not a Kubernetes object.
type NotObject struct {
	File string
	// Line of the file on which the document begins, counted from 1.
	Line int
	// APIVersion and Kind of the document; at least one is empty.
	APIVersion, Kind string
}

// Meant returns whether the document was meant for the hub. Folders often contain others: values of a Helm chart, its
// Chart.yaml, a kustomization.
func (e *NotObject) Meant() bool {
	return strings.HasPrefix(e.APIVersion, hubv1.GroupVersion.Group+"/") ||
		slices.ContainsFunc(lookedAt, func(k schema.GroupKind) bool { return k.Kind == e.Kind })
}

func (e *NotObject) Error() string {
	switch {
	case e.Kind != "":
		wanted := "its apiVersion"
		if e.Kind == setKind.Kind || e.Kind == teamKind.Kind || e.Kind == registrationKind.Kind {
			wanted = "apiVersion: " + hubv1.GroupVersion.String()
		}
		return oneLine(fmt.Sprintf("%s, line %d: this %s has no apiVersion; write %s", e.File, e.Line, e.Kind, wanted))
	case e.APIVersion != "":
		return oneLine(fmt.Sprintf("%s, line %d: this object of %s has no kind; write one", e.File, e.Line, e.APIVersion))
	}
	return oneLine(fmt.Sprintf("%s, line %d: this is no Kubernetes object: it has neither apiVersion nor kind; write both, or leave it out",
		e.File, e.Line))
}

// lookedAt are the kinds that the hub reads.
var lookedAt = func() []schema.GroupKind {
	kinds := []schema.GroupKind{setKind, teamKind, registrationKind, configMapKind, namespaceKind}
	for _, k := range origin.Kinds {
		kinds = append(kinds, k.GroupKind)
	}
	return kinds
}()
