// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/faultyapi"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// ordeal is a fleet of three clusters and a hub that reaches its own API server through a proxy. Two sets bring add-ons of every
// kind. What befalls the hub meanwhile is the test's matter; here is what must come about all the same: nothing twice, nothing
// left, nothing lost.
type ordeal struct {
	*hub
	prefix   string                         // of every name on the clusters, which others use too
	clusters map[string]*localfleet.Cluster // by the name of the registration
	charts   *localfleet.ChartServer
	git      *localfleet.GitServer
	api      *faultyapi.Server
	faults   atomic.Int64 // what went wrong on the way to it
	lives    *chronicle
	// befall is called after each thing that is asked of the hub, before anybody looks whether it has been done.
	befall func(t *testing.T)
}

// ordealLimit is how long the hub may take for anything. It takes seconds; but client-go, which has been refused often, waits for up
// to half a minute before it lists again.
const ordealLimit = expect.Patience

// seed returns what all that is random in a test comes from: the same each day, and another each night. A run that failed says its seed,
// and is repeated with it.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(41)
	if expect.Long() {
		s = rand.Uint64()
	}
	if text := os.Getenv("CHANDLER_SEED"); text != "" {
		var err error
		s, err = strconv.ParseUint(text, 10, 64)
		check(t, err)
	}
	t.Logf("the seed is %d; CHANDLER_SEED=%d draws the same lots again", s, s)
	return s
}

func startOrdeal(t *testing.T, prefix string) *ordeal {
	o := &ordeal{prefix: prefix, clusters: map[string]*localfleet.Cluster{}, befall: func(*testing.T) {}}
	for reg, cluster := range map[string]string{"one": "workload-a", "two": "workload-b", "three": "workload-c"} {
		o.clusters[reg] = workload(t, cluster)
	}
	o.hub = startHub(t, hubOptions{name: "hub-" + prefix, flux: &localfleet.FluxOptions{}, noHub: true, args: []string{"--removal-delay=1s"}})
	config, err := o.HubConfig(t.Context())
	check(t, err)
	o.api, err = faultyapi.Start(config)
	check(t, err)
	t.Cleanup(func() { _ = o.api.Close() })
	o.charts, o.git = serve(t)
	_, err = o.git.Commit("fleet", map[string]string{"ordeal/cm.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-git, namespace: default}\ndata: {color: \"${color}\"}\n", prefix)})
	check(t, err)
	kubeconfig, err := o.api.Kubeconfig()
	check(t, err)
	o.kubeconfig = filepath.Join(workDir, o.Name, "through-proxy.conf")
	check(t, os.WriteFile(o.kubeconfig, kubeconfig, 0o600))
	namespace(t, o.Client, "fleet")
	for reg, c := range o.clusters {
		register(t, o.Client, "fleet", reg, c, nil)
	}
	o.lives = startChronicle(t, o)
	o.start(t)
	for reg := range o.clusters {
		soon(t, reg+" is registered", func() error {
			return condition(t.Context(), o.Client, registration("fleet", reg), hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.NoAddonSetReason)
		})
	}
	return o
}

const ordealSets = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: $P-base, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {tier: prod}}
  removalGuard: {mode: "Off"} # all clusters leave at once in the end
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}, {name: fleet, kind: GitRepository, spec: {url: $GIT, ref: {branch: main}}}]
  addons:
    - {name: $P-chart, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: $COLOR}}}
    - {name: $P-git, dependsOn: [{name: $P-chart}], kustomization: {interval: 1h, retryInterval: 2s, path: ./ordeal, sourceRef: {name: fleet}, postBuild: {substitute: {color: $COLOR}}}}
$MORE---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: $P-extra, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {tier: prod}}
  removalGuard: {mode: "Off"} # all clusters leave at once in the end
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}]
  addons: [{name: $P-extra, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: white}}}]
