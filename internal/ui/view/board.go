// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

const (
	// perPage is how many clusters or groups a table shows.
	perPage = 50
	// maxColumns is how many add-ons a table shows beside each other.
	maxColumns = 12
	// maxLabels is how many label keys can be chosen from.
	maxLabels = 60
	// maxSets is how many bars a page shows.
	maxSets = 50
)

// Board is the fleet at a glance.
type Board struct {
	Query   Query
	Problem string
	Notes   []string
	// Totals counts the clusters that are asked for, by class.
	Totals []Total
	All    int
	Sets   []SetBar
	// MoreSets is how many bars are left out.
	MoreSets int
	Columns  []Column
	// MoreColumns is how many add-ons are left out.
	MoreColumns int
	Rows        []Row
	Groups      []Group
	Pager       Pager
	// Labels are the keys that clusters can be grouped by.
	Labels []string
	States []Class
	Reset  string

	allSets []SetBar
}

// Total is how many clusters have a class.
type Total struct {
	Class Class
	N     int
	URL   string
	Here  bool
}

// SetBar is the state of a set.
type SetBar struct {
	Name, URL, Filter string
	Phase             string
	Says              string
	Bar               Bar
}

// Bar is a bar of parts, and the same in words.
type Bar struct {
	Parts []Part
	Text  string
}

// Part is a part of a bar, in thousandths of its width.
type Part struct {
	Class    Class
	N        int
	X, Width int
}

// Column is an add-on.
type Column struct{ Addon, URL string }

// Row is a cluster.
type Row struct {
	Namespace, Name, URL string
	Class                Class
	State, Why           string
	Version              string
	// Cells are in the order of the columns.
	Cells []Cell
}

// Cell is an add-on on a cluster, or on a group of clusters.
type Cell struct {
	// There is false if there is no such add-on.
	There             bool
	Class             Class
	Text, Title, URL  string
	Version           string
	Ready, Bad, Total int
}

// Group is the clusters with one value of a label.
type Group struct {
	Value, URL string
	None       bool
	N          int
	Class      Class
	Bar        Bar
	Cells      []Cell
	counts     [Off + 1]int
	cells      map[string]*Cell
}

// Board returns the fleet at a glance.
func (x *Index) Board(q Query) *Board {
	b := &Board{Query: q, Notes: x.Notes, States: Classes, Reset: Query{path: q.path, Group: q.Group}.URL()}
	b.Labels = x.labels[:min(maxLabels, len(x.labels))]
	f, problem := q.filter()
	b.Problem = problem
	var counts [Off + 1]int
	var rows []*cluster
	for _, c := range x.clusters {
		if !f.takes(c) {
			continue
		}
		counts[c.class]++
		b.All++
		if q.State == "" || q.State == c.class.String() {
			rows = append(rows, c)
		}
	}
	for _, class := range Classes {
		here := q.State == class.String()
		if counts[class] > 0 || here {
			to := q.with(func(q *Query) { q.State = class.String() })
			b.Totals = append(b.Totals, Total{class, counts[class], to, here})
		}
	}
	b.sets(x)
	b.columns(f, rows)
	if q.Group != "" {
		b.group(rows)
		return b
	}
	from, to, pager := q.page(len(rows), perPage)
	b.Pager = pager
	for _, c := range rows[from:to] {
		b.Rows = append(b.Rows, b.row(c))
	}
	return b
}

