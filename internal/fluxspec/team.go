// SPDX-License-Identifier: Apache-2.0

package fluxspec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/jsontype"
	"github.com/chandler-hub/chandler/internal/status"
)

// TeamRules are what a Team allows the AddonSets of its hub namespaces. A nil TeamRules allows everything.
//
// They are checked wherever files tell. What files cannot tell, the cluster refuses: Flux goes there with a token of the
// team's ServiceAccount. So these checks are there to say early, and in words, what would fail on the cluster; only what
// they say about sources, priorities and numbers is said nowhere else. What they cannot tell:
//   - what a chart, a folder in Git, a ConfigMap or a Secret holds;
//   - remote bases of a folder and of its components: Flux's flag --no-remote-bases refuses these;
//   - whether a kind that is not one of Kubernetes' own is of the cluster's scope;
//   - where the index of an allowed Helm repository, or a chart that lists dependencies, sends Flux for a chart.
type TeamRules struct {
	// Name of the Team, for messages.
	Name string
	// Namespaces are the team's on clusters, as the Team writes them. They may hold expressions.
	Namespaces []string
	// Allow are patterns of the URLs that sources may have; all if there are none (see Allows).
	Allow []string
	// Kinds of sources; all if there are none.
	Kinds []string
	// RequireVerification wants every source to verify a signature.
	RequireVerification bool
	// MaxPriority is the highest priority of a set.
	MaxPriority int32
	// MaxAddons is how many add-ons a set may have. Default: DefaultMaxAddons.
	MaxAddons int
}

// DefaultMaxAddons is how many add-ons each set of a team may have if its Team does not say.
const DefaultMaxAddons = 50

// The fields of a Team that messages name.
const (
	namespacesField   = "spec.namespaces"
	allowField        = "spec.sources.allow"
	verificationField = "spec.sources.requireVerification"
)

// Hash differs for different rules; "" for nil.
func (r *TeamRules) Hash() string {
	if r == nil {
		return ""
	}
	raw, _ := json.Marshal(r) // texts, numbers and lists of texts always can be written
	return identity.Hash(16, string(raw))
}

// Refusal says what the Team does not allow, by which field, and whom to ask. The field is empty if none could allow it.
func (r *TeamRules) Refusal(field, format string, args ...any) string {
	out := "Team " + r.Name + ": " + fmt.Sprintf(format, args...) + "; ask who keeps the Team"
	if field != "" {
		out += " about its " + field
	}
	return out
}

// Addons returns how many add-ons a set may have.
func (r *TeamRules) Addons() int {
	if r.MaxAddons <= 0 {
		return DefaultMaxAddons
	}
	return r.MaxAddons
}

// Priority returns the priority that counts for a set that asks for one. A set that asks for too much does not compile,
// but its priority counts while it goes on with an older revision.
func (r *TeamRules) Priority(asked int32) int32 {
	if r == nil {
		return asked
	}
	return min(asked, r.MaxPriority)
}

// RestrictsSources returns whether the Team says anything about sources. Then an add-on may only refer to sources of its
// set's spec.sources: files do not tell what another source is.
func (r *TeamRules) RestrictsSources() bool {
	return r != nil && (len(r.Allow) > 0 || len(r.Kinds) > 0 || r.RequireVerification)
}

// Has returns whether a namespace of a cluster may be the team's. An expression in the name of one of the team's
// namespaces stands for any text here: what it gives differs from cluster to cluster. Where names are evaluated (see
// compile.Program.TeamOn), none is left.
func (r *TeamRules) Has(namespace string) bool {
	if namespace == "" {
		return false
	}
	return slices.ContainsFunc(r.Namespaces, func(name string) bool {
		before, rest, open := strings.Cut(name, "<<")
		end := strings.LastIndex(rest, ">>")
		if !open || end < 0 {
			return name == namespace
		}
		after := rest[end+len(">>"):]
		return len(before)+len(after) <= len(namespace) && strings.HasPrefix(namespace, before) && strings.HasSuffix(namespace, after)
	})
}

// Home returns the namespace that is meant if an add-on names none: the first of the team's. It returns "" if that is not
// known, because its name holds an expression.
func (r *TeamRules) Home() string {
	if len(r.Namespaces) == 0 || strings.Contains(r.Namespaces[0], "<<") {
		return ""
	}
	return r.Namespaces[0]
}

// RefusesRelease returns why a Helm release may not be in a namespace; "" if it may. It is asked of every release before
// Flux gets it, also of those that an add-on goes on with from before the Team was there.
func (r *TeamRules) RefusesRelease(namespace string) string {
	switch {
	case r == nil || r.Has(namespace):
		return ""
	case namespace == "":
		return r.Refusal(namespacesField, "which namespace is its first one is not known here; write targetNamespace")
	}
	return r.Refusal(namespacesField, "the release is in namespace %q, and has to be in %s", namespace, r.itsNamespaces())
}

func (r *TeamRules) itsNamespaces() string {
	known := slices.DeleteFunc(slices.Clone(r.Namespaces), func(name string) bool { return name == "" })
	if len(known) == 0 {
		return "one of the Team's namespaces, of which none is known here"
	}
	return "one of the Team's namespaces, " + some(known)
}

// some lists the first few of many texts.
func some(all []string) string { return status.List(all, 5) }

