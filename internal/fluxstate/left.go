// SPDX-License-Identifier: Apache-2.0

package fluxstate

import (
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Left says what stays on the cluster when Flux lets an object go, and where, as far as Flux has noted it.
func Left(obj client.Object) string {
	var ids []string
	switch o := obj.(type) {
	case *helmv2.HelmRelease:
		release := fmt.Sprintf("Helm release %s/%s", o.GetReleaseNamespace(), o.GetReleaseName())
		if o.Status.History.Latest() == nil {
			return release + ", if it got that far: Flux has noted none"
		}
		if o.Status.Inventory != nil {
			for _, e := range o.Status.Inventory.Entries {
				ids = append(ids, e.ID)
			}
		}
		text := release + objects(ids)
		if o.GetInstall().CreateNamespace {
			text += fmt.Sprintf(", namespace %q", o.GetReleaseNamespace())
		}
		return text + " and the CRDs of its chart, if it has any"
	case *kustomizev1.Kustomization:
		if o.Status.Inventory != nil {
			for _, e := range o.Status.Inventory.Entries {
				ids = append(ids, e.ID)
			}
		}
		if len(ids) == 0 {
			return "what was applied of it, if anything was: Flux has noted nothing"
		}
		return "what it applied" + objects(ids)
	}
	return ""
}

// maxNamed is how many namespaces and CRDs are named.
const maxNamed = 5

// objects sums up inventory entries, <namespace>_<name>_<group>_<kind>: how many there are, in which namespaces, and which of
// them are namespaces and CRDs, which take everything in them along when somebody deletes them.
func objects(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	var in, namespaces, crds []string
	for _, id := range ids {
		parts := strings.Split(id, "_")
		if len(parts) != 4 {
			continue
		}
		switch {
		case parts[3] == "Namespace" && parts[2] == "":
			namespaces = append(namespaces, parts[1])
		case parts[3] == "CustomResourceDefinition":
			crds = append(crds, parts[1])
		case parts[0] != "":
			in = append(in, parts[0])
		}
	}
	text := fmt.Sprintf(" (%d objects", len(ids))
	for _, part := range []struct {
		what  string
		names []string
	}{{" in namespaces ", in}, {", with namespaces ", namespaces}, {", with CRDs ", crds}} {
		if names := unique(part.names); len(names) > 0 {
			text += part.what + strings.Join(names[:min(maxNamed, len(names))], ", ")
			if more := len(names) - maxNamed; more > 0 {
				text += fmt.Sprintf(" and %d more", more)
			}
		}
	}
	return text + ")"
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
