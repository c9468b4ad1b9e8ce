// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/facts"
)

// States of an override.
const (
	inEffect = "InEffect"
	over     = "Over"
	refused  = "Refused"
	noAddon  = "NoAddon"
	noEffect = "NoEffect"
)

// ineffective returns the overrides that do not have the effect that their owner intended.
func (e *explainer) ineffective() []Override {
	return slices.DeleteFunc(e.overrides(), func(o Override) bool { return o.State == inEffect })
}

// overrides are all of the registration's, in their order.
func (e *explainer) overrides() []Override {
	var out []Override
	for i := range e.Registration.Spec.Overrides {
		o := &e.Registration.Spec.Overrides[i]
		state, why := e.override(i, o)
		if o.Reason != "" {
			why += "; its reason: " + o.Reason
		}
		out = append(out, Override{Addon: o.Name, State: state, Why: strings.TrimPrefix(excerpt.Line(why), "; ")})
	}
	return out
}

func (e *explainer) override(i int, o *hubv1.Override) (state, why string) {
	if o.Until != nil && !e.Now.Before(o.Until.Time) {
		return over, "until was " + o.Until.UTC().Format(time.RFC3339) + "; remove it from the registration"
	}
	if why := e.noAddon(o.Name); why != "" {
		return noAddon, why
	}
	if why := e.refusal(i, o.Name); why != "" {
		return refused, why
	}
	if why := e.without(o); why != "" {
		return noEffect, why
	}
	if o.Until != nil {
		why = "until " + o.Until.UTC().Format(time.RFC3339)
	}
	return inEffect, why
}

// noAddon returns a text that says that no set here has an add-on of that name.
func (e *explainer) noAddon(name string) string {
	var here, elsewhere []string
	for _, s := range e.sets {
		switch {
		case s.delivery != nil || s.selects(e.Registration):
			here = append(here, s.known()...)
		case slices.Contains(s.addons(), name):
			elsewhere = append(elsewhere, "AddonSet "+s.String()+" has one, and does not deliver to this cluster")
		}
	}
	slices.Sort(here)
	here = slices.Compact(here)
	switch {
	case slices.Contains(here, name):
		return ""
	case len(elsewhere) > 0:
		return "no AddonSet delivers an add-on of that name here: " + strings.Join(elsewhere, "; ")
	case len(here) == 0:
		return "no AddonSet delivers anything here"
	}
	return "no AddonSet delivers an add-on of that name here; there are " + strings.Join(here, ", ")
}

// without returns why a valid override has no effect.
func (e *explainer) without(o *hubv1.Override) string {
	claims := e.claims(o.Name)
	if len(claims) == 0 {
		return ""
	}
	c := claims[0]
	switch {
	case c.set.told:
		return ""
	case c.set.unrenderable != nil:
		return "AddonSet " + c.row.Set + " cannot be rendered; what is delivered stays as it is"
	case c.set.result != nil && c.set.result.Failed[o.Name] != nil:
		return "the add-on cannot be rendered, and stays as it is"
	case gone(c.row.State) && !o.Exclude:
		return "the add-on is not delivered here"
	}
	return ""
}

// refusal returns why sets refuse an override; "" if none does.
func (e *explainer) refusal(i int, addon string) string {
	var out []string
	for _, s := range e.sets {
		if s.result == nil {
			continue
		}
		for _, r := range s.result.Refused {
			if r.Override != i {
				continue
			}
			if r.Addon == addon {
				r.Why.Addon = ""
			}
			if text := r.String(); !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return strings.Join(out, "; ")
}

// ignored returns what else of the cluster's owner is ignored: variables.
func (e *explainer) ignored() []string {
	_, out := facts.Variables(e.Registration, e.Origin)
	for _, s := range e.sets {
		if s.result == nil {
			continue
		}
		for _, r := range s.result.Refused {
			if r.Override < 0 {
				out = append(out, sprintf("AddonSet %s: %s", s, r))
			}
		}
	}
	return out
}

// only returns a program of one add-on.
func only(p *compile.Program, a *compile.Addon) *compile.Program {
	one := *p
	one.Addons = []compile.Addon{*a}
	return &one
}
