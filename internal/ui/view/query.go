// SPDX-License-Identifier: Apache-2.0

package view

import (
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

// Query is what a page is asked for. All of it is in the address, so that a page is a link.
type Query struct {
	// Text is looked for in the names and the troubles of clusters.
	Text string
	// State is a class, or empty for all.
	State string
	// Labels is a label selector.
	Labels string
	// Set is namespace/name, and Addon a name: only clusters that have it.
	Set, Addon string
	// Version is of the add-on.
	Version string
	// Group is a label key.
	Group string
	// Sort is what a table is sorted by, with - before it for the other direction; empty for the worst first.
	Sort string
	// Page counts from 1.
	Page int

	path string
}

// maxText is how much of each part of a query counts.
const maxText = 500

// ParseQuery reads a query from an address. What it does not know it ignores.
func ParseQuery(path string, v url.Values) Query {
	get := func(key string) string { return excerpt.Cut(strings.TrimSpace(excerpt.Visible(v.Get(key))), maxText) }
	q := Query{Text: get("q"), State: get("state"), Set: get("set"), Addon: get("addon"), Version: get("version"),
		Labels: strings.TrimRight(get("labels"), ", "), // the user is about to write another term
		Group:  get("group"), Sort: get("sort"), path: path}
	q.Page, _ = strconv.Atoi(v.Get("page"))
	q.Page = max(1, q.Page)
	return q
}

// URL is the address of the query.
func (q Query) URL() string {
	v := url.Values{}
	for _, p := range [][2]string{{"q", q.Text}, {"state", q.State}, {"labels", q.Labels}, {"set", q.Set}, {"addon", q.Addon},
		{"version", q.Version}, {"group", q.Group}, {"sort", q.Sort}} {
		if p[1] != "" {
			v.Set(p[0], p[1])
		}
	}
	if q.Page > 1 {
		v.Set("page", strconv.Itoa(q.Page))
	}
	to := url.URL{Path: q.path, RawQuery: v.Encode()}
	return to.String()
}

// with returns the address of a query that differs, from its first page on.
func (q Query) with(change func(*Query)) string {
	q.Page = 1
	change(&q)
	return q.URL()
}

// Filtered returns whether the query leaves something out.
func (q Query) Filtered() bool {
	return q.Text != "" || q.State != "" || q.Labels != "" || q.Set != "" || q.Addon != "" || q.Version != ""
}

// filter is a query that has been understood.
type filter struct {
	Query
	text   string
	labels labels.Selector
}

func (q Query) filter() (*filter, string) {
	f := &filter{Query: q, text: strings.ToLower(q.Text), labels: labels.Everything()}
	if q.Labels == "" {
		return f, ""
	}
	s, err := labels.Parse(q.Labels)
	if err != nil {
		return f, "the labels are not understood, and are left out: " + excerpt.Line(err.Error())
	}
	f.labels = s
	return f, ""
}

// takes returns whether a cluster is asked for, whatever its state.
func (f *filter) takes(c *cluster) bool {
	if f.text != "" && !strings.Contains(strings.ToLower(c.key.String()), f.text) &&
		!strings.Contains(strings.ToLower(c.of+": "+c.why), f.text) {
		return false
	}
	if !f.labels.Empty() && (c.reg == nil || !f.labels.Matches(labels.Set(c.reg.Labels))) {
		return false
	}
	if f.Set == "" && f.Addon == "" && f.Version == "" {
		return true
	}
	for i := range c.cells {
		if f.takesCell(&c.cells[i]) {
			return true
		}
	}
	return false
}

func (f *filter) takesCell(c *cell) bool {
	return (f.Set == "" || c.delivery.SetKey().String() == f.Set) && (f.Addon == "" || c.Name == f.Addon) &&
		(f.Version == "" || c.Version == f.Version)
}

// Pager leads to the other pages of a table.
type Pager struct {
	Page, Pages    int
	From, To, All  int
	Previous, Next string
}

// page returns which of n rows are on the page of a query.
func (q Query) page(n, size int) (from, to int, p Pager) {
	p = Pager{Pages: max(1, (n+size-1)/size), All: n}
	p.Page = max(1, min(q.Page, p.Pages))
	from = (p.Page - 1) * size
	to = min(n, from+size)
	p.From, p.To = min(from+1, to), to
	if p.Page > 1 {
		p.Previous = q.with(func(q *Query) { q.Page = p.Page - 1 })
	}
	if p.Page < p.Pages {
		p.Next = q.with(func(q *Query) { q.Page = p.Page + 1 })
	}
	return from, to, p
}

// ClusterURL is the address of a cluster's story.
func ClusterURL(namespace, name string) string { return path("clusters", namespace, name) }

// ClusterAddonURL is the address of one add-on's story on one cluster.
func ClusterAddonURL(namespace, name, addon string) string {
	return path("clusters", namespace, name, "addons", addon)
}

// AddonURL is the address of an add-on's story.
func AddonURL(addon string) string { return path("addons", addon) }

// SetURL is the address of a set, or of something below it.
func SetURL(namespace, name string, more ...string) string {
	return path(append([]string{"sets", namespace, name}, more...)...)
}

// path joins the parts of an address. Names come from the API server, and may hold anything that it accepts.
func path(parts ...string) string {
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "/" + strings.Join(parts, "/")
}
