// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// generation is a hub with two clusters that differ in their labels.
type generation struct {
	*hub
	one, two *localfleet.Cluster
	charts   *localfleet.ChartServer
	git      *localfleet.GitServer
}

func startGeneration(t *testing.T, name string) *generation {
	g := &generation{one: workload(t, "workload-a"), two: workload(t, "workload-b")}
	g.hub = startHub(t, hubOptions{name: name, flux: &localfleet.FluxOptions{NoCrossNamespaceRefs: true}, args: []string{"--platform-namespaces=flux-system,platform", "--removal-delay=2s"}})
	g.charts, g.git = serve(t)
	namespace(t, g.Client, "fleet")
	namespace(t, g.Client, "platform")
	for reg, c := range map[string]*localfleet.Cluster{"one": g.one, "two": g.two} {
		register(t, g.Client, "fleet", reg, c, map[string]string{"region": map[string]string{"one": "eu", "two": "us"}[reg]})
	}
	return g
}

// fill writes the addresses of the servers into a text.
func (g *generation) fill(text string) string {
	return strings.NewReplacer("$CHARTS", g.charts.URL(), "$GIT", g.git.URL("fleet")).Replace(text)
}

func (g *generation) apply(t *testing.T, text string) {
	t.Helper()
	apply(t, g.Client, g.fill(text))
}

// remove deletes a set and waits until it is gone.
func (g *generation) remove(t *testing.T, namespace, name string) {
	t.Helper()
	set := addonSet(namespace, name)
	check(t, client.IgnoreNotFound(g.Client.Delete(t.Context(), set)))
	soon(t, "AddonSet "+name+" is gone", func() error {
		return errors.Join(approveHeld(t.Context(), g.Client), wantGone(t.Context(), g.Client, set))
	})
}

// addonOf wants an add-on of one cluster in a state, with a text in its message.
func (g *generation) addonOf(ctx context.Context, cluster, set, addon string, state hubv1.AddonState, text string) error {
	list := &hubv1.AddonDeliveryList{}
	if err := g.Client.List(ctx, list, client.MatchingLabels{hubv1.AddonSetLabel: set, hubv1.ClusterLabel: cluster}); err != nil || len(list.Items) != 1 {
		return fmt.Errorf("%d deliveries of %s (%v)", len(list.Items), set, err)
	}
	return expect.Addon(&list.Items[0], addon, state, text)
}

// delivered wants what a set in flux-system says now to be Ready on clusters.
func (g *generation) delivered(ctx context.Context, set string, clusters ...string) error {
	keys := make([]types.NamespacedName, len(clusters))
	for i, name := range clusters {
		keys[i] = types.NamespacedName{Namespace: "fleet", Name: name}
	}
	return expect.Delivered(ctx, g.Client, addonSet("flux-system", set), keys...)
}

