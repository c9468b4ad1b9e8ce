// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// state renders all sets for one cluster on which some objects are already. scope says which namespaces are assembled together, and
// had names the sets that have delivered to it: what a set has delivered stays while its selector cannot be read.
func (r *renderer) state(m *member, live []assembly.Live, scope func(string) string, had []string) *State {
	out := &State{Refs: map[string][]document.Ref{}}
	notes := Cluster{Namespace: m.registration.Namespace, Name: m.registration.Name}
	in, unreadable := r.input(m)
	for _, text := range unreadable {
		out.Refused = append(out.Refused, oneLine(text))
	}
	var all []*delivery
	for _, c := range r.sets {
		if c.selector == nil && !slices.Contains(had, c.String()) || c.selector != nil && !c.selector.Matches(m.registration) {
			continue
		}
		d := &delivery{compiled: c}
		if c.program == nil {
			notes.Failed = append(notes.Failed, Note{Set: c.String(), Reason: "the set does not compile"})
		} else {
			in.Releases = assembly.Releases(c.program, c.set.Namespace, d.name(m), live, nil)
			d.result = r.deliver(m, d, &standing{live: live}, in, &notes)
		}
		if d.result != nil {
			out.Refs[c.String()] = d.result.Refs
		}
		all, out.Sets = append(all, d), append(out.Sets, c.String())
		a := r.claimant(m, d)
		a.Ready = true
		if c.program != nil {
			a.Moves = c.program.Moves()
		}
		out.deliveries = append(out.deliveries, a)
	}
	r.errors = ledger{} // the notes have what it says, and 5,000 clusters may say the same
	r.overrides(m, all)
	for _, e := range r.errors.entries {
		out.Refused = append(out.Refused, oneLine(strings.TrimPrefix(e.text, ": ")))
	}
	r.errors, r.warnings = ledger{}, ledger{}
	out.portions = assembleScopes(out.deliveries, &standing{live: live, adopted: r.handWritten()}, scope)
	for i := range out.portions {
		out.Items = append(out.Items, all[i].items(m, &out.portions[i])...)
		out.Lost = append(out.Lost, notes2(all[i].String(), &out.portions[i])...)
	}
	out.Failed, out.Excluded = append(notes.Failed, notes.waiting...), notes.Excluded
	for _, n := range notes.Refused {
		out.Refused = append(out.Refused, n.String())
	}
	return out
}

// scope returns the namespace if a Team governs it, and "" for all others together.
func (r *renderer) scope(namespace string) string {
	if r.reach(namespace).ByTeam() {
		return namespace
	}
	return ""
}

// assembleScopes assembles each scope by itself, and returns the portions in the order of the deliveries.
func assembleScopes(deliveries []assembly.Delivery, on *standing, scope func(string) string) []assembly.Portion {
	out := make([]assembly.Portion, len(deliveries))
	at := map[string][]int{}
	for i := range deliveries {
		s := scope(deliveries[i].Namespace)
		at[s] = append(at[s], i)
	}
	for s, indices := range at {
		part := assembly.Input{Foreign: on.foreign, Adopted: on.adopted, End: true}
		for _, i := range indices {
			part.Deliveries = append(part.Deliveries, deliveries[i])
		}
		for _, l := range on.live {
			if scope(l.Key.Namespace) == s {
				part.Live = append(part.Live, l)
			}
		}
		for i, portion := range assembly.Assemble(part) {
			out[indices[i]] = portion
		}
	}
	return out
}

// items returns what one delivery has won.
func (d *delivery) items(m *member, o *assembly.Portion) []Item {
	var out []Item
	for i := range o.Wanted {
		w := &o.Wanted[i]
		one := Item{
			Rendered: Rendered{Set: d.String(), Addon: w.Addon, Remarks: remarks(&w.Object), Manifest: w.Manifest(), form: w.Form, trace: w.Trace},
			Key:      assembly.Key(&w.Object), Form: w.Form, Shared: w.Shared, Release: w.Release, Content: assembly.Content(&w.Object),
			MovedFrom: w.MovedFrom, Adopt: w.Adopt, wanted: *w, delivery: d.name(m),
		}
		if base, ok := strings.CutSuffix(w.Addon, compile.CRDSuffix); ok && !d.has(w.Addon) {
			one.Addon, one.CRDs, one.trace = base, true, d.trace(base)
		}
		for _, s := range w.Shared {
			if s.Object.GetKind() == sourcev1.HelmChartKind {
				one.chart, _ = s.Object.Object["spec"].(map[string]any)
			}
		}
		out = append(out, one)
	}
	return out
}

func notes2(set string, o *assembly.Portion) []Note {
	return append(notes(set, o.Lost), notes(set, o.NotOwned)...)
}

// plainLayer takes the verb off what an explainer says.
func plainLayer(text string) string { return strings.TrimPrefix(text, "set by ") }

// String names what a note is about, and says the reason.
func (n Note) String() string {
	switch {
	case n.Set == "":
		return n.Reason
	case n.Addon == "":
		return "AddonSet " + n.Set + ": " + n.Reason
	}
	return "add-on " + n.Addon + " of AddonSet " + n.Set + ": " + n.Reason
}
