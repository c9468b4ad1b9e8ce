// SPDX-License-Identifier: Apache-2.0

package doctorreader

import (
	"fmt"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/config"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/manifests"
)

// crds reads our CRDs and Flux's.
func (e *examiner) crds() error {
	c := &e.facts.CRDs
	var err error
	if c.Wanted, err = manifests.CRDs(config.Files); err != nil {
		return err
	}
	if c.FluxWanted, err = crdschema.BuiltIn(); err != nil {
		return err
	}
	c.Installed = map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, wanted := range [][]apiextensionsv1.CustomResourceDefinition{c.Wanted, c.FluxWanted} {
		for i := range wanted {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			err := e.client.Get(e.ctx, client.ObjectKey{Name: wanted[i].Name}, crd)
			if apierrors.IsNotFound(err) {
				continue
			}
			if !e.read(doctor.CheckCRDs, "CustomResourceDefinitions", err) {
				return nil
			}
			c.Installed[crd.Name] = crd
		}
	}
	c.Read = true
	return nil
}

// policies reads the admission policies.
func (e *examiner) policies() error {
	p := &e.facts.Policy
	err := manifests.Each(config.Files, "policies/*.yaml", func(kind string, text []byte) error {
		switch kind {
		case "ValidatingAdmissionPolicy":
			one := admissionv1.ValidatingAdmissionPolicy{}
			err := yaml.Unmarshal(text, &one)
			p.Wanted = append(p.Wanted, one)
			return err
		case "ValidatingAdmissionPolicyBinding":
			one := admissionv1.ValidatingAdmissionPolicyBinding{}
			err := yaml.Unmarshal(text, &one)
			p.WantedBindings = append(p.WantedBindings, one)
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	policies, bindings := &admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{}
	p.Read = e.read(doctor.CheckPolicies, "ValidatingAdmissionPolicies", e.client.List(e.ctx, policies, client.Limit(live.PageSize))) &&
		e.read(doctor.CheckPolicies, "ValidatingAdmissionPolicyBindings", e.client.List(e.ctx, bindings, client.Limit(live.PageSize)))
	p.Installed, p.InstalledBounds = policies.Items, bindings.Items
	return nil
}

// account returns the ServiceAccount of the hub.
func (e *examiner) account() (namespace, name string) {
	for _, w := range e.facts.Hub.Workloads {
		if w.ServiceAccount != "" && w.Namespace == e.facts.HubNamespace {
			return w.Namespace, w.ServiceAccount
		}
	}
	return e.facts.HubNamespace, "chandler"
}

// rights asks for each right of the hub's role whether its ServiceAccount has it.
func (e *examiner) rights() error {
	r := &e.facts.Rights
	namespace, name := e.account()
	r.Account = fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name)
	var wanted []doctor.Right
	err := manifests.Each(config.Files, "rbac/role.yaml", func(_ string, text []byte) error {
		role := rbacv1.Role{} // a ClusterRole reads the same
		err := yaml.Unmarshal(text, &role)
		wanted = append(wanted, doctor.RightsOf(role.Rules, role.Namespace)...)
		return err
	})
	if err != nil {
		return err
	}
	everything := doctor.Right{Verb: "*", Group: "*", Resource: "*"}
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
	allowed, err := e.allowed(r.Account, groups, append(wanted, everything))
	if apierrors.IsForbidden(err) {
		e.facts.Skip(doctor.CheckRights, "the rights of "+r.Account+": you may not create SubjectAccessReviews",
			"ask an administrator to run chandler doctor")
		return nil
	}
	if !e.read(doctor.CheckRights, "the rights of "+r.Account, err) {
		return nil
	}
	for i, right := range wanted {
		if !allowed[i] {
			r.Lacks = append(r.Lacks, right)
		}
	}
	r.Everything = allowed[len(wanted)]
	r.Asked, r.Read = len(wanted), true
	return nil
}

// reviewsAtOnce SubjectAccessReviews, of some 140, are asked at a time. One after the other, they take seven seconds at 50 ms each.
const reviewsAtOnce = 8

// allowed asks the API server which of the rights a user in these groups has. It returns an answer for each of them, or the first error.
func (e *examiner) allowed(user string, groups []string, rights []doctor.Right) ([]bool, error) {
	answers := make([]bool, len(rights))
	asks, ctx := errgroup.WithContext(e.ctx)
	asks.SetLimit(reviewsAtOnce)
	for i, right := range rights {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: right.Verb, Group: right.Group, Resource: right.Resource,
				Subresource: right.Subresource, Namespace: right.Namespace, Name: right.Name}}}
		asks.Go(func() error {
			err := e.client.Create(ctx, review)
			answers[i] = review.Status.Allowed
			return err
		})
	}
	return answers, asks.Wait()
}

// access looks for the subjects that may read Secrets in the platform namespaces.
func (e *examiner) access() error {
	roles := map[string][2]bool{}
	note := func(namespace, name string, rules []rbacv1.PolicyRule) {
		if reads, everything := doctor.Reads(rules); reads {
			roles[namespace+"/"+name] = [2]bool{true, everything}
		}
	}
	add := func(namespace, kind, name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		in := namespace
		if ref.Kind == "ClusterRole" {
			in = ""
		}
		role := roles[in+"/"+ref.Name]
		for _, s := range subjects {
			if role[0] {
				e.facts.Access.Readers = append(e.facts.Access.Readers, doctor.Reader{Subject: s, Namespace: namespace, Binding: kind + " " + name,
					Everything: role[1]})
			}
		}
	}
	take := func(l client.ObjectList) bool {
		return meta.EachListItem(l, func(o runtime.Object) error {
			switch r := o.(type) {
			case *rbacv1.ClusterRole:
				note("", r.Name, r.Rules)
			case *rbacv1.Role:
				note(r.Namespace, r.Name, r.Rules)
			case *rbacv1.ClusterRoleBinding:
				add("", "ClusterRoleBinding", r.Name, r.RoleRef, r.Subjects)
			case *rbacv1.RoleBinding:
				add(r.Namespace, "RoleBinding", r.Namespace+"/"+r.Name, r.RoleRef, r.Subjects)
			}
			return nil
		}) == nil
	}
	read := func(what string, list client.ObjectList, opts ...client.ListOption) bool {
		return e.read(doctor.CheckCopies, what, e.pages(list, take, opts...))
	}
	ok := read("ClusterRoles", &rbacv1.ClusterRoleList{}) && read("ClusterRoleBindings", &rbacv1.ClusterRoleBindingList{})
	for _, ns := range e.facts.PlatformNamespaces {
		in := client.InNamespace(ns)
		ok = ok && read("Roles in namespace "+ns, &rbacv1.RoleList{}, in) && read("RoleBindings in namespace "+ns, &rbacv1.RoleBindingList{}, in)
	}
	e.facts.Access.Read = ok
	return nil
}
