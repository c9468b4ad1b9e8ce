// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/ui/uitest"
)

// folder is for what all tests share.
var folder string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if folder, err = os.MkdirTemp("", "ui"); err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(folder) }()
		return m.Run()
	}())
}

// driver builds what drives a browser.
var driver = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "browser")
	out, err := exec.Command("go", "build", "-C", filepath.Join("..", "..", "test", "browser"), "-o", path, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build test/browser: %w\n%s", err, out)
	}
	return path, err
})

// browse has a browser do some steps with a page; test/browser says which there are. @ is the address of the page.
func (s *served) browse(steps ...string) {
	s.t.Helper()
	if testing.Short() {
		s.t.Skip("needs a browser")
	}
	if _, err := exec.LookPath(cmp.Or(os.Getenv("CHROMIUM"), "chromium")); err != nil {
		s.t.Skip("there is no Chromium: install Debian's package chromium (apt-get install chromium), or name one in $CHROMIUM")
	}
	path, err := driver()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), path)
	script := "size 1280 800\nopen " + s.server.URL() + "\n" + connected + "\n" + strings.Join(steps, "\n") + "\nquiet\n"
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(script, "@", s.base))
	out, err := cmd.CombinedOutput()
	s.t.Logf("%s", out)
	if err != nil {
		s.t.Fatal(err)
	}
}

// sound are checks of a page by hand: what a screen reader and a keyboard need, and contrast.
var sound = []string{
	`true document.documentElement.lang === "en" && document.title.length > 12 && document.querySelectorAll("h1").length === 1 && document.querySelectorAll("main").length === 1`,
	`true [...document.querySelectorAll("table")].every(t => t.caption && t.caption.textContent.trim() && t.tHead && [...t.tHead.querySelectorAll("th")].every(c => c.scope === "col") && [...t.tBodies].every(b => [...b.rows].every(r => r.closest("table").querySelectorAll("tbody th").length === 0 || r.querySelector("th[scope=row]"))))`,
	`true [...document.querySelectorAll("input:not([type=hidden]), select")].every(e => e.labels && e.labels.length && e.labels[0].textContent.trim())`,
	`true [...document.querySelectorAll("a, button")].every(e => e.textContent.trim() || e.getAttribute("aria-label"))`,
	`true [...document.querySelectorAll("[tabindex]")].every(e => e.tabIndex <= 0) && [...document.querySelectorAll(".scroll")].every(e => e.tabIndex === 0 && e.getAttribute("role") === "region" && (e.getAttribute("aria-label") || document.getElementById(e.getAttribute("aria-labelledby"))))`,
	`true (() => { let last = 1; return [...document.querySelectorAll("h1, h2, h3")].every(h => { const n = +h.tagName[1]; const ok = n <= last + 1; last = n; return ok; }); })()`,
	`true new Set([...document.querySelectorAll("[id]")].map(e => e.id)).size === document.querySelectorAll("[id]").length`,
	`true [...document.querySelectorAll(".state")].every(e => /[a-zA-Z0-9]/.test(e.textContent))`,
	`true [...document.querySelectorAll("time")].every(e => !isNaN(Date.parse(e.dateTime)))`,
	`true document.documentElement.scrollWidth <= window.innerWidth`,
	`true (() => {
  const rgb = (c) => (c.match(/[\d.]+/g) || []).map(Number);
  const lum = (c) => { const [r, g, b] = c.map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const back = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c.slice(0, 3); } return [255, 255, 255]; };
  const bad = [...document.querySelectorAll("body *")].filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && e.getClientRects().length && !e.closest("svg, noscript, option, .skip")).filter(e => {
    const a = lum(rgb(getComputedStyle(e).color).slice(0, 3)), b = lum(back(e)); return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5; });
  window.pale = bad.map(e => e.outerHTML.slice(0, 120)); return !bad.length; })()`,
}

// connected: the page says that it hears of changes.
const connected = "true document.getElementById('connection').className === 'on'"

