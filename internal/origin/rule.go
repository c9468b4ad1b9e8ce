// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Rule registers origins that do not ask for it themselves, such as the Secrets that vCluster or k3k write. The operator of the hub
// writes rules into a file; see ParseRules.
type Rule struct {
	// Name is how people find the rule in messages.
	Name string `json:"name"`
	// Match says which origins it registers.
	Match RuleMatch `json:"match"`
	// Register says as what.
	Register RuleRegister `json:"register,omitempty"`
}

// RuleMatch says which origins a rule registers. What is empty matches everything. The author of a Secret cannot choose the
// namespace, and chooses its labels, owner and name freely.
type RuleMatch struct {
	// Kind is one of Kinds.
	Kind string `json:"kind"`
	// Namespaces are names or patterns.
	Namespaces []string `json:"namespaces"`
	// Labels are those that it must have.
	Labels map[string]string `json:"labels,omitempty"`
	// Owner is the kind of one of its owners.
	Owner *RuleOwner `json:"owner,omitempty"`
	// Names is a name or a pattern.
	Names string `json:"names,omitempty"`
}

// RuleOwner is a kind of owners, in any version.
type RuleOwner struct {
	APIGroup string `json:"apiGroup,omitempty"`
	Kind     string `json:"kind"`
}

// RuleRegister says as what an origin is registered.
type RuleRegister struct {
	// Name is the name of the registration. A wildcard in it is what the wildcard of RuleMatch.Names stands for. Empty is the origin's name.
	Name string `json:"name,omitempty"`
	// Labels are those that the registration gets, before those of the origin.
	Labels map[string]string `json:"labels,omitempty"`
	// Key is the key of the Secret with the kubeconfig; "" for the usual ones.
	Key string `json:"key,omitempty"`
}

// Ruling is what the rule that matches an origin says of it. A nil Ruling is that of an origin that no rule matches.
type Ruling struct {
	// Rule is the rule's name.
	Rule string
	// Name is the registration's.
	Name string
	// Labels and Key are those of RuleRegister.
	Labels map[string]string
	Key    string
}

// Ruling returns what the first rule says that matches an origin; nil if none does. None matches the hub's own copies of kubeconfigs.
func (p Policy) Ruling(k Kind, obj metav1.Object) *Ruling {
	if len(p.Rules) == 0 {
		return nil
	}
	if _, copied := obj.GetLabels()[hubv1.CopyLabel]; copied {
		return nil
	}
	for i := range p.Rules {
		if r := p.Rules[i].ruling(k, obj); r != nil {
			return r
		}
	}
	return nil
}

// HasRules returns whether a rule is about a kind.
func (p Policy) HasRules(k Kind) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Match.Kind == k.Kind })
}

// Asks returns whether an origin asks to be registered by its label, or by a rule. It does not say whether it may.
func (p Policy) Asks(k Kind, obj metav1.Object) bool {
	value, labelled := obj.GetLabels()[hubv1.RegisterLabel]
	return value == "true" || !labelled && p.Ruling(k, obj) != nil
}

// Concerns returns whether an origin says by its label whether it asks to be registered, or a rule matches it.
func (p Policy) Concerns(k Kind, obj metav1.Object) bool {
	_, labelled := obj.GetLabels()[hubv1.RegisterLabel]
	return labelled || p.Ruling(k, obj) != nil
}

// OriginNames returns the names that origins of a kind may have that are registered under a name. Whether one is there, and a rule gives
// it that name, is for the caller to look at.
func (p Policy) OriginNames(k Kind, registered string) []string {
	names := []string{registered}
	for i := range p.Rules {
		m := &p.Rules[i].Match
		if m.Kind != k.Kind || p.Rules[i].Register.Name == "" {
			continue
		}
		if word, ok := cut(p.Rules[i].Register.Name, registered); ok {
			names = append(names, strings.Replace(m.Names, wildcard, word, 1))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *Rule) ruling(k Kind, obj metav1.Object) *Ruling {
	word, ok := r.Match.match(k, obj)
	if !ok {
		return nil
	}
	name := obj.GetName()
	if r.Register.Name != "" {
		name = strings.Replace(r.Register.Name, wildcard, word, 1)
	}
	return &Ruling{Rule: r.Name, Name: name, Labels: r.Register.Labels, Key: r.Register.Key}
}

// match returns whether it matches an origin, and what the wildcard of Names stands for.
func (m *RuleMatch) match(k Kind, obj metav1.Object) (word string, ok bool) {
	if m.Kind != k.Kind {
		return "", false
	}
	if !slices.ContainsFunc(m.Namespaces, func(p string) bool { _, ok := cut(p, obj.GetNamespace()); return ok }) {
		return "", false
	}
	labels := obj.GetLabels()
	for key, value := range m.Labels {
		if has, there := labels[key]; !there || has != value {
			return "", false
		}
	}
	if m.Owner != nil && !slices.ContainsFunc(obj.GetOwnerReferences(), m.Owner.is) {
		return "", false
	}
	if m.Names == "" {
		return "", true
	}
	return cut(m.Names, obj.GetName())
}

func (o *RuleOwner) is(ref metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == o.APIGroup && ref.Kind == o.Kind
}

// wildcard stands for one character or more in a pattern, once.
const wildcard = "*"

// cut returns whether a text fits a pattern, and what the wildcard stands for.
func cut(pattern, text string) (word string, ok bool) {
	before, after, wild := strings.Cut(pattern, wildcard)
	if !wild {
		return "", pattern == text
	}
	if len(text) <= len(before)+len(after) || !strings.HasPrefix(text, before) || !strings.HasSuffix(text, after) {
		return "", false
	}
	return text[len(before) : len(text)-len(after)], true
}

// invalid returns why the name that a rule gives to a registration is none; "" if it is one. What an origin's own name may be,
// a registration's may be too.
func (r *Ruling) invalid() string {
	if r == nil {
		return ""
	}
	if errs := validation.IsDNS1123Subdomain(r.Name); len(errs) > 0 {
		return fmt.Sprintf("rule %q would register it as %q, which is no name: %s", r.Rule, r.Name, errs[0])
	}
	return ""
}

// Over returns the labels that a registration gets of an origin with these: those of the rule count before those of the origin, because the
// operator of the hub wrote them.
func (r *Ruling) Over(labels map[string]string) map[string]string {
	if r == nil || len(r.Labels) == 0 {
		return labels
	}
	out := maps.Clone(r.Labels)
	for k, v := range labels {
		if _, there := out[k]; !there {
			out[k] = v
		}
	}
	return out
}

// Keyed returns where the kubeconfig of an origin is, with the key that a rule names. What the Secret says itself counts before it.
func (v Verdict) Keyed(source Source) Source {
	if v.By != nil && source.Key == "" {
		source.Key = v.By.Key
	}
	return source
}

// Unasked says why an origin of a kind does not ask to be registered any more.
func (p Policy) Unasked(k Kind) string {
	if p.HasRules(k) {
		return fmt.Sprintf("it has no label %s, and no registration rule matches it any more", hubv1.RegisterLabel)
	}
	return fmt.Sprintf("label %s was removed", hubv1.RegisterLabel)
}
