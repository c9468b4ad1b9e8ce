// SPDX-License-Identifier: Apache-2.0

package create

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Team is what `create team` is asked for.
type Team struct {
	Object
	// HubNamespaces are the team's namespaces on the management cluster; by default the Team's name.
	HubNamespaces []string
	Selector      string
	All           bool
	// Namespaces on the clusters; by default one of the Team's name.
	Namespaces  []string
	PodSecurity string
	// Network is the policy of its namespaces: Isolated or None.
	Network      string
	Quota        map[string]string
	ClusterRole  string
	AllowSources []string
	SourceKinds  []string
	Verified     bool
	Delete       bool
	// Groups and Users are the people who write the team's AddonSets.
	Groups, Users []string
}

// peopleName is the name of the Role and the RoleBinding of a team's people in a hub namespace.
const peopleName = "chandler-team"

// peopleRules are what a team's people may do in their hub namespaces. What they must not have is docs/teams.md's to say: with
// the right to write HelmReleases or Kustomizations they would use any ServiceAccount, source or Secret that Flux reaches
// from there; and a registration of their own would bring an admin kubeconfig where they read Secrets.
var peopleRules = []any{
	rule("chandler.dev", []string{"addonsets"}, "create", "delete", "get", "list", "patch", "update", "watch"),
	rule("chandler.dev", []string{"addondeliveries", "addonsets/status"}, "get", "list", "watch"),
	rule("source.toolkit.fluxcd.io", []string{"buckets", "gitrepositories", "helmrepositories", "ocirepositories"},
		"create", "delete", "get", "list", "patch", "update", "watch"),
	rule("source.toolkit.fluxcd.io", []string{"helmcharts"}, "get", "list", "watch"),
	rule("helm.toolkit.fluxcd.io", []string{"helmreleases"}, "get", "list", "watch"),
	rule("kustomize.toolkit.fluxcd.io", []string{"kustomizations"}, "get", "list", "watch"),
	rule("", []string{"configmaps", "secrets"}, "create", "delete", "get", "list", "patch", "update", "watch"),
	rule("", []string{"events"}, "get", "list", "watch"),
	rule("apps", []string{"controllerrevisions"}, "get", "list", "watch"),
}

func rule(group string, resources []string, verbs ...string) map[string]any {
	r := map[string]any{"apiGroups": []any{group}}
	set(r, resources, "resources")
	set(r, verbs, "verbs")
	return r
}

// Make returns the hub namespaces, what the people may do there if any are named, and the Team. The Team comes last: the
// namespaces are governed as soon as it is there.
func (t Team) Make() ([]*unstructured.Unstructured, error) {
	if err := t.check("Team"); err != nil {
		return nil, err
	}
	hubNamespaces := t.HubNamespaces
	if len(hubNamespaces) == 0 {
		hubNamespaces = []string{t.Name}
	}
	spec, err := t.spec(hubNamespaces)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, ns := range hubNamespaces {
		if err := (Object{Name: ns, Namespace: ns}).check("hub namespace"); err != nil {
			return nil, err
		}
		if ns == t.Namespace {
			return nil, fmt.Errorf("hub namespace %q is the Team's own, a platform namespace: a user who writes there reaches every cluster. Name "+
				"another one by --team-namespace", ns)
		}
		if strings.HasPrefix(ns, "kube-") || ns == metav1.NamespaceDefault {
			return nil, fmt.Errorf("hub namespace %q is Kubernetes' own, and a team's people read Secrets in theirs: name another one by "+
				"--team-namespace", ns)
		}
		out = append(out, document("v1", "Namespace", Object{Name: ns}))
		people, err := t.people(ns)
		if err != nil {
			return nil, err
		}
		out = append(out, people...)
	}
	u := document(hubv1.GroupVersion.String(), "Team", t.Object)
	u.Object["spec"] = spec
	return append(out, u), nil
}

func (t Team) spec(hubNamespaces []string) (map[string]any, error) {
	spec := map[string]any{}
	if !slices.Equal(hubNamespaces, []string{t.Name}) {
		set(spec, hubNamespaces, "hubNamespaces")
	}
	if err := selector(spec, t.Selector, t.All); err != nil {
		return nil, err
	}
	names := t.Namespaces
	if len(names) == 0 {
		names = []string{t.Name}
	}
	namespaces := []any{}
	for _, name := range names {
		ns := map[string]any{"name": name}
		set(ns, t.PodSecurity, "podSecurity")
		set(ns, t.Network, "networkPolicy")
		for resource, quantity := range t.Quota {
			set(ns, quantity, "resourceQuota", "hard", resource)
		}
		namespaces = append(namespaces, ns)
	}
	spec["namespaces"] = namespaces
	set(spec, t.ClusterRole, "clusterRole")
	set(spec, t.AllowSources, "sources", "allow")
	set(spec, t.SourceKinds, "sources", "kinds")
	set(spec, t.Verified, "sources", "requireVerification")
	if t.Delete {
		spec["deletionPolicy"] = string(hubv1.DeletionPolicyDelete)
	}
	return spec, nil
}

// people returns the Role and the RoleBinding of the team's people in a hub namespace; none if no person is named.
func (t Team) people(namespace string) ([]*unstructured.Unstructured, error) {
	subjects := []any{}
	for _, s := range []struct {
		kind  string
		names []string
	}{{rbacv1.GroupKind, t.Groups}, {rbacv1.UserKind, t.Users}} {
		for _, name := range s.names {
			if name == "" {
				return nil, errors.New("--group and --user take a name, and one of them is empty")
			}
			subjects = append(subjects, map[string]any{"apiGroup": rbacv1.GroupName, "kind": s.kind, "name": name})
		}
	}
	if len(subjects) == 0 {
		return nil, nil
	}
	at := Object{Namespace: namespace, Name: peopleName}
	role, binding := document(rbacv1.SchemeGroupVersion.String(), "Role", at), document(rbacv1.SchemeGroupVersion.String(), "RoleBinding", at)
	role.Object["rules"] = peopleRules
	binding.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Role", "name": peopleName}
	binding.Object["subjects"] = subjects
	return []*unstructured.Unstructured{role, binding}, nil
}
