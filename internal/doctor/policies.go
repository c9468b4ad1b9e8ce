// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

const policyRemedy = "apply config/policies of the hub's version, with the names of your hub and of Flux in it (docs/policies.md)"

func policySummary(f *Facts) string {
	if !f.Policy.Read {
		return "admission policies"
	}
	return fmt.Sprintf("%d of %d admission policies are installed", len(f.Policy.Wanted)-f.missing().Count, len(f.Policy.Wanted))
}

// missing are the policies that are not installed.
func (f *Facts) missing() (o Objects) {
	for i := range f.Policy.Wanted {
		if f.installed(f.Policy.Wanted[i].Name) == nil {
			o.Add(f.Policy.Wanted[i].Name)
		}
	}
	return o
}

func (f *Facts) installed(name string) *admissionv1.ValidatingAdmissionPolicy {
	for i := range f.Policy.Installed {
		if p := &f.Policy.Installed[i]; p.Name == name {
			return p
		}
	}
	return nil
}

// policiesMissing finds policies that are not installed.
func policiesMissing(f *Facts) []Finding {
	if !f.Policy.Read {
		return nil
	}
	return some(f.missing(), Finding{Severity: Warning, Code: "PolicyMissing",
		What:   "admission policies are not installed: what the hub writes, and namespaces with sets, are open to wrong hands",
		Remedy: policyRemedy})
}

// policiesUnbound finds policies that are installed and judge nothing, or only warn.
func policiesUnbound(f *Facts) []Finding {
	if !f.Policy.Read {
		return nil
	}
	var unbound, softened Objects
	for i := range f.Policy.WantedBindings {
		want := &f.Policy.WantedBindings[i]
		if f.installed(want.Spec.PolicyName) == nil {
			continue
		}
		at := slices.IndexFunc(f.Policy.InstalledBounds, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Name == want.Name })
		switch {
		case at < 0:
			unbound.Add(want.Name)
		case !slices.Contains(f.Policy.InstalledBounds[at].Spec.ValidationActions, admissionv1.Deny):
			softened.Add(want.Name)
		}
	}
	return append(some(unbound, Finding{Severity: Warning, Code: "PolicyUnbound",
		What: "bindings of admission policies are not installed, so these policies judge nothing", Remedy: policyRemedy}),
		some(softened, Finding{Severity: Warning, Code: "PolicyDoesNotDeny",
			What: "bindings of admission policies do not deny, but only warn or audit", Remedy: "set validationActions: [Deny] in them again"})...)
}

// policiesDiffer finds policies with other expressions than those of this version, or that trust another account than this hub's.
func policiesDiffer(f *Facts) []Finding {
	if !f.Policy.Read {
		return nil
	}
	var differ, strangers Objects
	for i := range f.Policy.Wanted {
		want, there := &f.Policy.Wanted[i], f.installed(f.Policy.Wanted[i].Name)
		if there == nil {
			continue
		}
		if expressions(want) != expressions(there) {
			differ.Add(want.Name)
		}
		if v := there.Spec.Variables; f.Rights.Account != "" && len(v) > 0 && !strings.Contains(v[0].Expression, "'"+f.Rights.Account+"'") {
			strangers.Add(want.Name)
		}
	}
	return append(some(strangers, Finding{Severity: Error, Code: "PolicyForAnotherHub",
		What:   fmt.Sprintf("admission policies do not name this hub, %s, so they refuse what it writes", f.Rights.Account),
		Remedy: "write its name into the first variable of each policy (docs/policies.md)"}),
		some(differ, Finding{Severity: Warning, Code: "PolicyDiffers",
			What: "admission policies are not those of this version", Remedy: policyRemedy})...)
}

// parameters are the variables of a policy that people fill in: who the hub is, who breaks the glass, and who Flux is.
var parameters = []string{"hubs", "breakGlass", "flux"}

// expressions are what a policy judges by, without the names that people fill in.
func expressions(p *admissionv1.ValidatingAdmissionPolicy) string {
	var b strings.Builder
	for _, v := range p.Spec.Variables {
		if !slices.Contains(parameters, v.Name) {
			fmt.Fprintf(&b, "%s=%s\n", v.Name, v.Expression)
		}
	}
	for _, c := range p.Spec.MatchConditions {
		fmt.Fprintf(&b, "when %s\n", c.Expression)
	}
	for _, v := range p.Spec.Validations {
		b.WriteString(v.Expression + "\n")
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