// columns chooses the add-ons that the table shows: those that fail most come first.
func (b *Board) columns(f *filter, rows []*cluster) {
	type count struct {
		name             string
		failed, bad, all int
	}
	counts := map[string]*count{}
	for _, c := range rows {
		for i := range c.cells {
			cell := &c.cells[i]
			if f.Addon != "" && cell.Name != f.Addon || f.Set != "" && cell.delivery.SetKey().String() != f.Set {
				continue
			}
			n := counts[cell.Name]
			if n == nil {
				n = &count{name: cell.Name}
				counts[cell.Name] = n
			}
			n.all++
			switch ClassOf(cell.State) {
			case Failed:
				n.failed++
			case Trouble:
				n.bad++
			case Busy, Paused, Ready, Off:
			}
		}
	}
	all := make([]*count, 0, len(counts))
	for _, n := range counts {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *count) int {
		return cmp.Or(cmp.Compare(b.failed, a.failed), cmp.Compare(b.bad, a.bad), cmp.Compare(b.all, a.all), cmp.Compare(a.name, b.name))
	})
	shown := all[:min(maxColumns, len(all))]
	b.MoreColumns = len(all) - len(shown)
	slices.SortFunc(shown, func(a, b *count) int { return cmp.Compare(a.name, b.name) }) // so that they stay where they are
	for _, n := range shown {
		b.Columns = append(b.Columns, Column{n.name, AddonURL(n.name)})
	}
}

func (b *Board) row(c *cluster) Row {
	r := Row{Namespace: c.key.Namespace, Name: c.key.Name, URL: ClusterURL(c.key.Namespace, c.key.Name), Class: c.class,
		State: c.word, Why: c.why}
	if c.reg != nil {
		r.Version = c.reg.Status.KubernetesVersion
	}
	for _, col := range b.Columns {
		out := Cell{}
		for i := range c.cells { // the worst first
			if cell := &c.cells[i]; cell.Name == col.Addon && (!out.There || out.Class == Off) {
				out = Cell{There: true, Class: ClassOf(cell.State), Text: string(cell.State), Version: excerpt.Cut(excerpt.Line(cell.Version), 24),
					Title: excerpt.Cut(excerpt.Line(cell.Message), maxWhy), URL: ClusterAddonURL(c.key.Namespace, c.key.Name, cell.Name)}
			}
		}
		r.Cells = append(r.Cells, out)
	}
	return r
}

// group counts clusters by the value of a label, the worst first.
func (b *Board) group(rows []*cluster) {
	groups := map[string]*Group{}
	var all []*Group
	for _, c := range rows {
		value, there := "", false
		if c.reg != nil {
			value, there = c.reg.Labels[b.Query.Group]
		}
		key := fmt.Sprint(there, value)
		g := groups[key]
		if g == nil {
			g = &Group{Value: value, None: !there, Class: Off, cells: map[string]*Cell{}}
			g.URL = b.groupURL(value, there)
			groups[key] = g
			all = append(all, g)
		}
		g.add(c)
	}
	slices.SortFunc(all, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(b.counts[Failed], a.counts[Failed]), cmp.Compare(a.Value, b.Value))
	})
	from, to, pager := b.Query.page(len(all), perPage)
	b.Pager = pager
	for _, g := range all[from:to] {
		g.Bar = bar(g.counts, g.N)
		for _, col := range b.Columns {
			cell := g.cells[col.Addon]
			if cell == nil {
				cell = &Cell{}
			} else {
				cell.Text = status.Fraction(int32(cell.Ready), int32(cell.Total)) //nolint:gosec // counts of clusters
			}
			g.Cells = append(g.Cells, *cell)
		}
		b.Groups = append(b.Groups, *g)
	}
}

func (b *Board) groupURL(value string, there bool) string {
	term := b.Query.Group + "=" + value
	if !there {
		term = "!" + b.Query.Group
	}
	return b.Query.with(func(q *Query) {
		q.Group = ""
		if q.Labels != "" {
			term = q.Labels + "," + term
		}
		q.Labels = term
	})
}

