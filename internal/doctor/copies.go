// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

const copiesRemedy = "a reader of Secrets there has the fleet (docs/security.md): take the right away, or give it for other " +
	"namespaces only"

func copiesSummary(f *Facts) string {
	return "who may read Secrets in " + list(f.PlatformNamespaces)
}

func subject(s rbacv1.Subject) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return "ServiceAccount " + s.Namespace + "/" + s.Name
	}
	return s.Kind + " " + s.Name
}

// open returns whether a subject is a crowd. Groups of the ServiceAccounts of a namespace that may read the Secrets anyway are none.
func (f *Facts) crowd(s rbacv1.Subject) bool {
	if s.Kind != rbacv1.GroupKind {
		return s.Kind == rbacv1.UserKind && s.Name == "system:anonymous"
	}
	switch s.Name {
	case "system:authenticated", "system:unauthenticated", "system:serviceaccounts":
		return true
	}
	ns, ok := strings.CutPrefix(s.Name, "system:serviceaccounts:")
	return ok && !f.trusted(ns)
}

// trusted returns whether the users who run pods in a namespace have the fleet anyway.
func (f *Facts) trusted(namespace string) bool {
	return slices.Contains(append([]string{"kube-system", f.HubNamespace, f.FluxNamespace}, f.PlatformNamespaces...), namespace)
}

func (r *Reader) where() string {
	if r.Namespace == "" {
		return "all namespaces"
	}
	return r.Namespace
}

func (r *Reader) text() string {
	return fmt.Sprintf("%s in %s (%s)", subject(r.Subject), r.where(), r.Binding)
}

// copiesOpen finds platform namespaces whose Secrets a crowd may read.
func copiesOpen(f *Facts) []Finding {
	var o Objects
	for i := range f.Access.Readers {
		if r := &f.Access.Readers[i]; f.crowd(r.Subject) {
			o.Add(r.text())
		}
	}
	return some(o, Finding{Severity: Error, Code: "CopiesOpen", What: "whole groups of accounts may read the kubeconfigs of the fleet",
		Remedy: copiesRemedy})
}

// copiesRead finds others than Kubernetes, Flux, the hub and administrators who may read the kubeconfig copies.
func copiesRead(f *Facts) []Finding {
	var o Objects
	seen := map[string]bool{}
	for i := range f.Access.Readers {
		r := &f.Access.Readers[i]
		s := r.Subject
		expected := r.Everything || s.Kind == rbacv1.ServiceAccountKind && f.trusted(s.Namespace) || strings.HasPrefix(s.Name, "system:")
		if expected || f.crowd(s) || seen[r.text()] {
			continue
		}
		seen[r.text()] = true
		o.Add(r.text())
	}
	return some(o, Finding{Severity: Warning, Code: "CopiesReadable",
		What: "others than Flux, the hub and administrators may read the kubeconfigs of the fleet", Remedy: copiesRemedy})
}
