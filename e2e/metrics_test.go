// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/faultproxy"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

const watchedSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: watched, namespace: flux-system}
spec:
  selectAll: true
  rollout: {waves: [{name: canary, size: 2}]}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}, {name: fleet, kind: GitRepository, spec: {url: $GIT, ref: {branch: main}}}]
  addons:
    - {name: met-chart, helmRelease: {interval: 1m, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: blue}}}
    - {name: met-bad, kustomization: {interval: 1m, retryInterval: 2s, path: ./bad, sourceRef: {name: fleet}}}
    - {name: met-lost, dependsOn: [{name: met-bad}], kustomization: {interval: 1m, retryInterval: 2s, path: ./nowhere, sourceRef: {name: fleet}}}
---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: misspelt, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  addons: [{name: met-none, helmRelease: {chrat: {}}}]
`

// observed is a hub with a cluster that answers, one that did, and add-ons of which one fails, and whoever looks at it.
type observed struct {
	*hub
	metrics, pprof string
	sink           *fluxEvents
	kubeconfig     []byte // that of the healthy cluster
}

// TestMetrics looks at a hub from outside: what it says in metrics, in its log, and what Flux's events say about its objects.
func TestMetrics(t *testing.T) {
	beside(t)
	o := startObserved(t)
	var scrape string
	soon(t, "the metrics say what the objects say", func() error {
		var err error
		if scrape, err = get(t.Context(), o.metrics); err != nil {
			return err
		}
		var missing []error
		for _, line := range []string{
			`chandler_registrations{provider="Secret",state="AddonsFailed"} 1`,
			`chandler_registrations{provider="Secret",state="Unreachable"} 1`,
			`chandler_registration_reachable{registration="fleet/healthy"} 1`,
			`chandler_registration_reachable{registration="fleet/broken"} 0`,
			`chandler_deliveries{state="AddonsFailed"} 1`,
			`chandler_deliveries{state="ClusterUnreachable"} 1`,
			`chandler_addonsets{state="Stalled"} 1`,
			`chandler_addonset_stalled{addonset="flux-system/misspelt"} 1`,
			`chandler_addonset_clusters{addonset="flux-system/watched",state="offline"} 1`,
			`chandler_addonset_addons{addon="met-chart",addonset="flux-system/watched",state="Ready"} 1`,
			`chandler_addonset_addons{addon="met-bad",addonset="flux-system/watched",state="Failed"} 1`,
			`chandler_addonset_addons{addon="met-lost",addonset="flux-system/watched",state="WaitingForDependency"} 1`,
			`chandler_probe_targets{state="healthy"} 1`,
			`chandler_probe_targets{state="failing"} 1`,
		} {
			if !strings.Contains(scrape, "\n"+line+"\n") {
				missing = append(missing, fmt.Errorf("there is no %s", line))
			}
		}
		for _, begin := range []string{
			`chandler_registration_suspended_timestamp_seconds{reason="ClusterUnreachable",registration="fleet/broken"} 1.`,
			`chandler_registration_credential_expiry_timestamp_seconds{provider="Secret",registration="fleet/healthy",renewed="false"} 1.`,
			`chandler_probe_duration_seconds_count{outcome="Answered"} `, `chandler_probe_duration_seconds_count{outcome="ConnectionRefused"} `,
			`chandler_writes_total{kind="HelmRelease",result="success",verb="apply"} `, `chandler_writes_total{kind="ClusterRegistration",result="success",verb="status"} `,
		} {
			if !strings.Contains(scrape, "\n"+begin) {
				missing = append(missing, fmt.Errorf("there is no %s", begin))
			}
		}
		return errors.Join(missing...)
	})
	t.Run("alerts and dashboard", func(t *testing.T) { promcheck(t, scrape) })
	t.Run("documented", func(t *testing.T) { documented(t, scrape) })
	t.Run("profiles", func(t *testing.T) {
		if body, err := get(t.Context(), o.pprof+"goroutine?debug=1"); err != nil || !strings.Contains(body, "goroutine profile") {
			t.Errorf("no profile (%v)", err)
		}
	})
	t.Run("log", o.log)
	t.Run("Flux's events name the cluster", o.events)
}

func startObserved(t *testing.T) *observed {
	ctx := t.Context()
	sink := &fluxEvents{}
	server := httptest.NewServer(sink)
	t.Cleanup(server.Close)
	to := []string{"--events-addr=" + server.URL}
	address := func() string {
		port, err := localfleet.FreePort()
		check(t, err)
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
	metrics, pprof := address(), address()
	o := &observed{metrics: "http://" + metrics + "/metrics", pprof: "http://" + pprof + "/debug/pprof/", sink: sink}
	one, two := workload(t, "with-nodes"), workload(t, "workload-b")
	o.hub = startHub(t, hubOptions{
		name: "hub-metrics", args: []string{"--metrics-bind-address=" + metrics, "--pprof-bind-address=" + pprof},
		flux: &localfleet.FluxOptions{Args: map[string][]string{parts.HelmController: to, parts.KustomizeController: to}},
	})
	proxy, err := faultproxy.Start(faultproxy.Options{Address: address(), Target: strings.TrimPrefix(two.Server(), "https://")})
	check(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	charts, git := serve(t)
	_, err = git.Commit("fleet", map[string]string{"bad/nothing.yaml": "{apiVersion: nowhere.example.org/v1, kind: Nothing, metadata: {name: nothing, namespace: default}}"})
	check(t, err)
	namespace(t, o.Client, "fleet")
	for name, c := range map[string]*localfleet.Cluster{"healthy": one, "broken": two} {
		kubeconfig := kubeconfigOf(t, c)
		if name == "healthy" {
			o.kubeconfig = kubeconfig
		} else {
			kubeconfig = bytes.ReplaceAll(kubeconfig, []byte(two.Server()), []byte(proxy.URL()))
		}
		s := secret("fleet", name, map[string][]byte{"value": kubeconfig})
		s.Labels = map[string]string{hubv1.RegisterLabel: "true"}
		check(t, o.Client.Create(ctx, s))
	}
	apply(t, o.Client, strings.NewReplacer("$CHARTS", charts.URL(), "$GIT", git.URL("fleet")).Replace(watchedSet))
	for _, c := range []*localfleet.Cluster{one, two} {
		soon(t, "the chart arrives", func() error { return wantData(ctx, c, "met-chart", "met-chart", "color", "blue") })
	}
	check(t, proxy.Set(faultproxy.Refuse))
	return o
}

// promcheck holds the alerts and the dashboard against the scrape, with Prometheus' own parser.
func promcheck(t *testing.T, scrape string) {
	// No cluster of this test holds Flux's requests, so what the hub would say of one is added.
	const suspended = "chandler_registration_suspended_timestamp_seconds{"
	scrape = strings.Replace(scrape, "\n"+suspended, fmt.Sprintf("\n%sreason=%q,registration=\"fleet/holds\"} 1\n%s", suspended, hubv1.FluxHangsReason, suspended), 1)
	file := filepath.Join(t.TempDir(), "scrape.txt")
	check(t, os.WriteFile(file, []byte(scrape), 0o600))
	args := []string{"run", ".", file}
	for _, name := range []string{"config/observability/rules.yaml", "config/observability/dashboard.json", "examples/rollout/waits.yaml"} {
		args = append(args, filepath.Join("..", "..", name))
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join("..", "hack", "promcheck")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// documented wants every metric of the hub's own in docs/metrics.md, and no other there.
func documented(t *testing.T, scrape string) {
	raw, err := os.ReadFile(filepath.Join("..", "docs", "metrics.md"))
	check(t, err)
	names := func(text, pattern string) []string {
		var out []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	is, said := names(scrape, `(?m)^# TYPE (chandler_\w+)`), names(string(raw), "(?m)^\\| `(chandler_\\w+)`")
	if !slices.Equal(is, said) {
		t.Errorf("docs/metrics.md has %q, and the hub %q", said, is)
	}
}

