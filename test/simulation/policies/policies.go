// SPDX-License-Identifier: Apache-2.0

// Package policies decides as an API server does with the ValidatingAdmissionPolicies of config/policies: by the API server's own
// CEL. It is made for a simulation with many writes: each expression is compiled once, a message is made only for a denial, and a
// request of which no policy speaks costs a look into a map.
//
// It honours: resource rules, object selectors, variables, validations, messages, failurePolicy, and parameters by their
// namespace. It does not honour: namespace selectors, match conditions, selectors of parameters, validationActions but Deny, audit
// annotations, and the limit of an expression's cost over several policies. Load refuses a file that uses one of the first three.
package policies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/yamlfile"
)

// Request is a write that is to be decided.
type Request struct {
	User        user.Info
	Operation   admission.Operation
	Kind        schema.GroupVersionKind
	Subresource string
	// Object is what is to be written, and Old what is there; nil if there is none. Neither is changed.
	Object, Old map[string]any
}

// Policies are all that are in force.
type Policies struct {
	policies []*policy
	// about are the policies that speak of a resource and subresource.
	about map[string][]*policy
}

type policy struct {
	admissionv1.ValidatingAdmissionPolicy
	selector labels.Selector
	bindings []*binding
	compiled *compiled
}

type binding struct {
	admissionv1.ValidatingAdmissionPolicyBinding
	selector labels.Selector
}

// Params returns the objects of a kind in a namespace, which are a policy's parameters.
type Params func(gk schema.GroupKind, namespace string) []map[string]any

// Load reads the policies and their bindings of a folder.
func Load(dir string) (*Policies, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	p, bindings := &Policies{about: map[string][]*policy{}}, []*binding{}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for _, document := range yamlfile.Split(raw) {
			if err := p.read(document.Raw, &bindings); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for _, b := range bindings {
		at := slices.IndexFunc(p.policies, func(of *policy) bool { return of.Name == b.Spec.PolicyName })
		if at < 0 {
			return nil, fmt.Errorf("binding %s: there is no policy %s", b.Name, b.Spec.PolicyName)
		}
		p.policies[at].bindings = append(p.policies[at].bindings, b)
	}
	return p, nil
}

// read takes in one document.
func (p *Policies) read(document []byte, bindings *[]*binding) error {
	var of metav1.TypeMeta
	if err := yaml.Unmarshal(document, &of); err != nil {
		return err
	}
	switch of.Kind {
	case "ValidatingAdmissionPolicy":
		added := &policy{}
		if err := yaml.UnmarshalStrict(document, &added.ValidatingAdmissionPolicy); err != nil {
			return err
		}
		if len(added.Spec.MatchConditions) > 0 {
			return fmt.Errorf("policy %s has spec.matchConditions, which this package does not honour", added.Name)
		}
		var err error
		if added.selector, err = selectorOf(added.Spec.MatchConstraints); err != nil {
			return fmt.Errorf("policy %s: %w", added.Name, err)
		}
		if added.compiled, err = compile(&added.ValidatingAdmissionPolicy); err != nil {
			return fmt.Errorf("policy %s: %w", added.Name, err)
		}
		p.policies = append(p.policies, added)
		for _, name := range resourcesOf(added.Spec.MatchConstraints) {
			p.about[name] = append(p.about[name], added)
		}
	case "ValidatingAdmissionPolicyBinding":
		b := &binding{}
		if err := yaml.UnmarshalStrict(document, &b.ValidatingAdmissionPolicyBinding); err != nil {
			return err
		}
		var err error
		if b.selector, err = selectorOf(b.Spec.MatchResources); err != nil {
			return fmt.Errorf("binding %s: %w", b.Name, err)
		}
		*bindings = append(*bindings, b)
	}
	return nil
}

// selectorOf returns which objects match, by their labels.
func selectorOf(m *admissionv1.MatchResources) (labels.Selector, error) {
	switch {
	case m == nil:
		return labels.Everything(), nil
	case m.NamespaceSelector != nil:
		return nil, errors.New("this package does not honour namespaceSelector")
	case m.ObjectSelector == nil:
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(m.ObjectSelector)
}

// resourcesOf returns the group, resource and subresource of all rules.
func resourcesOf(m *admissionv1.MatchResources) []string {
	var out []string
	if m == nil {
		return nil
	}
	for _, rule := range m.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				out = append(out, group+"/"+resource)
			}
		}
	}
	return out
}

// matches returns whether one of the rules speaks of a request; true if there are none.
func matches(m *admissionv1.MatchResources, name string, operation admission.Operation) bool {
	if m == nil || len(m.ResourceRules) == 0 {
		return true
	}
	return slices.ContainsFunc(m.ResourceRules, func(rule admissionv1.NamedRuleWithOperations) bool {
		group, resource, _ := strings.Cut(name, "/")
		return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) &&
			slices.Contains(rule.Operations, admissionv1.OperationType(operation))
	})
}