// checked holds a page to that, in both schemes and on a phone, and takes pictures of one with a name if CHANDLER_IMAGES names a folder.
func checked(name, path, text string) []string {
	steps := []string{"open @" + path, "see " + text, connected}
	dir := os.Getenv("CHANDLER_IMAGES")
	if dir != "" && name == "removals-approve" {
		steps = append(steps, "true (window.scrollTo(0, 99999), true)")
	}
	for _, scheme := range []string{"light", "dark"} {
		steps = append(steps, "scheme "+scheme)
		for _, s := range sound {
			steps = append(steps, strings.Join(strings.Fields(s), " "))
		}
		if file := os.Getenv("CHANDLER_AXE"); file != "" {
			steps = append(steps, "axe "+file)
		}
		if dir != "" && name != "" {
			steps = append(steps, fmt.Sprintf("picture %s/%s-%s.png", dir, name, scheme))
		}
	}
	steps = append(steps, "size 390 800", strings.Join(strings.Fields(sound[len(sound)-2]), " "))
	if dir != "" && (name == "fleet" || name == "rollout") {
		steps = append(steps, "scheme light", "open @"+path, "see "+text, connected, fmt.Sprintf("picture %s/%s-phone.png", dir, name))
	}
	return append(steps, "size 1280 800", "scheme light")
}

// TestPagesInABrowser: every page is sound, in both schemes and on a phone, and loads nothing that it should not.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	s := company(t)
	var steps []string
	for _, p := range [][3]string{
		{"fleet", "/", "400 clusters"}, {"groups", "/?group=region", "ap-southeast-1"}, {"addon", "/addons/kyverno", "Clusters that differ"},
		{"", "/?set=flux-system%2Fsecurity&sort=-name", "trivy-operator"},
		{"cluster", "/clusters/" + told, "Recent events"}, {"cluster-addon", "/clusters/" + told + "/addons/kyverno", "values.admissionController.replicas"},
		{"sets", "/sets", "flux-system/backup"}, {"rollout", "/sets/flux-system/security", "WaitingForApproval"},
		{"order", "/sets/flux-system/security/order/approve", "What this does"}, {"", "/sets/flux-system/security/order/pause", "Reason, shown to others"},
		{"", "/removals", "Review"}, {"removals", "/sets/flux-system/backup/removals", "This is exactly what the hub asks about"},
		{"removals-approve", "/sets/flux-system/backup/removals/approve", "Approve the removals from 204 clusters"},
	} {
		steps = append(steps, checked(p[0], p[1], p[2])...)
	}
	steps = append(steps, "quiet")
	steps = append(steps, checked("", "/clusters/x/y", "does not exist")...) // the browser complains of a 404
	s.browse(append(steps, "forget")...)
}

// TestLargeFleetInABrowser: 5,000 clusters with 10 add-ons each are a page that a browser shows soon.
func TestLargeFleetInABrowser(t *testing.T) {
	s := serve(t, uitest.Fleet(5000, 10))
	steps := append(checked("", "/", "5,000 clusters"), checked("", "/?group=region", "ap-south")...)
	s.browse(append(steps, "open @/", "print performance.getEntriesByType('navigation')[0].duration",
		"true performance.getEntriesByType('navigation')[0].duration < 5000")...)
}

// TestTheFirstScreen: somebody with a pager sees the clusters that failed at once, each in a line, and what is wrong with each.
func TestTheFirstScreen(t *testing.T) {
	t.Parallel()
	shown := func(n int) string {
		return fmt.Sprintf("true document.querySelectorAll('.clusters tbody tr')[%d].getBoundingClientRect().bottom < innerHeight", n-1)
	}
	company(t).browse("size 1280 800", "open @/", "see 400 clusters", shown(6),
		"true [...document.querySelectorAll('.clusters tbody tr')].every(r => r.getBoundingClientRect().height < 40)",
		// The message is cut, and whole in the tooltip and for who comes by the keyboard.
		"true (m => { window.m = m; return m.title.includes('statefulset spec are forbidden') && m.parentElement.scrollWidth > m.parentElement.clientWidth })(document.querySelector('.clusters .why'))",
		"press Tab", "true (window.m.focus(), getComputedStyle(window.m.parentElement).whiteSpace === 'normal')",
		"size 390 800", "open @/", "see 400 clusters", shown(3), "true document.querySelector('.strip ul').clientHeight < 100")
}