func (g *generation) patchRegistration(t *testing.T, name, patch string) {
	t.Helper()
	soon(t, "registration "+name+" takes the patch", func() error {
		return g.Client.Patch(t.Context(), registration("fleet", name), client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

// TestGeneration shows that one set gives each cluster its own, read back from the clusters.
func TestGeneration(t *testing.T) {
	beside(t)
	g := startGeneration(t, "hub-generation")
	t.Run("layers", g.layers)
	t.Run("sources", g.sources)
	t.Run("a cluster that cannot be rendered keeps what it has", g.evaluationErrors)
	t.Run("authority", g.authority)
	t.Run("manifests", g.manifests)
	t.Run("manifests from ConfigMaps and Secrets", g.manifestsFrom)
	t.Run("copies of Secrets", g.copiedSecrets)
	t.Run("manifests that are applied once", g.applyOnce)
	t.Run("Flux objects in a folder", g.fluxObjects)
}

const layersSet = `
apiVersion: v1
kind: ConfigMap
metadata: {name: region-eu, namespace: flux-system}
data: {greeting: hallo}
---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: layers, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}]
  variables: {host: "<< cluster.name + '.' + vars.domain >>", domain: example.org, greeting: hello}
  variablesFrom: [{configMap: "region-<< cluster.labels.region >>", optional: true}]
  addons:
    - name: gen-layers
      optional: true
      helmRelease:
        interval: 1h
        chart: {spec: {chart: settings, sourceRef: {name: charts}}}
        values: {color: "<< vars.greeting >> << vars.host >> ${flux} {{ .helm }}"}
  overlays:
    - name: us
      clusterSelector: {matchLabels: {region: us}}
      variables: {domain: example.com}
    - name: third
      when: "<< cluster.labels[?'tier'].orValue('') == 'third' >>"
      addons: [{name: gen-layers, helmRelease: {values: {color: third class}}}]
`

func (g *generation) layers(t *testing.T) {
	ctx := t.Context()
	color := func(c *localfleet.Cluster, want string) {
		t.Helper()
		soon(t, "the color is "+want, func() error { return wantData(ctx, c, "gen-layers", "gen-layers", "color", want) })
	}
	g.apply(t, layersSet)
	color(g.one, "hallo one.example.org ${flux} {{ .helm }}")
	color(g.two, "hello two.example.com ${flux} {{ .helm }}")

	// A ConfigMap, a label, the cluster's own variables: each arrives by itself.
	g.apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: region-us, namespace: flux-system}, data: {greeting: howdy}}`)
	color(g.two, "howdy two.example.com ${flux} {{ .helm }}")
	g.patchRegistration(t, "two", `{"spec":{"variables":{"greeting":"hi << there"}}}`)
	color(g.two, "hi << there two.example.com ${flux} {{ .helm }}")
	check(t, g.Client.Patch(ctx, secret("fleet", "one", nil), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"chandler.dev/variables":"{domain: example.net}"}}}`))))
	color(g.one, "hallo one.example.net ${flux} {{ .helm }}")
	check(t, g.Client.Patch(ctx, secret("fleet", "one", nil), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"third"}}}`))))
	color(g.one, "third class")

	// An override ends by itself: first it is to be seen, however long that takes, and then it is to end soon.
	override := func(until time.Duration) {
		g.patchRegistration(t, "one", fmt.Sprintf(`{"spec":{"overrides":[{"name":"gen-layers","helmRelease":{"values":{"color":"for a while"}},"until":%q,"reason":"a test"}]}}`, inTime(until)))
	}
	override(time.Hour)
	color(g.one, "for a while")
	override(3 * time.Second)
	color(g.one, "third class")
	g.patchRegistration(t, "one", `{"spec":{"overrides":[{"name":"gen-layers","exclude":true}]}}`)
	soon(t, "the excluded add-on is uninstalled", func() error { return wantNoConfigMap(ctx, g.one, "gen-layers", "gen-layers") })
	soon(t, "and told of", func() error {
		return g.addonOf(ctx, "one", "layers", "gen-layers", hubv1.AddonExcluded, "the cluster's override leaves it out")
	})
	check(t, wantData(ctx, g.two, "gen-layers", "gen-layers", "color", "hi << there two.example.com ${flux} {{ .helm }}"))
	g.patchRegistration(t, "one", `{"spec":{"overrides":null}}`)
	g.patchRegistration(t, "two", `{"spec":{"variables":null}}`)
	color(g.one, "third class")
	g.remove(t, "flux-system", "layers")
}

// inTime is a moment as the API has it.
func inTime(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }

func (g *generation) sources(t *testing.T) {
	ctx := t.Context()
	mirrors := func() ([]sourcev1.HelmRepository, error) {
		list := &sourcev1.HelmRepositoryList{}
		err := g.Client.List(ctx, list, client.MatchingLabels{hubv1.AddonSetLabel: "mirrors"})
		return list.Items, err
	}
	g.apply(t, `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: mirrors, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  sources: [{name: mirror, kind: HelmRepository, spec: {url: "$CHARTS/?region=<< cluster.labels.region >>"}}]
  addons:
    - {name: gen-m1, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: mirror}}}}}
    - {name: gen-m2, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: mirror}}}}}
`)
	for _, c := range []*localfleet.Cluster{g.one, g.two} {
		for _, addon := range []string{"gen-m1", "gen-m2"} {
			soon(t, addon+" arrives", func() error { _, err := configMap(ctx, c, addon, addon); return err })
		}
	}
	got, err := mirrors()
	check(t, err)
	if len(got) != 2 {
		t.Errorf("two regions and two add-ons have %d sources, want 2", len(got))
	}
	g.remove(t, "flux-system", "mirrors")
	soon(t, "the sources go with their last use", func() error {
		left, err := mirrors()
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d are left", len(left))
		}
		return err
	})
}

func (g *generation) evaluationErrors(t *testing.T) {
	ctx := t.Context()
	set := func(color string) {
		t.Helper()
		g.apply(t, fmt.Sprintf(`
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: errors, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}]
  addons:
    - {name: gen-bad, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: %q}}}
    - {name: gen-good, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: blue}}}