// Denied returns what an API server answers to a request that a policy denies; "" if none does.
func (p *Policies) Denied(r *Request, params Params) string {
	resource, _ := meta.UnsafeGuessKindToResource(r.Kind)
	name := resource.Group + "/" + resource.Resource
	if r.Subresource != "" {
		name += "/" + r.Subresource
	}
	about := p.about[name]
	if len(about) == 0 {
		return ""
	}
	var attributes *admission.VersionedAttributes
	for _, of := range about {
		if !matches(of.Spec.MatchConstraints, name, r.Operation) || !r.carries(of.selector) {
			continue
		}
		for _, b := range of.bindings {
			if !b.speaksOf(r, name) {
				continue
			}
			if attributes == nil {
				attributes = r.attributes(resource)
			}
			for _, param := range of.params(b, r, params) {
				if message := of.denied(attributes, resource, param); message != "" {
					return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", of.Name, b.Name, message)
				}
			}
		}
	}
	return ""
}

// speaksOf returns whether a binding has its policy asked about a request.
func (b *binding) speaksOf(r *Request, name string) bool {
	return slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) && matches(b.Spec.MatchResources, name, r.Operation) &&
		r.carries(b.selector)
}

// carries returns whether the object has these labels, before or after.
func (r *Request) carries(selector labels.Selector) bool {
	return selector.Empty() || r.Object != nil && selector.Matches(labelsOf(r.Object)) || r.Old != nil && selector.Matches(labelsOf(r.Old))
}

func labelsOf(o map[string]any) labels.Set {
	return labels.Set((&unstructured.Unstructured{Object: o}).GetLabels())
}

// params returns what a policy is asked with: each of its parameters, or nothing once if it has none.
func (of *policy) params(b *binding, r *Request, params Params) []runtime.Object {
	if of.Spec.ParamKind == nil {
		return []runtime.Object{nil}
	}
	namespace := b.Spec.ParamRef.Namespace
	if namespace == "" {
		namespace = r.namespace() // the API server has a Namespace's own name there
	}
	gv, _ := schema.ParseGroupVersion(of.Spec.ParamKind.APIVersion)
	var out []runtime.Object
	for _, o := range params(schema.GroupKind{Group: gv.Group, Kind: of.Spec.ParamKind.Kind}, namespace) {
		out = append(out, &unstructured.Unstructured{Object: o})
	}
	return out
}

func (r *Request) it() *unstructured.Unstructured {
	if r.Object != nil {
		return &unstructured.Unstructured{Object: r.Object}
	}
	return &unstructured.Unstructured{Object: r.Old}
}

func (r *Request) namespace() string {
	if r.Kind.Group == "" && r.Kind.Kind == "Namespace" {
		return r.it().GetName()
	}
	return r.it().GetNamespace()
}

// attributes is the request as the API server's CEL takes it.
func (r *Request) attributes(resource schema.GroupVersionResource) *admission.VersionedAttributes {
	object := func(o map[string]any) runtime.Object {
		if o == nil {
			return nil
		}
		return &unstructured.Unstructured{Object: o}
	}
	next, old := object(r.Object), object(r.Old)
	return &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(next, old, r.Kind, r.namespace(), r.it().GetName(), resource, r.Subresource, r.Operation, nil,
			false, r.User),
		VersionedObject: next, VersionedOldObject: old, VersionedKind: r.Kind,
	}
}

// denied returns why a policy denies a request; "" if it does not.
func (of *policy) denied(attributes *admission.VersionedAttributes, resource schema.GroupVersionResource, param runtime.Object) string {
	request := cel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(resource),
		metav1.GroupVersionKind(attributes.VersionedKind))
	bindings := cel.OptionalVariableBindings{VersionedParams: param}
	results, budget, err := of.compiled.validations.ForInput(context.Background(), attributes, request, bindings,
		nil, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return of.unjudged(err)
	}
	for i, result := range results {
		switch {
		case result.Error != nil:
			if message := of.unjudged(result.Error); message != "" {
				return message
			}
		case result.EvalResult.Value() != true:
			messages, _, err := of.compiled.messages.ForInput(context.Background(), attributes, request, bindings, nil, budget)
			if err != nil {
				return of.unjudged(err)
			}
			if text, ok := messages[i].EvalResult.Value().(string); ok && messages[i].Error == nil {
				return strings.TrimSpace(text)
			}
			return "failed expression: " + of.Spec.Validations[i].Expression
		}
	}
	return ""
}

// unjudged returns what comes of a request that cannot be judged.
func (of *policy) unjudged(err error) string {
	if f := of.Spec.FailurePolicy; f != nil && *f == admissionv1.Ignore {
		return ""
	}
	return err.Error()
}
