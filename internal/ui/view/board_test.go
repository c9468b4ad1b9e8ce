// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/ui/uitest"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

func board(t *testing.T, f *view.Fleet, query string) *view.Board {
	t.Helper()
	v := must.Get(url.ParseQuery(query)).Or(t)
	return view.NewIndex(f).Board(view.ParseQuery("/", v), uitest.Now)
}

// TestAPageHoldsAScreenful: however large the fleet, and whatever is asked.
func TestAPageHoldsAScreenful(t *testing.T) {
	f := uitest.Fleet(1000, 10)
	for _, query := range []string{"", "page=20", "page=9999", "page=-1", "page=x", "group=" + "chandler.dev%2Fname", "state=ready", "q=cluster"} {
		b := board(t, f, query)
		if n := len(b.Rows) + len(b.Groups); n == 0 || n > 50 {
			t.Errorf("%q shows %d rows", query, n)
		}
		if len(b.Columns) > 12 {
			t.Errorf("%q shows %d columns", query, len(b.Columns))
		}
	}
}

func TestTheWorstComesFirst(t *testing.T) {
	b := board(t, uitest.Fleet(300, 10), "")
	last := view.Failed
	for _, r := range b.Rows {
		if r.Class < last {
			t.Errorf("%s is %s, after a cluster that is %s", r.Name, r.Class, last)
		}
		last = r.Class
	}
	if b.Rows[0].Class != view.Failed || !strings.Contains(b.Rows[0].Why, "UpgradeFailed") {
		t.Errorf("first: %+v", b.Rows[0])
	}
}

// TestFilters: each leaves out what it should, and the totals go on counting the other states.
func TestFilters(t *testing.T) {
	f := uitest.Fleet(300, 10)
	for query, want := range map[string]func(view.Row) bool{
		"state=failed":                   func(r view.Row) bool { return r.Class == view.Failed },
		"state=trouble":                  func(r view.Row) bool { return r.State == "Unreachable" },
		"q=CLUSTER-001":                  func(r view.Row) bool { return strings.HasPrefix(r.Name, "cluster-001") },
		"q=deadline+exceeded":            func(r view.Row) bool { return r.Class == view.Failed },
		"q=tenants-3%2F":                 func(r view.Row) bool { return r.Namespace == "tenants-3" },
		"addon=cilium&version=1.16.0":    func(r view.Row) bool { return r.Class == view.Failed },
		"set=flux-system%2Fcert-manager": func(r view.Row) bool { return len(r.Cells) == 1 },
	} {
		b := board(t, f, query)
		if len(b.Rows) == 0 {
			t.Errorf("%s shows nothing", query)
		}
		for _, r := range b.Rows {
			if !want(r) {
				t.Errorf("%s shows %+v", query, r)
			}
		}
	}
	if b := board(t, f, "state=failed"); b.All != 300 || len(b.Totals) < 4 {
		t.Errorf("the totals are %+v of %d", b.Totals, b.All)
	}
	if b := board(t, f, "labels=env%3Dprod,region!%3Deu-west"); b.All == 0 || b.All >= 100 {
		t.Errorf("%d clusters have the labels", b.All)
	}
	if b := board(t, f, "labels=%3D%3Dx"); b.Problem == "" || b.All != 300 {
		t.Errorf("labels that are not understood: %q, %d clusters", b.Problem, b.All)
	}
}

// TestGroups: each leads to its clusters, also that of the clusters without the label.
func TestGroups(t *testing.T) {
	f := uitest.Fleet(300, 10)
	b := board(t, f, "group=env&labels=region%3Deu-west")
	if len(b.Groups) != 4 {
		t.Fatalf("%d groups", len(b.Groups))
	}
	sum := 0
	for _, g := range b.Groups {
		sum += g.N
		to := must.Get(url.Parse(g.URL)).Or(t)
		if there := board(t, f, to.RawQuery); there.All != g.N || there.Query.Group != "" {
			t.Errorf("group %q has %d clusters, and its page %s %d", g.Value, g.N, g.URL, there.All)
		}
	}
	if sum != b.All {
		t.Errorf("the groups have %d clusters, and there are %d", sum, b.All)
	}
}

// TestShares: a group's cell says how large a share failed, and is as red as that share: 1 of 1,250 is not.
func TestShares(t *testing.T) {
	for failed, want := range map[int]string{0: "100% 0", 1: "99.9% 1", 13: "98.9% 2", 100: "92% 3", 500: "60% 4", 1250: "0% 4"} {
		f := uitest.Fleet(1250, 1)
		for c, d := range f.Deliveries {
			if d.Status.Addons[0].State = hubv1.AddonReady; c < failed {
				d.Status.Addons[0].State = hubv1.AddonFailed
			}
		}
		cell := board(t, f, "group=chandler.dev%2Fnone").Groups[0].Cells[0]
		if got := fmt.Sprintf("%s %d", cell.Text, cell.Heat); got != want || cell.Bad != failed {
			t.Errorf("%d failed: %s, want %s; %+v", failed, got, want, cell)
		}
	}
}