`

const ordealMore = "    - {name: $P-more, manifests: {interval: 1h, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: $P-more, namespace: default}, data: {color: $COLOR}}]}}\n"

// wanted is what is to be on the clusters.
type wanted struct {
	color string
	more  bool     // with one more add-on
	on    []string // the registrations; all others have nothing
	// upgrades of the chart that has the color, since it was installed.
	upgrades int
}

// round does everything that is done with add-ons, and leaves nothing behind.
func (o *ordeal) round(t *testing.T) {
	t.Helper()
	start := time.Now()
	all := []string{"one", "three", "two"}
	o.sets(t, "blue", false)
	o.label(t, "prod", all...)
	o.settle(t, "fan-out", wanted{color: "blue", on: all})

	o.sets(t, "green", true)
	o.settle(t, "a change, and one more add-on", wanted{color: "green", more: true, on: all, upgrades: 1})

	// One after the other: a cluster that is to lose an add-on, and then all of them before the first is done, has been counted twice
	// by the removal guard, which holds a fourth in the hour.
	o.label(t, "dev", "three")
	o.settle(t, "a cluster is deselected", wanted{color: "green", more: true, on: []string{"one", "two"}, upgrades: 1})

	o.sets(t, "green", false)
	o.settle(t, "an add-on is dropped", wanted{color: "green", on: []string{"one", "two"}, upgrades: 1})

	o.deleteSets(t)
	o.settle(t, "the sets are deleted", wanted{})
	o.lives.wantEachOnce(t)
	t.Logf("the round took %s", time.Since(start).Round(100*time.Millisecond))
}

func (o *ordeal) sets(t *testing.T, color string, more bool) {
	t.Helper()
	text := strings.NewReplacer("$MORE", map[bool]string{true: ordealMore}[more]).Replace(ordealSets)
	apply(t, o.Client, strings.NewReplacer("$P", o.prefix, "$CHARTS", o.charts.URL(), "$GIT", o.git.URL("fleet"), "$COLOR", color).Replace(text))
}

func (o *ordeal) label(t *testing.T, tier string, registrations ...string) {
	t.Helper()
	for _, reg := range registrations {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"tier":%q}}}`, tier)
		check(t, o.Client.Patch(t.Context(), secret("fleet", reg, nil), client.RawPatch(types.MergePatchType, patch)))
	}
}

// settle lets happen what happens to the hub, and then waits for it to have done its work.
func (o *ordeal) settle(t *testing.T, what string, w wanted) {
	t.Helper()
	o.befall(t)
	start := time.Now()
	within(t, ordealLimit, what, func() error {
		select {
		case <-o.process.Done():
			t.Fatal(o.process.Err()) // by itself
		default:
		}
		return o.has(t.Context(), w)
	})
	t.Logf("%s: after %s", what, time.Since(start).Round(100*time.Millisecond))
}

// has compares clusters and hub with what is wanted.
func (o *ordeal) has(ctx context.Context, w wanted) error {
	var errs []error
	for reg, c := range o.clusters {
		errs = append(errs, o.clusterHas(ctx, c, slices.Contains(w.on, reg), w))
	}
	if len(w.on) == 0 {
		return errors.Join(append(errs, o.hubIsEmpty(ctx))...)
	}
	base := 2
	if w.more {
		base = 3
	}
	errs = append(errs, o.setIsDone(ctx, "base", base, w), o.setIsDone(ctx, "extra", 1, w))
	return errors.Join(errs...)
}

// clusterHas wants each add-on on a cluster, with its last values and with no more Helm revisions than it was changed, or none.
func (o *ordeal) clusterHas(ctx context.Context, c *localfleet.Cluster, served bool, w wanted) error {
	more := -1
	if w.more {
		more = 0
	}
	var errs []error
	for _, a := range []struct {
		name, namespace, color string
		upgrades               int // -1: the add-on is not to be there
	}{
		{"chart", o.prefix + "-chart", w.color, w.upgrades},
		{"git", "default", w.color, 0},
		{"extra", o.prefix + "-extra", "white", 0},
		{"more", "default", w.color, more},
	} {
		name := o.prefix + "-" + a.name
		if !served || a.upgrades < 0 {
			errs = append(errs, wantNoConfigMap(ctx, c, a.namespace, name), wantRevisions(ctx, c, name, 0))
			continue
		}
		errs = append(errs, wantData(ctx, c, a.namespace, name, "color", a.color))
		if a.name != "git" {
			errs = append(errs, wantRevisions(ctx, c, name, a.upgrades+1))
		}
	}
	return errors.Join(errs...)
}