`, color))
	}
	set("one")
	soon(t, "both clusters have it", func() error {
		return errors.Join(wantData(ctx, g.one, "gen-bad", "gen-bad", "color", "one"), wantData(ctx, g.two, "gen-bad", "gen-bad", "color", "one"),
			wantData(ctx, g.two, "gen-good", "gen-good", "color", "blue"))
	})
	g.patchRegistration(t, "one", `{"spec":{"variables":{"color":"two"}}}`)
	set("<< vars.color >>")
	soon(t, "the one that can has the new one", func() error { return wantData(ctx, g.one, "gen-bad", "gen-bad", "color", "two") })
	soon(t, "the other says why not", func() error {
		return g.addonOf(ctx, "two", "errors", "gen-bad", hubv1.AddonFailed, `helmRelease.values.color: `)
	})
	check(t, wantData(ctx, g.two, "gen-bad", "gen-bad", "color", "one"))
	check(t, wantData(ctx, g.two, "gen-good", "gen-good", "color", "blue"))
	set("<< cluster.nam >>")
	soon(t, "what does not compile stalls the set", func() error {
		return condition(ctx, g.Client, addonSet("flux-system", "errors"), hubv1.StalledCondition, metav1.ConditionTrue, hubv1.InvalidSpecReason)
	})
	check(t, wantData(ctx, g.one, "gen-bad", "gen-bad", "color", "two"))
	g.patchRegistration(t, "one", `{"spec":{"variables":null}}`)
	g.remove(t, "flux-system", "errors")
}

// authority: what a cluster's owner may not decide is refused with a reason, and changes nothing: the add-on is Ready without it.
func (g *generation) authority(t *testing.T) {
	ctx := t.Context()
	g.apply(t, `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: authority, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}]
  variables: {version: "*"}
  addons:
    - {name: gen-auth, helmRelease: {interval: 1h, chart: {spec: {chart: settings, version: "<< vars.version >>", sourceRef: {name: charts}}}, values: {color: blue}}}
`)
	soon(t, "it arrives", func() error {
		return errors.Join(wantData(ctx, g.one, "gen-auth", "gen-auth", "color", "blue"), g.addonOf(ctx, "one", "authority", "gen-auth", hubv1.AddonReady, ""))
	})
	for name, tc := range map[string]struct{ patch, want string }{
		"a variable that decides the chart": {`{"spec":{"variables":{"version":"9.9.9"}}}`, "no cluster may decide this"},
		"an override of the chart":          {`{"spec":{"overrides":[{"name":"gen-auth","helmRelease":{"chart":{"spec":{"version":"9.9.9"}}}}]}}`, "is for the set to decide"},
		"an exclusion":                      {`{"spec":{"overrides":[{"name":"gen-auth","exclude":true}]}}`, "does not let a cluster leave this add-on out"},
	} {
		g.patchRegistration(t, "one", tc.patch)
		soon(t, name+" is refused", func() error { return g.refused(ctx, "one", tc.want) })
		check(t, g.addonOf(ctx, "one", "authority", "gen-auth", hubv1.AddonReady, ""))
		check(t, wantData(ctx, g.one, "gen-auth", "gen-auth", "color", "blue"))
		g.patchRegistration(t, "one", `{"spec":{"overrides":null,"variables":null}}`)
		soon(t, "and forgotten", func() error { return g.refused(ctx, "one", "") })
	}
	g.remove(t, "flux-system", "authority")
}

// refused wants a registration to say what it refuses; nothing, if want is empty.
func (g *generation) refused(ctx context.Context, name, want string) error {
	reg := &hubv1.ClusterRegistration{}
	if err := g.Client.Get(ctx, client.ObjectKey{Namespace: "fleet", Name: name}, reg); err != nil {
		return err
	}
	c := status.Find(reg, hubv1.OverridesRefusedCondition)
	if (c == nil) != (want == "") || c != nil && !strings.Contains(c.Message, want) {
		return fmt.Errorf("the registration says %+v, want %q", c, want)
	}
	return nil
}

func (g *generation) fluxObjects(t *testing.T) {
	ctx := t.Context()
	_, err := g.git.Commit("fleet", map[string]string{"apps/release.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: x, namespace: default}\nspec: {}\n"})
	check(t, err)
	g.apply(t, `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: mistake, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {region: eu}}
  rollout: {strategy: AllAtOnce}
  sources: [{name: fleet, kind: GitRepository, spec: {url: $GIT, ref: {branch: main}}}]
  addons: [{name: gen-mistake, kustomization: {interval: 1h, path: ./apps, sourceRef: {name: fleet}}}]
`)
	soon(t, "the mistake is called by its name", func() error {
		list := &hubv1.AddonDeliveryList{}
		if err := g.Client.List(ctx, list, client.MatchingLabels{hubv1.AddonSetLabel: "mistake"}); err != nil || len(list.Items) != 1 {
			return fmt.Errorf("%d deliveries (%v)", len(list.Items), err)
		}
		return condition(ctx, g.Client, &list.Items[0], hubv1.ReadyCondition, metav1.ConditionFalse, hubv1.FluxObjectsInFolderReason)
	})
	soon(t, "and so is what to do", func() error { // Flux tries it again all the time
		return g.addonOf(ctx, "one", "mistake", "gen-mistake", hubv1.AddonFailed, "write it as an add-on of the AddonSet instead")
	})
	g.remove(t, "flux-system", "mistake")
}