// TestWhatIsNotReady: a line names the add-ons that are not Ready, those that failed first, and says the whole message of the worst.
func TestWhatIsNotReady(t *testing.T) {
	f := uitest.Fleet(12, 6)
	message := "UpgradeFailed: " + strings.Repeat("timed out ", 60) + "at last"
	for i, state := range []hubv1.AddonState{hubv1.AddonProgressing, hubv1.AddonPaused, hubv1.AddonReady, hubv1.AddonExcluded, hubv1.AddonFailed, hubv1.AddonReady} {
		f.Deliveries[i].Status.Addons[0].State, f.Deliveries[i].Status.Addons[0].Message = state, message
	}
	b := board(t, f, "q=cluster-0000")
	r := b.Rows[0]
	if len(b.Columns) != 0 || len(r.Chips) != 2 || r.Chips[0].Name != "ingress-nginx" || r.Chips[1].Name != "cert-manager" || r.More != 1 || r.Ready != 2 || r.Total != 5 {
		t.Errorf("%+v", r)
	}
	if r.Why != message || r.Of != "/clusters/tenants-0/cluster-0000/addons/ingress-nginx" {
		t.Errorf("%q at %s", r.Why, r.Of)
	}
}

// TestSorted: by each column, both ways; an order that is not known changes nothing.
func TestSorted(t *testing.T) {
	f := uitest.Fleet(12, 2)
	f.Registrations[5].Status.KubernetesVersion, f.Registrations[6].Status.KubernetesVersion = "v1.9.3", "v1.34.12"
	for by, want := range map[string]string{"": "0011", "nonsense": "0011", "name": "0000", "-name": "0011", "state": "0011", "-state": "0000", "version": "0005",
		"-version": "0006", "ready": "0003"} {
		if got := board(t, f, "sort="+by).Rows[0].Name; got != "cluster-"+want {
			t.Errorf("by %q the first is %s, want %s", by, got, want)
		}
	}
	q := view.ParseQuery("/", url.Values{"sort": {"name"}, "page": {"3"}, "q": {"x"}})
	if h := q.Head("name", "Cluster"); h.URL != "/?q=x&sort=-name" || h.Order != "ascending" {
		t.Errorf("%+v", h)
	}
	if h := q.Head("since", "Since"); h.URL != "/?q=x&sort=since" || h.Order != "" {
		t.Errorf("%+v", h)
	}
}

// TestSuggestions: the keys of labels, and the values of those that have few.
func TestSuggestions(t *testing.T) {
	b := board(t, uitest.Fleet(300, 2), "")
	terms := strings.Join(b.Terms, " ")
	for _, want := range []string{"chandler.dev/name", "env", "env=prod", "region=us-east"} {
		if !slices.Contains(b.Terms, want) {
			t.Errorf("%s is not among %s", want, terms)
		}
	}
	if strings.Contains(terms, "cluster-0") || strings.Join(b.Addons, " ") != "cert-manager cilium" {
		t.Errorf("%s; %s", terms, b.Addons)
	}
}

// TestBars: what is there is seen, and the parts fill the bar and no more.
func TestBars(t *testing.T) {
	b := board(t, uitest.Fleet(1000, 10), "")
	for _, s := range b.Sets {
		end := 0
		for _, p := range s.Bar.Parts {
			if p.Width < 5 || p.X != end {
				t.Errorf("%s: %+v", s.Name, s.Bar.Parts)
			}
			end = p.X + p.Width
		}
		if end < 980 || end > 1000 || !strings.Contains(s.Bar.Text, "Ready") {
			t.Errorf("%s ends at %d: %s", s.Name, end, s.Bar.Text)
		}
	}
}

// TestWhatMayNotBeRead: without registrations, or without deliveries, the page shows the rest.
func TestWhatMayNotBeRead(t *testing.T) {
	f := uitest.Fleet(20, 2)
	if b := board(t, &view.Fleet{Deliveries: f.Deliveries}, ""); len(b.Rows) != 20 || b.Rows[1].State != "NoRegistration" {
		t.Errorf("%+v", b.Rows)
	}
	if b := board(t, &view.Fleet{Registrations: f.Registrations, Sets: f.Sets}, ""); len(b.Rows) != 20 || len(b.Columns) != 0 {
		t.Errorf("%+v", b.Rows)
	}
	if b := board(t, &view.Fleet{}, "group=x"); len(b.Rows)+len(b.Groups) != 0 {
		t.Errorf("%+v", b)
	}
}

func BenchmarkBoard(b *testing.B) {
	f := uitest.Fleet(5000, 10)
	b.Run("Index", func(b *testing.B) {
		for b.Loop() {
			view.NewIndex(f)
		}
	})
	x := view.NewIndex(f)
	for _, name := range []string{"", "group=env", "q=cluster-1"} {
		v, _ := url.ParseQuery(name)
		b.Run("Page/"+name, func(b *testing.B) {
			for b.Loop() {
				x.Board(view.ParseQuery("/", v), uitest.Now)
			}
		})
	}
}
