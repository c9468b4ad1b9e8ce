// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/facade"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// paged is a fleet of twelve clusters with a set in waves, and `chandler ui` beside it.
type paged struct {
	*rolling
	*http.Client
	command *running
	address string // where it lets a browser in
	base    string
}

// TestPage: what the page shows of a live hub, that it follows what happens, and that what somebody orders there is what the hub does.
func TestPage(t *testing.T) {
	beside(t)
	p := &paged{rolling: &rolling{target: workload(t, "with-nodes"), hub: startHub(t, hubOptions{name: "hub-page", flux: &localfleet.FluxOptions{}})}}
	p.charts, p.git = serve(t)
	check(t, p.charts.Publish(os.DirFS("testdata"), "charts/worker"))
	front, err := facade.New(p.target.Config)
	check(t, err)
	t.Cleanup(front.Close)
	for i := range 12 {
		name := fmt.Sprintf("c%02d", i)
		kubeconfig, err := front.KubeConfig(name)
		check(t, err)
		registerBy(t, p.hub.Client, "fleet", name, kubeconfig, map[string]string{"ring": map[bool]string{true: "canary", false: "rest"}[i == 0]})
		p.names = append(p.names, name)
	}
	p.open(t)
	step(t, "the fleet arrives", p.first)
	step(t, "the page shows it", p.fleet)
	step(t, "a change is seen", p.change)
	step(t, "the story of a cluster", p.story)
	step(t, "somebody approves a rollout", p.approve)
	step(t, "somebody undoes it in a browser", p.browser)
	if d, err := time.ParseDuration(os.Getenv("CHANDLER_HOLD")); err == nil { // for somebody who changes the page
		fmt.Println("KUBECONFIG=" + p.KubeconfigFile())
		time.Sleep(d)
	}
	check(t, p.command.cmd.Process.Signal(os.Interrupt))
	p.command.ends(t, 0)
}

var pageAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\S+`)

// open starts the command, and lets a browser in.
func (p *paged) open(t *testing.T) {
	cmd := chandlerStart(t, "ui", "--no-open", "--kubeconfig", p.KubeconfigFile())
	p.command = cmd
	p.address = pageAddress.FindString(cmd.says(t, "/?token="))
	p.base, _, _ = strings.Cut(p.address, "/?")
	jar, err := cookiejar.New(nil)
	check(t, err)
	p.Client = &http.Client{Jar: jar}
	p.get(t, strings.TrimPrefix(p.address, p.base))
}

// get returns what a page shows, without its markup.
func (p *paged) get(t *testing.T, path string) string {
	t.Helper()
	r, err := p.Client.Get(p.base + path)
	check(t, err)
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	check(t, err)
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s\n%s", path, r.Status, raw)
	}
	return shown(string(raw))
}

var (
	markup = regexp.MustCompile(`<[^>]*>`)
	blanks = regexp.MustCompile(`\s+`)
)

func shown(page string) string {
	return blanks.ReplaceAllString(html.UnescapeString(markup.ReplaceAllString(page, " ")), " ")
}

func (p *paged) wants(t *testing.T, path string, texts ...string) {
	t.Helper()
	page := p.get(t, path)
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("%s does not say %q:\n%s", path, text, page)
		}
	}
}

func (p *paged) fleet(t *testing.T) {
	soon(t, "all are Ready", func() error {
		if page := p.get(t, "/"); !strings.Contains(page, "✓ 12 Ready") {
			return fmt.Errorf("it shows %s", page)
		}
		return nil
	})
	p.wants(t, "/", "12 clusters", "waves", "fleet/ c03", "✓ Ready")
	p.wants(t, "/?q=c03", "1 cluster")
	p.wants(t, "/?labels=ring%3Dcanary", "1 cluster ", "fleet/ c00")
	p.wants(t, "/?group=ring", "canary", "rest", "100%")
}

// change pauses a cluster, and sees it on the stream.
func (p *paged) change(t *testing.T) {
	r, err := p.Client.Get(p.base + "/live?at=" + url.QueryEscape("/?state=paused"))
	check(t, err)
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	reg := &hubv1.ClusterRegistration{}
	check(t, p.hub.Client.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: "c05"}, reg))
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"pause":{"reason":"somebody looks at it"}}}`))
	check(t, p.hub.Client.Patch(t.Context(), reg, patch))
	var known time.Time
	done := make(chan struct{})
	go func() {
		defer close(done)
		soon(t, "the hub reports the pause", func() error {
			d := &hubv1.AddonDeliveryList{}
			if err := p.hub.Client.List(t.Context(), d, client.MatchingLabels{hubv1.ClusterLabel: "c05"}); err != nil {
				return err
			}
			if len(d.Items) == 1 && len(d.Items[0].Status.Addons) == 1 && d.Items[0].Status.Addons[0].State == hubv1.AddonPaused {
				known = time.Now()
				return nil
			}
			return fmt.Errorf("it is %+v", d.Items)
		})
	}()
	var seen time.Time
	for seen.IsZero() && lines.Scan() {
		if strings.Contains(lines.Text(), "fleet/c05") {
			seen = time.Now()
		}
	}
	<-done
	check(t, lines.Err())
	t.Logf("seen %s after the hub had reported it", seen.Sub(known))
	if seen.Sub(known) > 2*time.Second {
		t.Errorf("the page shows it %s after the hub has reported it", seen.Sub(known))
	}
	p.wants(t, "/?state=paused", "‖ Paused", "somebody looks at it")
	check(t, p.hub.Client.Patch(t.Context(), reg, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"pause":null}}`))))
}

func (p *paged) story(t *testing.T) {
	p.wants(t, "/clusters/fleet/c00", "Kubernetes", "worker", "✓ Ready", "ring=canary", "Secret fleet/c00", "Recent events")
	p.wants(t, "/clusters/fleet/c00/addons/worker", "Add-on worker is Ready on cluster fleet/c00", "values.color", `"blue"`, "AddonSet", "reads no Secrets")
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// confirm sends the form of a page that asks whether an order is meant.
func (p *paged) confirm(t *testing.T, path string) {
	t.Helper()
	r, err := p.Client.Get(p.base + path)
	check(t, err)
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	check(t, err)
	_, page, _ := strings.Cut(string(raw), `<form method="post"`)
	form := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(page, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.base+path, strings.NewReader(form.Encode()))
	check(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", p.base)
	answer, err := p.Client.Do(req)
	check(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("%s: %s\n%s", path, answer.Status, shown(string(text)))
	}
}

// approve rolls out an edit, and approves it after its canary.
func (p *paged) approve(t *testing.T) {
	const set = "/sets/flux-system/waves"
	p.apply(t, "", "color: green")
	soon(t, "it waits for an approval", func() error { return p.phase(t.Context(), hubv1.RolloutWaitingForApproval, "canary") })
	soon(t, "the page says so", func() error {
		if page := p.get(t, set); !strings.Contains(page, "! WaitingForApproval") {
			return fmt.Errorf("it shows %s", page)
		}
		return nil
	})
	p.wants(t, set, "canary · current", "1 done, 11 pending", "Approve …", "soaks for 5s; needs approval")
	p.wants(t, set+"/order/approve", "wave canary is approved for revision", "Wave quarter starts: 3 clusters, at most 2 at a time. Later waves have 8 more clusters.")
	p.confirm(t, set+"/order/approve")
	soon(t, "all have it", func() error { return p.wantColor(t.Context(), "green", p.names...) })
	soon(t, "the page says that it is complete", func() error {
		if page := p.get(t, set); !strings.Contains(page, "✓ Complete") || !strings.Contains(page, "12 done") {
			return fmt.Errorf("it shows %s", page)
		}
		return nil
	})
	p.wants(t, set+"/order/undo", "12 clusters with another revision get waves-")
}

// browser has a real browser undo the rollout.
func (p *paged) browser(t *testing.T) {
	if _, err := exec.LookPath(cmp.Or(os.Getenv("CHROMIUM"), "chromium")); err != nil {
		t.Skip("there is no Chromium: install Debian's package chromium (apt-get install chromium), or name one in $CHROMIUM")
	}
	driver := filepath.Join(t.TempDir(), "browser")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", filepath.Join("..", "test", "browser"), "-o", driver, ".").CombinedOutput(); err != nil {
		t.Fatalf("build test/browser: %s\n%s", err, out)
	}
	const connected = "true document.getElementById('connection').className === 'on'"
	steps := []string{"open " + p.address, connected, "see 12 Ready", "open " + p.base + "/sets/flux-system/waves", "see ✓ Complete",
		"click .actions a[href$=undo]", "see 12 clusters with another revision", "click #confirm", "see the clusters get revision waves-", "see End the undo", "quiet"}
	browser := exec.CommandContext(t.Context(), driver)
	browser.Stdin = strings.NewReader(strings.Join(steps, "\n"))
	out, err := browser.CombinedOutput()
	t.Logf("%s", out)
	check(t, err)
	soon(t, "all have what they had", func() error { return p.wantColor(t.Context(), "blue", p.names...) })
}
