// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// Tried is what the API server of one cluster makes of the change: a dry run of everything that Flux would apply there.
type Tried struct {
	Cluster string `json:"cluster"`
	// Clusters is how many clusters it stands for, itself among them. Where is as that of a group.
	Clusters int    `json:"clusters"`
	Where    string `json:"where,omitempty"`
	// Objects are those of which there is something to say, and Unchanged counts the others.
	Objects   []TriedObject `json:"objects"`
	Unchanged int           `json:"unchanged"`
}

// TriedObject is what becomes of one object of a cluster.
type TriedObject struct {
	Outcome    Outcome `json:"outcome"`
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Namespace  string  `json:"namespace,omitempty"`
	Name       string  `json:"name"`
	// Set is namespace/name of the AddonSet, and Addon the add-on that has the object.
	Set   string `json:"set"`
	Addon string `json:"addon"`
	// Reason says why, where that is not plain: of a refusal, the words of the API server.
	Reason string `json:"reason,omitempty"`
	// Fields are those that are not as they are on the cluster, and More counts the ones beyond them.
	Fields []Field `json:"fields,omitempty"`
	More   int     `json:"moreFields,omitempty"`
}

// Outcome is what becomes of an object.
type Outcome string

// The outcomes, in the order in which a summary names them.
const (
	TriedRefused   Outcome = "Refused"
	TriedUnknown   Outcome = "Unknown"
	TriedRemoved   Outcome = "Removed"
	TriedRecreated Outcome = "Recreated"
	TriedCreated   Outcome = "Created"
	TriedChanged   Outcome = "Changed"
	TriedKept      Outcome = "Kept"
	TriedLater     Outcome = "NotYet"
	TriedLeft      Outcome = "Left"
	TriedUnchanged Outcome = "Unchanged"
)

var outcomes = []Outcome{TriedRefused, TriedUnknown, TriedRemoved, TriedRecreated, TriedCreated, TriedChanged, TriedKept, TriedLater,
	TriedLeft}

// outcomeWords are how a report names an outcome, and outcomeSigns how it marks it.
var outcomeWords = map[Outcome]string{
	TriedRefused: "REFUSED", TriedUnknown: "not known", TriedRemoved: "REMOVED", TriedRecreated: "REMADE", TriedCreated: "created",
	TriedChanged: "changed", TriedKept: "kept", TriedLater: "not yet", TriedLeft: "left alone",
}

var outcomeSigns = map[Outcome]string{TriedRefused: "!", TriedUnknown: "!", TriedRemoved: "-", TriedRecreated: "!", TriedCreated: "+",
	TriedChanged: "~", TriedKept: " ", TriedLater: " ", TriedLeft: " "}

// ObjectFields returns in which fields an object would not be as it is, at most so many of them, and how many more there are. What an API
// server keeps of an object for itself does not count, and what may be secret is hidden.
func ObjectFields(old, next map[string]any, most int) (fields []Field, more int) {
	c := &comparing{}
	c.maps(nil, veil(plainObject(old), false).(map[string]any), veil(plainObject(next), false).(map[string]any), false)
	if len(c.out) > most {
		return c.out[:most], len(c.out) - most
	}
	return c.out, 0
}

// kept are the fields of metadata that people set.
var kept = []string{"labels", "annotations", "finalizers", "ownerReferences"}

func plainObject(o map[string]any) map[string]any {
	out := maps.Clone(o)
	delete(out, "status")
	meta, _ := o["metadata"].(map[string]any)
	inner := map[string]any{}
	for _, k := range kept {
		if v, ok := meta[k]; ok {
			inner[k] = v
		}
	}
	out["metadata"] = inner
	return out
}

// Sayable returns what an API server says of an object, as far as it can be shown: the message may quote what a Secret holds.
func Sayable(object map[string]any, reason, message string, most int) string {
	if isSecret(object) || mentions(message) {
		return reason + " (the words of the API server are not shown: they may have what a Secret holds)"
	}
	return excerpt.Of(excerpt.Line(message), most)
}

// Try adds what the API server of a cluster has said.
func (r *Result) Try(t *Tried) {
	slices.SortStableFunc(t.Objects, func(a, b TriedObject) int {
		return slices.Index(outcomes, a.Outcome) - slices.Index(outcomes, b.Outcome)
	})
	r.Tried = append(r.Tried, *t)
	refused, unknown := 0, 0
	for i := range t.Objects {
		switch t.Objects[i].Outcome {
		case TriedRefused:
			refused++
		case TriedUnknown:
			unknown++
		}
	}
	if refused > 0 {
		r.Untried(t.Cluster, fmt.Sprintf("its API server refuses %s", status.Count(refused, "object")))
	}
	if unknown > 0 {
		r.Untried(t.Cluster, fmt.Sprintf("%s could not be tried", status.Count(unknown, "object")))
	}
}

// Untried adds why the change could not be tried on a cluster; on none in particular without one.
func (r *Result) Untried(cluster, why string) {
	p := Problem{Side: liveSide, Text: excerpt.Line(why)}
	if cluster != "" {
		p.Clusters = []string{cluster}
	}
	r.Problems = append(r.Problems, p)
}

// liveSide is the side of what a dry run could not tell.
const liveSide = "Live"

// tally counts the objects by what becomes of them.
func (t *Tried) tally() string {
	var out []string
	for _, o := range outcomes {
		n := 0
		for i := range t.Objects {
			if t.Objects[i].Outcome == o {
				n++
			}
		}
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, outcomeWords[o]))
		}
	}
	return strings.Join(append(out, fmt.Sprintf("%d unchanged", t.Unchanged)), ", ")
}

// title says on which cluster something was tried, and for which ones.
func (t *Tried) title() string {
	text := "Tried on cluster " + t.Cluster
	switch {
	case t.Clusters > 1 && t.Where != "":
		text += fmt.Sprintf(", for %d clusters (%s)", t.Clusters, t.Where)
	case t.Clusters > 1:
		text += fmt.Sprintf(", for %d clusters", t.Clusters)
	}
	return text + ": " + t.tally()
}

// subject says which object it is.
func (o *TriedObject) subject() string {
	text := fmt.Sprintf("%s %s", o.Kind, o.Name)
	if o.Namespace != "" {
		text = fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name)
	}
	text += fmt.Sprintf(" (%s, %s)", o.Addon, o.Set)
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}

// maxTried is how many objects of a cluster a folded text shows.
const maxTried = 40

func (t *terminal) tried(r *Result) {
	for i := range r.Tried {
		one := &r.Tried[i]
		t.line("")
		t.line("%s", t.paint(bold, one.title()))
		n := t.limit(len(one.Objects), maxTried)
		for j := range one.Objects[:n] {
			o := &one.Objects[j]
			sign := outcomeSigns[o.Outcome]
			t.line("  %s %s", t.paint(colours[sign], sign+" "+outcomeWords[o.Outcome]), t.paint("0", o.subject()))
			t.fields(o.Fields)
			if o.More > 0 {
				t.line("      … and %d more fields, which are not kept", o.More)
			}
		}
		if len(one.Objects) > n {
			t.line("  … and %d more", len(one.Objects)-n)
		}
	}
}

// markdownTried writes what becomes of an object of a cluster.
func markdownTried(o *TriedObject) []string {
	head := fmt.Sprintf("%s %s %s", outcomeSigns[o.Outcome], outcomeWords[o.Outcome], o.subject())
	lines := append([]string{strings.Replace(head, "~", "#", 1)}, markdownFields("    ", o.Fields)...)
	if o.More > 0 {
		lines = append(lines, fmt.Sprintf("      … and %d more fields", o.More))
	}
	return lines
}
