// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

const (
	// perPage is how many clusters or groups a table shows.
	perPage = 50
	// maxColumns is how many add-ons a table shows beside each other.
	maxColumns = 12
	// maxLabels is how many label keys can be chosen from.
	maxLabels = 60
	// maxSets is how many sets the page of the fleet shows.
	maxSets = 12
	// maxChips is how many add-ons that are not Ready a line names.
	maxChips = 2
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
	// MoreSets is how many sets are left out.
	MoreSets int
	// Day is what happened in the last day.
	Day *Day
	// Columns are the add-ons of groups, or of the set or the name that is asked for.
	Columns []Column
	// MoreColumns is how many add-ons are left out.
	MoreColumns int
	Rows        []Row
	Groups      []Group
	Pager       Pager
	// Labels are the keys that clusters can be grouped by, Terms beginnings of label selectors, and Addons names.
	Labels, Terms, Addons []string
	States                []Class
	Reset                 string

	allSets []SetBar
}

// Total is how many clusters have a class.
type Total struct {
	Class Class
	N     int
	URL   string
	Here  bool
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
	State, Version       string
	// Why is what is wrong, and Of leads to the add-on that it is about, or to the cluster.
	Why, Of string
	Since   *Time
	// Chips are add-ons that are not Ready, the worst first, and More is how many are left out.
	Chips []Cell
	More  int
	// Ready is how many of its add-ons are.
	Ready, Total int
	// Cells are in the order of the columns.
	Cells []Cell
}

// Cell is an add-on on a cluster, or on a group of clusters.
type Cell struct {
	// There is false if there is no such add-on.
	There             bool
	Class             Class
	Name              string
	Text, Title, URL  string
	Version           string
	Ready, Bad, Total int
	// Heat is how large the share of the clusters is that failed: 0 for none, up to 4.
	Heat int
}

// Group is the clusters with one value of a label.
type Group struct {
	Value, URL string
	None       bool
	N          int
	Class      Class
	Bar        Bar
	Cells      []Cell
	query      Query
	counts     [Off + 1]int
	cells      map[string]*Cell
}