// log wants each line of a controller to name what it is about, and none to hold a credential.
func (o *observed) log(t *testing.T) {
	raw, err := os.ReadFile(o.process.Log)
	check(t, err)
	about := map[string]string{"delivery": "cluster", "registration": "cluster", "matcher": "cluster", "addonset": "addonset", "discovery": "origin"}
	found := false
	for line := range bytes.Lines(raw) {
		entry := map[string]any{}
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Errorf("%v: %s", err, line)
			continue
		}
		room, _ := entry["controller"].(string)
		key := about[room]
		if _, reconciles := entry["reconcileID"]; reconciles && key != "" && entry[key] == nil {
			t.Errorf("a line of %s does not say which %s: %s", room, key, line)
		}
		found = found || entry["cluster"] == "fleet/healthy" && entry["addonset"] == "flux-system/watched" && entry["addon"] == "met-chart"
	}
	if !found {
		t.Error("no line names cluster, set and add-on of the chart that was delivered")
	}
	config, err := clientcmd.Load(o.kubeconfig)
	check(t, err)
	for _, user := range config.AuthInfos {
		for _, secret := range []string{base64.StdEncoding.EncodeToString(user.ClientKeyData), string(user.ClientKeyData), user.Token} {
			if len(secret) > 0 && bytes.Contains(raw, []byte(secret)) {
				t.Error("the log holds a credential")
			}
		}
	}
}

// fluxEvents stands where Flux's notification-controller does.
type fluxEvents struct {
	mu     sync.Mutex
	events []fluxEvent
}

type fluxEvent struct {
	InvolvedObject    corev1.ObjectReference
	Severity, Message string
	Metadata          map[string]string
}

func (f *fluxEvents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := fluxEvent{}
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, e)
	w.WriteHeader(http.StatusAccepted)
}

// events wants what Flux tells of an add-on's object, be it good or bad, to say which cluster, set and add-on it is about.
func (o *observed) events(t *testing.T) {
	for addon, of := range map[string]struct{ kind, severity string }{"met-chart": {"HelmRelease", "info"}, "met-bad": {"Kustomization", "error"}} {
		soon(t, "Flux tells of "+addon, func() error {
			o.sink.mu.Lock()
			defer o.sink.mu.Unlock()
			for _, e := range o.sink.events {
				m := e.Metadata
				if e.InvolvedObject.Kind == of.kind && e.Severity == of.severity && m[hubv1.EventClusterAnnotation] == "fleet/healthy" &&
					m[hubv1.EventSetAnnotation] == "flux-system/watched" && m[hubv1.EventAddonAnnotation] == addon {
					return nil
				}
			}
			return fmt.Errorf("none of %d events: %+v", len(o.sink.events), o.sink.events)
		})
	}
}
