// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

func rightsSummary(f *Facts) string {
	if !f.Rights.Read {
		return "the rights of the hub's ServiceAccount"
	}
	return fmt.Sprintf("%s has %d of the %d rights that it needs", f.Rights.Account, f.Rights.Asked-len(f.Rights.Lacks), f.Rights.Asked)
}

// String is how kubectl auth can-i is asked for it.
func (r Right) String() string {
	s := r.Verb + " " + r.Resource
	if r.Group != "" {
		s += "." + r.Group
	}
	if r.Subresource != "" {
		s += "/" + r.Subresource
	}
	if r.Name != "" {
		s += " " + r.Name
	}
	if r.Namespace != "" {
		s += " in " + r.Namespace
	}
	return s
}

// RightsOf returns what the rules of roles give, one by one. namespace is that of the role; empty for all.
func RightsOf(rules []rbacv1.PolicyRule, namespace string) (out []Right) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						r := Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name}
						r.Resource, r.Subresource = split(resource)
						out = append(out, r)
					}
				}
			}
		}
	}
	return out
}

func split(resource string) (string, string) {
	for i := range resource {
		if resource[i] == '/' {
			return resource[:i], resource[i+1:]
		}
	}
	return resource, ""
}

// rightsMissing finds rights that the hub lacks.
func rightsMissing(f *Facts) []Finding {
	var o Objects
	for _, r := range f.Rights.Lacks {
		o.Add(r.String())
	}
	return some(o, Finding{Severity: Error, Code: "RightsMissing",
		What:   fmt.Sprintf("%s lacks rights that the hub needs", f.Rights.Account),
		Remedy: "apply config/rbac of the hub's version (with Helm: the chart), and look for a ClusterRoleBinding that was changed"})
}

// rightsTooMany finds a hub that may do everything.
func rightsTooMany(f *Facts) []Finding {
	if !f.Rights.Everything {
		return nil
	}
	return one(Finding{Severity: Warning, Code: "RightsTooMany",
		What: fmt.Sprintf("%s may do everything on the management cluster; the hub needs the rights of config/rbac, and no others",
			f.Rights.Account),
		Remedy: "take the other bindings of that ServiceAccount away"})
}

// Reads returns whether rules allow to read Secrets, and whether they allow anything at all.
func Reads(rules []rbacv1.PolicyRule) (reads, everything bool) {
	for _, r := range rules {
		has := func(list []string, want ...string) bool {
			return slices.ContainsFunc(list, func(s string) bool { return s == "*" || slices.Contains(want, s) })
		}
		if len(r.ResourceNames) > 0 || !has(r.APIGroups, "") || !has(r.Resources, "secrets") {
			continue
		}
		reads = reads || has(r.Verbs, "get", "list", "watch")
		everything = everything || slices.Contains(r.APIGroups, "*") && slices.Contains(r.Resources, "*") && slices.Contains(r.Verbs, "*")
	}
	return reads, everything
}