// Board returns the fleet at a glance.
func (x *Index) Board(q Query, now time.Time) *Board {
	b := &Board{Query: q, Notes: x.Notes, States: Classes, Reset: Query{path: q.path, Group: q.Group}.URL(), Terms: x.terms, Addons: x.addons}
	b.Labels = x.labels[:min(maxLabels, len(x.labels))]
	f, problem := q.filter()
	b.Problem = problem
	var counts [Off + 1]int
	var rows, all []*cluster
	for _, c := range x.clusters {
		if !f.takes(c) {
			continue
		}
		counts[c.class]++
		all = append(all, c)
		if q.State == "" || q.State == c.class.String() {
			rows = append(rows, c)
		}
	}
	b.All = len(all)
	for _, class := range Classes {
		here := q.State == class.String()
		if counts[class] > 0 || here {
			to := q.with(func(q *Query) {
				if q.State = class.String(); here {
					q.State = ""
				}
			})
			b.Totals = append(b.Totals, Total{class, counts[class], to, here})
		}
	}
	b.sets(x)
	b.Day = x.day(f, all, now).tell()
	if q.Group != "" {
		b.columns(f, rows)
		b.group(rows)
		return b
	}
	if q.Set != "" || q.Addon != "" {
		b.columns(f, rows)
	}
	sortClusters(rows, q.Sort)
	from, to, pager := q.page(len(rows), perPage)
	b.Pager = pager
	for _, c := range rows[from:to] {
		b.Rows = append(b.Rows, b.row(c, now))
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

func (b *Board) row(c *cluster, now time.Time) Row {
	r := Row{Namespace: c.key.Namespace, Name: c.key.Name, URL: ClusterURL(c.key.Namespace, c.key.Name), Class: c.class,
		State: c.word, Why: c.why}
	if r.Of = r.URL; c.of != "" {
		r.Of = ClusterAddonURL(c.key.Namespace, c.key.Name, c.of)
	}
	if c.since != nil {
		r.Since = TimeOf(&c.since.Time, now)
	}
	if c.reg != nil {
		r.Version = c.reg.Status.KubernetesVersion
	}
	r.Ready, r.Total = c.counts()
	for i := range c.cells { // the worst first
		switch cell := &c.cells[i]; {
		case ClassOf(cell.State) >= Ready:
		case len(r.Chips) == maxChips:
			r.More++
		default:
			r.Chips = append(r.Chips, c.cell(cell))
		}
	}
	for _, col := range b.Columns {
		out := Cell{}
		for i := range c.cells { // the worst first
			if cell := &c.cells[i]; cell.Name == col.Addon && (!out.There || out.Class == Off) {
				out = c.cell(cell)
			}
		}
		r.Cells = append(r.Cells, out)
	}
	return r
}

// Stand returns how a cluster stands; nil if that is not known.
func (x *Index) Stand(key types.NamespacedName, now time.Time) *Row {
	c := x.byKey[key]
	if c == nil {
		return nil
	}
	row := (&Board{}).row(c, now)
	return &row
}

// cell shows an add-on of a cluster.
func (c *cluster) cell(cell *cell) Cell {
	return Cell{There: true, Class: ClassOf(cell.State), Text: string(cell.State), Name: cell.Name,
		Version: excerpt.Cut(excerpt.Line(cell.Version), 24), Title: excerpt.Cut(excerpt.Line(cell.Message), maxWhole),
		URL: ClusterAddonURL(c.key.Namespace, c.key.Name, cell.Name)}
}

// counts returns how many add-ons are Ready, of those that the cluster is to have.
func (c *cluster) counts() (ready, total int) {
	for i := range c.cells {
		switch ClassOf(c.cells[i].State) {
		case Ready:
			ready++
			total++
		case Off:
		case Failed, Trouble, Busy, Paused:
			total++
		}
	}
	return ready, total
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
			g.query = b.groupQuery(value, there)
			g.URL = g.query.URL()
			groups[key] = g
			all = append(all, g)
		}
		g.add(c)
	}
	sortGroups(all, b.Query.Sort)
	from, to, pager := b.Query.page(len(all), perPage)
	b.Pager = pager
	for _, g := range all[from:to] {
		g.Bar = bar(g.counts, g.N)
		for _, col := range b.Columns {
			cell := g.cells[col.Addon]
			if cell == nil {
				cell = &Cell{}
			} else {
				cell.share()
				cell.URL = g.query.with(func(q *Query) { q.Addon = col.Addon })
			}
			g.Cells = append(g.Cells, *cell)
		}
		b.Groups = append(b.Groups, *g)
	}
}

// share says how large the share of the clusters is that are Ready, and how large that of those that failed. It says 100% only if all are
// Ready.
func (c *Cell) share() {
	permille := c.Ready * 1000 / c.Total
	c.Text = fmt.Sprintf("%d.%d%%", permille/10, permille%10)
	if permille%10 == 0 {
		c.Text = fmt.Sprintf("%d%%", permille/10)
	}
	c.Title = fmt.Sprintf("%s of %s Ready", excerpt.Thousands(c.Ready), excerpt.Thousands(c.Total))
	for _, percent := range []int{0, 1, 5, 20} {
		if c.Bad*100 > percent*c.Total {
			c.Heat++
		}
	}
}

// groupQuery asks for the clusters of a group.
func (b *Board) groupQuery(value string, there bool) Query {
	q, term := b.Query, b.Query.Group+"="+value
	if !there {
		term = "!" + q.Group
	}
	if q.Labels != "" {
		term = q.Labels + "," + term
	}
	q.Group, q.Sort, q.Labels, q.Page = "", "", term, 1
	return q
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
		text += excerpt.Thousands(k) + " " + class.Word()
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