// checkPart checks what can be told from a part of a body alone.
func (r *TeamRules) checkPart(kind string, body map[string]any) []Problem {
	if r == nil {
		return nil
	}
	var out []Problem
	for _, field := range []string{"targetNamespace", "storageNamespace"} {
		// A Kustomization without a targetNamespace leaves each object where it says.
		if v := body[field]; kind != KustomizationKind || v != "" {
			out = append(out, r.checkNamespace(field, v)...)
		}
	}
	if _, ok := body["serviceAccountName"]; ok {
		out = append(out, Problem{"serviceAccountName",
			r.Refusal("", "its add-ons come to the cluster as the Team's own ServiceAccount, and as no other; leave the field out")})
	}
	out = append(out, r.checkDurations(body)...)
	switch kind {
	case HelmReleaseKind:
		out = append(out, r.checkHelmRelease(body)...)
	case ManifestsKind:
		objects, _ := body["objects"].([]any)
		out = append(out, r.checkObjects("objects", objects, "", "")...)
		out = append(out, r.checkCopies(body)...)
	}
	return out
}

// checkNamespace wants a text to name one of the team's namespaces. A Hole is checked when it is filled.
func (r *TeamRules) checkNamespace(path string, v any) []Problem {
	switch v := v.(type) {
	case nil, Hole:
	case string:
		if !r.Has(v) {
			return []Problem{{path, r.Refusal(namespacesField, "%q is not %s", v, r.itsNamespaces())}}
		}
	default:
		return []Problem{{path, "must be " + jsontype.Text}}
	}
	return nil
}

func (r *TeamRules) checkHelmRelease(body map[string]any) []Problem {
	var out []Problem
	if v, _, _ := unstructured.NestedFieldNoCopy(body, "install", "createNamespace"); v == true {
		out = append(out, Problem{"install.createNamespace",
			r.Refusal(namespacesField, "its namespaces are made by the hub, and its add-ons make none; leave the field out")})
	}
	for _, action := range []string{"install", "upgrade"} {
		v, _, _ := unstructured.NestedFieldNoCopy(body, action, "crds")
		if text, ok := v.(string); ok && text != string(helmv2.Skip) {
			out = append(out, Problem{action + ".crds", r.Refusal("", "CustomResourceDefinitions are the whole cluster's, and its add-ons bring "+
				"none; leave the field out or write %s, and have a platform set deliver them", helmv2.Skip)})
		}
	}
	return out
}

// checkWhole checks what only a whole body tells.
func (r *TeamRules) checkWhole(kind string, body map[string]any) []Problem {
	if r == nil {
		return nil
	}
	if kind == KustomizationKind {
		return r.checkDecryption(body)
	}
	var out []Problem
	nulls := []string{"install", "upgrade", "install.crds", "upgrade.crds"} // no release has a null namespace (required)
	if kind == ManifestsKind {
		nulls = []string{"targetNamespace"}
	}
	// Flux's own defaults would count, and these are not for teams. In the part of an overlay, null takes a field away.
	for _, field := range nulls {
		if v, ok, _ := unstructured.NestedFieldNoCopy(body, strings.Split(field, ".")...); ok && v == nil {
			out = append(out, Problem{field, r.Refusal("", "the default counts for its add-ons, and null would undo it; leave the field out")})
		}
	}
	source, _, _ := unstructured.NestedFieldNoCopy(body, "chart", "spec", "sourceRef", "kind")
	verify, _, _ := unstructured.NestedFieldNoCopy(body, "chart", "spec", "verify")
	if r.RequireVerification && source == sourcev1.HelmRepositoryKind && !filled(verify) {
		out = append(out, Problem{"chart.spec.verify",
			r.Refusal(verificationField, "wants every source to verify a signature, and a chart of a HelmRepository does it here")})
	}
	return out
}

// filled returns whether a value is an object that says something, or a Hole that may become one.
func filled(v any) bool {
	if _, hole := v.(Hole); hole {
		return true
	}
	m, ok := v.(map[string]any)
	return ok && len(m) > 0
}

// checkObjects checks plain objects, and those within lists, whose kind and apiVersion may follow from the list's.
func (r *TeamRules) checkObjects(path string, objects []any, apiVersion, kind string) []Problem {
	var out []Problem
	for i, x := range objects {
		o, ok := x.(map[string]any)
		if !ok {
			continue // it is a Hole, or refused already
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		itsVersion, itsKind := apiVersion, kind
		if s, ok := o["apiVersion"].(string); ok && s != "" {
			itsVersion = s
		}
		if s, ok := o["kind"].(string); ok && s != "" {
			itsKind = s
		}
		if isClusterScoped(itsVersion, itsKind) {
			out = append(out, Problem{at + ".kind", r.Refusal("", "a %s is the whole cluster's, and its add-ons bring objects of its namespaces "+
				"only; a platform set can deliver it", itsKind)})
			continue
		}
		if ns, _, _ := unstructured.NestedFieldNoCopy(o, "metadata", "namespace"); ns != "" {
			out = append(out, r.checkNamespace(at+".metadata.namespace", ns)...)
		}
		// Helm takes every object with items for a list, whatever its kind.
		if items, ok := o["items"].([]any); ok {
			out = append(out, r.checkObjects(at+".items", items, itsVersion, strings.TrimSuffix(itsKind, "List"))...)
		}
	}
	return out
}

// clusterScoped are Kubernetes' own kinds of the cluster's scope, by their group. Other kinds of that scope are refused by
// the cluster.
var clusterScoped = map[string][]string{
	"":                          {"Namespace", "Node", "PersistentVolume"},
	"gateway.networking.k8s.io": {"GatewayClass"},
	"admissionregistration.k8s.io": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"networking.k8s.io":            {"IngressClass", "IPAddress", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"StorageClass", "VolumeAttachment", "CSIDriver", "CSINode", "VolumeAttributesClass"},
}

func isClusterScoped(apiVersion, kind string) bool {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = "" // apiVersion is v1
	}
	return IsClusterScoped(group, kind)
}

// IsClusterScoped returns whether objects of a kind of Kubernetes itself are in no namespace.
func IsClusterScoped(group, kind string) bool { return slices.Contains(clusterScoped[group], kind) }