// wantRevisions wants a Helm release to have exactly the revisions 1 to n. One that was uninstalled in between begins anew, and
// one that was done twice has more.
func wantRevisions(ctx context.Context, c *localfleet.Cluster, release string, n int) error {
	records := &corev1.SecretList{}
	if err := c.Client.List(ctx, records, client.MatchingLabels{"owner": "helm", "name": release}); err != nil {
		return err
	}
	var got, want []string
	for i := range records.Items {
		got = append(got, records.Items[i].Labels["version"])
	}
	for i := range n {
		want = append(want, strconv.Itoa(i+1))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: release %s has revisions %v, want %v", c.Name, release, got, want)
	}
	return nil
}

// setIsDone wants a set to be Ready and healthy on its clusters, and one Flux object there for each add-on and cluster.
func (o *ordeal) setIsDone(ctx context.Context, name string, addons int, w wanted) error {
	set := addonSet("flux-system", o.prefix+"-"+name)
	for _, typ := range []string{hubv1.ReadyCondition, hubv1.RolloutCompleteCondition, hubv1.HealthyCondition} {
		if err := condition(ctx, o.Client, set, typ, metav1.ConditionTrue, ""); err != nil {
			return err
		}
	}
	if want, got := fmt.Sprintf("%[1]d/%[1]d", len(w.on)), set.Status.Clusters; got == nil || got.ReadySummary != want || got.UpdatedSummary != want || got.Leaving != 0 {
		return fmt.Errorf("set %s counts %+v, want %s", set.Name, got, want)
	}
	var objects []string
	for _, kind := range []string{"HelmRelease", "Kustomization"} {
		list := fluxObjects(kind)
		if err := o.Client.List(ctx, list, client.MatchingLabels{hubv1.AddonSetLabel: set.Name}); err != nil {
			return err
		}
		for i := range list.Items {
			objects = append(objects, list.Items[i].Name)
		}
	}
	if want := addons * len(w.on); len(objects) != want {
		return fmt.Errorf("set %s has %d Flux objects, want %d: %v", set.Name, len(objects), want, objects)
	}
	return nil
}

// hubIsEmpty wants nothing on the hub but the registrations.
func (o *ordeal) hubIsEmpty(ctx context.Context) error {
	left, err := ours(ctx, o.Client)
	if err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(s string) bool { return strings.HasPrefix(s, "ClusterRegistration ") })
	var errs []error
	for _, set := range []string{"base", "extra"} {
		errs = append(errs, wantGone(ctx, o.Client, addonSet("flux-system", o.prefix+"-"+set)))
	}
	if len(left) > 0 {
		errs = append(errs, errors.New("left on the hub: "+strings.Join(left, ", ")))
	}
	return errors.Join(errs...)
}

func (o *ordeal) deleteSets(t *testing.T) {
	t.Helper()
	for _, set := range []string{"base", "extra"} {
		check(t, o.Client.Delete(t.Context(), addonSet("flux-system", o.prefix+"-"+set)))
	}
}

// leave unregisters all clusters.
func (o *ordeal) leave(t *testing.T) {
	t.Helper()
	for reg := range o.clusters {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"false"}}}`, hubv1.RegisterLabel)
		check(t, o.Client.Patch(t.Context(), secret("fleet", reg, nil), client.RawPatch(types.MergePatchType, patch)))
	}
	o.befall(t)
	within(t, ordealLimit, "nothing of ours is left on the hub", func() error {
		return errors.Join(wantNothingOfOurs(t.Context(), o.Client), o.has(t.Context(), wanted{}))
	})
}
