// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// TestAnotherClusterBehindAName: the kubeconfig of a registration is changed to one of another cluster. The old one keeps what it
// has, the new one gets its own, and nothing that Flux remembers of the one is done to the other.
func TestAnotherClusterBehindAName(t *testing.T) {
	ctx := t.Context()
	g := startGeneration(t, "hub-identity")
	_, err := g.git.Commit("fleet", map[string]string{"identity/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: idn-git, namespace: default}\ndata: {color: blue}\n"})
	check(t, err)
	g.apply(t, `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: identity, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {region: eu}}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}, {name: fleet, kind: GitRepository, spec: {url: $GIT, interval: 2s, ref: {branch: main}}}]
  addons:
    - {name: idn-chart, helmRelease: {interval: 2s, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: blue}}}
    - {name: idn-git, kustomization: {interval: 2s, path: ./identity, sourceRef: {name: fleet}}}
`)
	soon(t, "the first cluster has it all", func() error {
		return errors.Join(wantData(ctx, g.one, "idn-chart", "idn-chart", "color", "blue"), wantData(ctx, g.one, "default", "idn-git", "color", "blue"))
	})
	kubeconfig, err := g.two.Kubeconfig("kubernetes-admin", "system:masters")
	check(t, err)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"stringData":{"value":%q}}`, kubeconfig))
	check(t, g.Client.Patch(ctx, secret("fleet", "one", nil), patch))

	soon(t, "the second cluster has it all", func() error {
		return errors.Join(wantData(ctx, g.two, "idn-chart", "idn-chart", "color", "blue"), wantData(ctx, g.two, "default", "idn-git", "color", "blue"))
	})
	soon(t, "an event says so", func() error { return wantEvent(ctx, g.hub, "one", "another cluster is behind this registration") })
	soon(t, "all is Ready", func() error {
		return errors.Join(g.addonOf(ctx, "one", "identity", "idn-chart", hubv1.AddonReady, ""), g.addonOf(ctx, "one", "identity", "idn-git", hubv1.AddonReady, ""))
	})
	still := func() error {
		return errors.Join(wantData(ctx, g.one, "idn-chart", "idn-chart", "color", "blue"), wantData(ctx, g.one, "default", "idn-git", "color", "blue"))
	}
	check(t, still())

	g.remove(t, "flux-system", "identity")
	soon(t, "the new one is cleaned", func() error {
		return errors.Join(wantNoConfigMap(ctx, g.two, "idn-chart", "idn-chart"), wantNoConfigMap(ctx, g.two, "default", "idn-git"))
	})
	check(t, still())
	// The clusters are shared with other tests.
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "idn-chart"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "idn-git"}},
	} {
		check(t, g.one.Client.Delete(ctx, obj))
	}
}
