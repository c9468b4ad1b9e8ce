// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/preview"
)

// steps are the plan of a cluster, by what becomes of each object.
type steps struct {
	arriving map[plan.Key]plan.Step
	leaving  []plan.Step
	// told are leaving objects of which a change says already what becomes of them.
	told map[plan.Key]bool
}

func stepsOf(p *preview.Pair) *steps {
	s := &steps{arriving: map[plan.Key]plan.Step{}, told: map[plan.Key]bool{}}
	for _, one := range p.Steps {
		if one.Leaving() {
			s.leaving = append(s.leaving, one)
		} else {
			s.arriving[one.Key] = one
		}
	}
	return s
}

// changes returns what happens to each add-on of a cluster: what it is to have first, and then what leaves.
func (c *computing) changes(p *preview.Pair) []Change {
	var out []Change
	s := stepsOf(p)
	for i := range p.New.Items {
		if one, ok := c.arrives(p, s, &p.New.Items[i]); ok {
			out = append(out, one)
		} else if one := c.keeps(p, s, &p.New.Items[i]); one != nil {
			out = append(out, *one)
		}
	}
	for _, step := range s.leaving {
		if !s.told[step.Key] {
			out = append(out, c.leaves(p, step))
		}
	}
	for _, n := range p.New.Lost {
		same := func(o preview.Note) bool { return o.Set == n.Set && o.Addon == n.Addon }
		if !had(p, n.Set, n.Addon) && !slices.ContainsFunc(p.Old.Lost, same) {
			out = append(out, Change{Kind: NotWon, Set: n.Set, Addon: n.Addon, Reason: n.Reason})
		}
	}
	return out
}

func had(p *preview.Pair, set, addon string) bool {
	return slices.ContainsFunc(p.Old.Items, func(o preview.Item) bool { return o.Set == set && o.Addon == addon })
}

func changeOf(kind Kind, i *preview.Item) Change {
	return Change{Kind: kind, Set: i.Set, Addon: i.Addon, CRDs: i.CRDs, Object: i.Key.Kind}
}

// arrives returns what happens to an object that the cluster is to have; false if nothing does.
func (c *computing) arrives(p *preview.Pair, s *steps, n *preview.Item) (Change, bool) {
	step, old := s.arriving[n.Key], p.Old.Find(n.Key)
	if old == nil {
		if _, failed := p.Old.FailedIn(n.Set, n.Addon); failed {
			return Change{}, false // it is not known what is there: a problem says so
		}
	}
	switch {
	case step.Reinstall != nil && old != nil:
		from, to, _ := n.Reinstall(old)
		return c.became(p, Reinstalled, old, n, fmt.Sprintf("Flux would uninstall %s and install %s", from, to)), true
	case step.Verb == plan.Update && old.Addon != n.Addon:
		return c.became(p, Moved, old, n, ""), true
	case step.Verb == plan.Update:
		return c.became(p, Changed, old, n, ""), true
	case step.Verb == plan.Keep:
		return Change{}, false
	case step.Verb == plan.AwaitDependency && old != nil:
		return c.became(p, Waits, old, n, step.Reason), true
	}
	return c.comes(p, s, n, step), true
}

// comes returns the change for an object that is not there yet.
func (c *computing) comes(p *preview.Pair, s *steps, n *preview.Item, step plan.Step) Change {
	for _, l := range s.leaving {
		old := p.Old.Find(l.Key)
		switch {
		case s.told[l.Key]:
		case l.Verb == plan.HandOver && l.To == n.Key:
			s.told[l.Key] = true
			return c.became(p, Moved, old, n, "")
		case l.Verb != plan.HandOver && l.Verb != plan.Hold && n.Follows(old):
			s.told[l.Key] = true
			reason := fmt.Sprintf("Flux would uninstall the %s before the %s is made", old.Key.Kind, n.Key.Kind)
			if l.Verb == plan.Orphan {
				reason = fmt.Sprintf("the %s is orphaned, and the %s applies over what it leaves", old.Key.Kind, n.Key.Kind)
			}
			return c.became(p, Reinstalled, old, n, reason)
		}
	}
	out := changeOf(New, n)
	if n.Adopt != nil {
		out.Kind = Adopted
		// One text for all clusters: most such names have that of the cluster in them.
		out.Reason = fmt.Sprintf("goes on with %s %s/%s, where that is there", n.Adopt.Kind, n.Adopt.Namespace,
			strings.ReplaceAll(n.Adopt.Name, p.Name.Name, "<cluster>"))
	}
	out.What, out.next = what(n), n
	if step.Verb != plan.Create {
		out.Reason = strings.TrimPrefix(out.Reason+"; "+step.Reason, "; ")
	}
	return out
}

// became returns the change of an object that was another one, or had other fields.
func (c *computing) became(p *preview.Pair, kind Kind, old, n *preview.Item, reason string) Change {
	out := changeOf(kind, n)
	out.Reason, out.old, out.next = reason, old, n
	if old.Form == n.Form { // else each field is another one
		out.Fields = fields(old, n)
	}
	if old.Addon != n.Addon {
		out.FromAddon = old.Addon
	}
	if old.Set != n.Set {
		out.FromSet = old.Set
		lost := slices.IndexFunc(p.New.Lost, func(l preview.Note) bool { return l.Set == old.Set && l.Addon == old.Addon })
		switch {
		case kind == Reinstalled || kind == Waits:
		case lost >= 0:
			out.Kind, out.Reason = Winner, p.New.Lost[lost].Reason
		default:
			out.Kind, out.Reason = Moved, c.gone(p, old)
		}
	}
	switch {
	case kind == Reinstalled:
		out.What = what(n)
	case out.Kind == Changed && len(out.Fields) == 0:
		out.Reason = "its metadata is written again"
	}
	return out
}

// leaves returns the change for an object that goes.
func (c *computing) leaves(p *preview.Pair, step plan.Step) Change {
	old := p.Old.Find(step.Key)
	out := changeOf(Removed, old)
	out.What, out.Reason, out.old = what(old), c.gone(p, old), old
	switch step.Verb {
	case plan.Orphan:
		out.Kind, out.Reason = Orphaned, out.Reason+"; "+step.Reason+", so it stays on the cluster and no set delivers it"
	case plan.HandOver, plan.Hold:
		out.Kind, out.Reason = Orphaned, out.Reason+"; "+step.Reason
	}
	return out
}

// gone says why a set does not deliver an object any more.
func (c *computing) gone(p *preview.Pair, old *preview.Item) string {
	if p.After == nil {
		return "the cluster is not registered any more"
	}
	if pair := c.pairs[old.Set]; pair == nil || pair.New == nil {
		return "the AddonSet is gone"
	}
	if !slices.Contains(p.New.Sets, old.Set) {
		return "the AddonSet does not select the cluster any more"
	}
	for _, notes := range [][]preview.Note{p.New.Lost, p.New.Excluded} {
		for _, n := range notes {
			if n.Set == old.Set && n.Addon == old.Addon {
				return n.Reason
			}
		}
	}
	return "the AddonSet does not have the add-on any more"
}