// TestFiltersAsOneTypes: the page and its address follow what somebody types or chooses; and label keys are suggested, also after a comma.
func TestFiltersAsOneTypes(t *testing.T) {
	t.Parallel()
	company(t).browse("open @/?sort=name", connected, "true (document.getElementById('search').focus(), true)", "type loki", "see 2 clusters", "gone stores/de-0647",
		"true location.search === '?q=loki&sort=name'", "focus #search",
		"true (document.getElementById('search').select(), true)", "type stores", "see 232 clusters",
		"true (e => { e.value = 'failed'; e.dispatchEvent(new Event('change', { bubbles: true })); return true; })(document.getElementById('state'))",
		"gone stores/at-0115", "see stores/de-0647", "true new URLSearchParams(location.search).get('state') === 'failed'",
		"open @/", connected, "true (document.getElementById('labels').focus(), true)", "type env=prod,", "see 288 clusters",
		"true [...document.getElementById('labels').list.options].some(o => o.value === 'env=prod,region=eu-west-1')",
		"type region", "true [...document.getElementById('labels').list.options].some(o => o.value === 'env=prod,region')",
		"open @/", "click thead a.sort", "see data/dev-ap-southeast-1-a", "true document.querySelector('.clusters th[aria-sort=ascending]').textContent.includes('Cluster')")
}

// TestCopyACommand: a command can be taken along by one click, or else is selected.
func TestCopyACommand(t *testing.T) {
	t.Parallel()
	company(t).browse("open @/sets/flux-system/security", "see chandler rollout approve security -n flux-system", connected, "click [data-copy]",
		"true document.querySelector('[data-copy]').textContent === 'Copied' || getSelection().toString().startsWith('chandler rollout approve')", "quiet")
}

// TestTheKeyboard: from the address to a filter, a cluster and back, without a mouse; and the focus stays when the page changes.
func TestTheKeyboard(t *testing.T) {
	t.Parallel()
	f := uitest.Fleet(60, 3)
	s := serve(t, f, f.Registrations[11], f.Sets[0], f.Sets[1], f.Sets[2])
	s.changes()
	s.browse(`true !location.href.includes("token") && document.cookie === ""`,
		"press Tab", "focus .skip", "press Enter", "true location.hash === '#main'",
		"press /", "focus #search", `true (document.activeElement.value = "", true)`, "type cluster-0011", "press Enter", "see 1 cluster", `true new URLSearchParams(location.search).get("q") === "cluster-0011"`,
		keep, `true (document.querySelector(".grid tbody th a").focus(), true)`, "true "+differs, `focus .grid tbody th a[href="/clusters/tenants-3/cluster-0011"]`,
		"press Enter", "true location.pathname === '/clusters/tenants-3/cluster-0011'", "see tenants-3/cluster-0011", "true (history.back(), true)", "see 1 cluster",
		"open @/", `true (document.querySelector(".totals a.failed").focus(), true)`, "press Enter", "see cluster-0011", "gone cluster-0001")
}

// TestWithoutScripts: a page shows the same, filters, and gives orders.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	f := waiting()
	s := serve(t, f, f.Sets[0])
	s.browse("script off", "open @/?q=cluster-0007", "press Tab", "see Chandler", "open @"+approval, "see What this does", "click #confirm", "see its clusters in the fleet")
	if got := s.annotation(hubv1.ApproveAnnotation); got != "cert-manager-2222222222-e3/canary" {
		t.Errorf("it is %q", got)
	}
}
