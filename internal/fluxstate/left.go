// SPDX-License-Identifier: Apache-2.0

package fluxstate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client" //nolint:depguard // the Object interface

	"github.com/chandler-hub/chandler/internal/status"
)

// Left says what stays on the cluster, and where, when the hub orphans an object, as far as Flux has recorded it.
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
		if what := Unnoted(o); what != "" {
			return what
		}
		if len(ids) == 0 {
			return "what was applied of it, if anything was: Flux has noted nothing"
		}
		return "what it applied" + objects(ids)
	}
	return ""
}

// Unnoted says what is known about a Kustomization that Flux has tried to apply and never applied successfully; ""
// for any other. kustomize-controller records what it applied only when it has applied everything, and retries
// without end. If the object is deleted before, it removes nothing, and does not say what is on the cluster. It
// counts its attempts in status.history. An attempt that did not reach the cluster has applied nothing, but what it
// says takes the place of what the one before said.
func Unnoted(o *kustomizev1.Kustomization) string {
	s := Of(o)
	if len(o.Status.History) == 0 || o.Status.LastAppliedRevision != "" ||
		o.Status.Inventory != nil && len(o.Status.Inventory.Entries) > 0 || Unreachable(s) && !begun(s) && attempts(o) == 1 {
		return ""
	}
	if Unreachable(s) && !appliedLine.MatchString(s.Message) {
		return "what was applied of it, if anything was, before the cluster fell silent: Flux has noted nothing of it"
	}
	text, first := "what was applied of it, in part: Flux has noted nothing of it", s.Message
	var applied []string
	for _, m := range appliedLine.FindAllStringSubmatch(s.Message, -1) {
		applied = append(applied, m[1])
		first = strings.Replace(first, m[0], "", 1)
	}
	if len(applied) > 0 {
		text += ", and names " + status.List(applied, maxNamed) + " as applied by its last try"
	}
	if s.Message == "" {
		return text + "; it is trying again"
	}
	return text + "; its last message: " + Words(s.Reason, first)
}

// attempts returns how often Flux has tried to apply a Kustomization, as far as its history goes back.
func attempts(o *kustomizev1.Kustomization) (n int64) {
	for _, s := range o.Status.History {
		n += s.TotalReconciliations
	}
	return n
}

// begun returns whether an attempt that lost the cluster had sent something that is no dry run. Everything is tried dry first, stage by
// stage. The answer to an object that is then applied may get lost, and the cluster have it all the same (ssa, ApplyAll).
func begun(s State) bool {
	return strings.Contains(s.Message, " apply failed: ") || appliedLine.MatchString(s.Message)
}

// appliedLine matches how kustomize-controller names, at the end of a failure, an object that it has applied before
// it (ssa, ChangeSetEntry).
var appliedLine = regexp.MustCompile(`(?m)^(\S+/\S+) (?:created|configured)$`)

// FirstTry returns whether Flux is in its first attempt to apply a Kustomization. What it has applied is not known
// before the attempt ends.
func FirstTry(o *kustomizev1.Kustomization) bool {
	return len(o.Status.History) == 0 && o.Status.LastAttemptedRevision != "" && o.Status.LastAppliedRevision == "" &&
		o.Status.Inventory == nil &&
		Of(o).Ready == metav1.ConditionUnknown
}

// maxNamed is how many namespaces and CRDs a message names.
const maxNamed = 5

// objects sums up inventory entries, <namespace>_<name>_<group>_<kind>: how many there are, in which namespaces, and
// which of them are namespaces or CRDs. Deleting one of those deletes everything in it.
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
	text := " (" + status.Count(len(ids), "object")
	for _, part := range []struct {
		what  string
		names []string
	}{{" in namespaces ", in}, {", with namespaces ", namespaces}, {", with CRDs ", crds}} {
		if names := unique(part.names); len(names) > 0 {
			text += part.what + status.List(names, maxNamed)
		}
	}
	return text + ")"
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