func (g *Group) add(c *cluster) {
	g.N++
	g.counts[c.class]++
	g.Class = min(g.Class, c.class)
	for i := range c.cells {
		class := ClassOf(c.cells[i].State)
		if class == Off {
			continue
		}
		cell := g.cells[c.cells[i].Name]
		if cell == nil {
			cell = &Cell{There: true, Class: Off}
			g.cells[c.cells[i].Name] = cell
		}
		cell.Total++
		cell.Class = min(cell.Class, class)
		switch class {
		case Ready:
			cell.Ready++
		case Failed:
			cell.Bad++
		case Trouble, Busy, Paused, Off:
		}
	}
}

// sets counts for each set the clusters by the worst state of its add-ons.
func (b *Board) sets(x *Index) {
	counts := map[types.NamespacedName]*[Off + 1]int{}
	for _, d := range x.Deliveries {
		n := counts[d.SetKey()]
		if n == nil {
			n = &[Off + 1]int{}
			counts[d.SetKey()] = n
		}
		n[classOf(d)]++
	}
	for _, s := range x.Sets {
		if b.Query.Set != "" && b.Query.Set != s.Namespace+"/"+s.Name {
			continue
		}
		b.Sets = append(b.Sets, b.setBar(s, counts[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]))
	}
	slices.SortFunc(b.Sets, func(a, b SetBar) int {
		return cmp.Or(cmp.Compare(worst(a.Bar), worst(b.Bar)), cmp.Compare(a.Name, b.Name))
	})
	b.allSets = b.Sets
	b.MoreSets = max(0, len(b.Sets)-maxSets)
	b.Sets = b.Sets[:len(b.Sets)-b.MoreSets]
}

func worst(b Bar) Class {
	if len(b.Parts) == 0 {
		return Off
	}
	return b.Parts[0].Class
}

// classOf returns the class of the worst add-on of a delivery.
func classOf(d *hubv1.AddonDelivery) Class {
	if d.DeletionTimestamp != nil || len(d.Status.Addons) == 0 {
		return Busy
	}
	class := Off
	for i := range d.Status.Addons {
		class = min(class, ClassOf(d.Status.Addons[i].State))
	}
	return class
}

func (b *Board) setBar(s *hubv1.AddonSet, counts *[Off + 1]int) SetBar {
	if counts == nil {
		counts = &[Off + 1]int{}
	}
	n := 0
	for _, k := range counts {
		n += k
	}
	if c := s.Status.Clusters; c != nil && int(c.Matched) > n {
		counts[Busy] += int(c.Matched) - n
		n = int(c.Matched)
	}
	out := SetBar{Name: s.Namespace + "/" + s.Name, URL: SetURL(s.Namespace, s.Name), Bar: bar(*counts, n)}
	out.Filter = b.Query.with(func(q *Query) { q.Set = out.Name })
	if r := s.Status.Rollout; r != nil {
		out.Phase, out.Says = string(r.Phase), excerpt.Cut(excerpt.Line(r.WaitingFor), maxWhy)
	}
	if c := status.Find(s, hubv1.StalledCondition); c != nil {
		out.Phase, out.Says = "Stalled", excerpt.Cut(excerpt.Line(c.Message), maxWhy)
	}
	if h := s.Status.HeldRemovals; h != nil {
		out.Says = status.Count(h.Count, "cluster") + " would lose add-ons, and wait for approval. " + out.Says
	}
	return out
}

// bar makes a bar of counts. Whatever is there can be seen, however small its share.
func bar(counts [Off + 1]int, n int) Bar {
	const whole, least = 1000, 12
	out := Bar{}
	if n == 0 {
		out.Text = "no cluster"
		return out
	}
	text, sum := "", 0
	for _, class := range Classes {
		k := counts[class]
		if k == 0 {
			continue
		}
		width := max(least, k*whole/n)
		out.Parts = append(out.Parts, Part{Class: class, N: k, Width: width})
		sum += width
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d %s", k, class.Word())
	}
	x := 0
	for i := range out.Parts {
		p := &out.Parts[i]
		p.X, p.Width = x, p.Width*whole/sum
		x += p.Width
	}
	out.Text = text
	return out
}
