// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/examples"
)

// teamSources has jane write sources into the hub namespaces of Teams, for which the policy chandler-teams says what the hub
// says of spec.sources. The Teams are in chandler-system, which is no platform namespace of this hub: so the policy alone decides.
func (p *guarded) teamSources(t *testing.T) {
	namespace(t, p.jane, "chandler-system")
	t.Run("URLs", p.teamURLs)
	t.Run("rules", p.teamRules)
	check(t, p.jane.DeleteAllOf(t.Context(), &hubv1.Team{}, client.InNamespace("chandler-system")))
}

// sourceTeam makes a Team, with its hub namespace, and waits until the policy knows it.
func (p *guarded) sourceTeam(t *testing.T, name, sources string) {
	t.Helper()
	namespace(t, p.jane, name)
	apply(t, p.jane, fmt.Sprintf("apiVersion: chandler.dev/v1alpha1\nkind: Team\nmetadata: {namespace: chandler-system, name: %s}\n"+
		"spec: {selectAll: true, namespaces: [{name: apps}], sources: %s}\n", name, sources))
	soon(t, "the policy knows Team "+name, func() error {
		if err := p.makes(t.Context(), "Bucket", name, "{endpoint: nowhere.invalid, bucketName: b, interval: 1m}"); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a bucket from anywhere: %w", err)
		}
		return nil
	})
}

// makes has jane make a source, and returns what the API server says. Nothing is stored.
func (p *guarded) makes(ctx context.Context, kind, namespace, spec string) error {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte("spec: "+spec), &u.Object); err != nil {
		return err
	}
	u.SetAPIVersion(sourceAPI)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName("app")
	return client.NewDryRunClient(p.jane).Create(ctx, u)
}

// teamURLs asks the policy what the hub is asked in TestAllows.
func (p *guarded) teamURLs(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "internal", "fluxspec", "testdata", "team-urls.yaml"))
	check(t, err)
	var cases []struct {
		Pattern, URL string
		Allowed      bool
	}
	check(t, yaml.UnmarshalStrict(raw, &cases))
	teams := map[string]string{}
	for _, tc := range cases {
		name, ok := teams[tc.Pattern]
		if !ok {
			name = fmt.Sprintf("urls-%d", len(teams))
			teams[tc.Pattern] = name
			p.sourceTeam(t, name, fmt.Sprintf("{allow: ['https://nowhere.example.org/*', %q]}", tc.Pattern))
		}
		kind, spec := "GitRepository", map[string]any{"url": tc.URL, "interval": "1m"}
		if strings.HasPrefix(tc.URL, "oci:") {
			kind = "OCIRepository"
		}
		raw, err := yaml.Marshal(spec)
		check(t, err)
		err = p.makes(t.Context(), kind, name, "\n  "+strings.ReplaceAll(string(raw), "\n", "\n  "))
		switch {
		case tc.Allowed && err != nil:
			t.Errorf("pattern %q, URL %q: %v", tc.Pattern, tc.URL, err)
		case !tc.Allowed && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err): // Flux's own schema refuses some
			t.Errorf("pattern %q, URL %q: jane is told %v, want a refusal", tc.Pattern, tc.URL, err)
		}
	}
}

func (p *guarded) teamRules(t *testing.T) {
	p.sourceTeam(t, "allows", "{allow: ['https://git.example.org/dev/*', 'https://s3.example.org/dev-*']}")
	p.sourceTeam(t, "kinds", "{kinds: [GitRepository, OCIRepository]}")
	p.sourceTeam(t, "signed", "{requireVerification: true}")
	const (
		git    = "{url: 'https://git.example.org/dev/app', interval: 1m"
		charts = "interval: 1m, chart: web, sourceRef: {kind: HelmRepository, name: charts}"
		verify = ", verify: {secretRef: {name: keys}, mode: HEAD}"
	)
	cases := []struct{ kind, team, spec, denied string }{
		{"GitRepository", "allows", git + "}", ""},
		{"GitRepository", "default", "{url: 'https://evil.example/x', interval: 1m}", ""}, // no Team's
		{"GitRepository", "allows", "{url: 'https://evil.example/x', interval: 1m}", "GitRepository allows/app is not for Team chandler-system/allows, which allows sources at " +
			"https://git.example.org/dev/*, https://s3.example.org/dev-*, and this is at https://evil.example/x; ask who keeps the Team about its spec.sources.allow"},
		{"GitRepository", "allows", "{url: 'https://git.example.org/dev/" + strings.Repeat("a", 1<<16) + "', interval: 1m}", "and this is at https://git.example.org/dev/aaa"},
		{"GitRepository", "allows", git + ", recurseSubmodules: true}", "a submodule may be anywhere (spec.recurseSubmodules); ask who keeps the Team about its spec.sources.allow"},
		{"GitRepository", "allows", git + ", proxySecretRef: {name: x}}", "and spec.proxySecretRef may send Flux anywhere; ask who keeps the Team about its spec.sources.allow"},
		{"GitRepository", "default", git + ", proxySecretRef: {name: x}}", ""},
		{"GitRepository", "allows", git + ", include: [{repository: {name: x}}]}", "what spec.include names is none of a set"},
		{"HelmRepository", "allows", "{url: 'https://evil.example/x', interval: 1m}", "HelmRepository allows/app is not for Team"},
		{"OCIRepository", "allows", "{url: 'oci://git.example.org/dev/app', interval: 1m}", "and this is at oci://git.example.org/dev/app"},
		{"Bucket", "allows", "{endpoint: s3.example.org, bucketName: dev-a, interval: 1m}", ""},
		{"Bucket", "allows", "{endpoint: s3.example.org, bucketName: dev-a, provider: gcp, interval: 1m}", "and this is at https://storage.googleapis.com/dev-a"},
		{"Bucket", "allows", "{endpoint: s3.example.org, bucketName: ops, interval: 1m}", "and this is at https://s3.example.org/ops"},
		{"Bucket", "allows", "{endpoint: s3.example.org, bucketName: dev-a, insecure: true, interval: 1m}", "and this is at http://s3.example.org/dev-a"},
		{"Bucket", "allows", "{endpoint: 'https://s3.example.org@evil.example/', bucketName: dev-a, interval: 1m}", "and this is at https://s3.example.org@evil.example/dev-a"},
		{"HelmChart", "allows", "{" + charts + "}", ""},
		{"GitRepository", "kinds", git + "}", ""},
		{"HelmRepository", "kinds", "{url: 'https://evil.example/x', interval: 1m}", "which allows sources of the kinds GitRepository, OCIRepository; ask who keeps the Team about its spec.sources.kinds"},
		{"HelmChart", "kinds", "{" + charts + "}", ""},
		{"GitRepository", "signed", git + verify + "}", ""},
		{"GitRepository", "signed", git + "}", "which wants every source to verify a signature: spec.verify is missing; ask who keeps the Team about its spec.sources.requireVerification"},
		{"Bucket", "signed", "{endpoint: s3.example.org, bucketName: b, interval: 1m}", "a Bucket has none"},
		{"HelmRepository", "signed", "{url: 'oci://x.example/y', type: oci, interval: 1m}", ""},
		{"HelmRepository", "signed", "{url: 'https://x.example/y', interval: 1m}", "Flux verifies charts of type oci only"},
		{"HelmChart", "signed", "{" + charts + "}", "spec.verify is missing"},
		{"HelmChart", "signed", "{" + charts + ", verify: {provider: cosign}}", ""},
	}
	for _, tc := range cases {
		err := p.makes(t.Context(), tc.kind, tc.team, tc.spec)
		if denied := apierrors.IsForbidden(err) && strings.Contains(err.Error(), tc.denied); tc.denied == "" && err != nil || tc.denied != "" && !denied {
			t.Errorf("%s in %s, %.120s: jane is told %v, want %q", tc.kind, tc.team, tc.spec, err, tc.denied)
		}
	}
	p.oldSource(t)
}

const polTeam = `
apiVersion: chandler.dev/v1alpha1
kind: Team
metadata: {name: pol-shop, namespace: flux-system}
spec:
  selectAll: true
  namespaces: [{name: pol-shop-apps}]
  sources: {allow: ["$URL"], kinds: [HelmRepository], requireVerification: $VERIFY}
`

const polTeamSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: pol-shop, namespace: pol-shop}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  sources: $SOURCES
  addons: [$ADDONS{name: pol-shop-plain, manifests: {interval: 1m, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: pol-shop-plain}, data: {color: blue}}]}}]
`

// teamDelivers has a Team's set delivered under the policy. The hub makes the sources of its own chart, of which plain
// manifests are made, where the Team allows others only, and where it wants signatures, which that has none of.
func (p *guarded) teamDelivers(t *testing.T) {
	ctx := t.Context()
	namespace(t, p.jane, "pol-shop")
	says := func(verify string) {
		apply(t, p.jane, strings.NewReplacer("$URL", p.charts.URL(), "$VERIFY", verify).Replace(polTeam))
	}
	says("true")
	apply(t, p.jane, strings.NewReplacer("$SOURCES", "[]", "$ADDONS", "").Replace(polTeamSet))
	soon(t, "the team's plain manifests arrive", func() error { return wantData(ctx, p.one, "pol-shop-apps", "pol-shop-plain", "color", "blue") })
	says("false")
	apply(t, p.jane, strings.NewReplacer("$SOURCES", "[{name: charts, kind: HelmRepository, spec: {url: '"+p.charts.URL()+"', interval: 1m}}]",
		"$ADDONS", "{name: web, helmRelease: {interval: 1m, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: red}}}, ").Replace(polTeamSet))
	soon(t, "the team's chart arrives", func() error { return wantData(ctx, p.one, "pol-shop-apps", "web", "color", "red") })
	set, team := addonSet("pol-shop", "pol-shop"), &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "pol-shop"}}
	check(t, p.jane.Delete(ctx, set))
	soon(t, "the set is gone", func() error { return errors.Join(approveHeld(t.Context(), p.Client), wantGone(ctx, p.Client, set)) })
	check(t, p.jane.Delete(ctx, team))
	soon(t, "the Team is gone", func() error { return errors.Join(approveHeld(t.Context(), p.Client), wantGone(ctx, p.Client, team)) })
}

// oldSource: a source from before the Team said anything may be suspended and labelled, but its spec is the Team's business.
func (p *guarded) oldSource(t *testing.T) {
	old := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": sourceAPI, "kind": "GitRepository", "metadata": map[string]any{"namespace": "later", "name": "old"},
		"spec": map[string]any{"url": "https://evil.example/x", "interval": "1m", "suspend": true},
	}}
	namespace(t, p.jane, "later")
	check(t, p.jane.Create(t.Context(), old))
	p.sourceTeam(t, "later", "{allow: ['https://git.example.org/later/*']}")
	check(t, patched(old, `{"metadata":{"labels":{"a":"b"}}}`)(t.Context(), p.jane))
	if err := patched(old, `{"spec":{"interval":"2m"}}`)(t.Context(), p.jane); !apierrors.IsForbidden(err) {
		t.Errorf("jane changes a source that is not the Team's, and is told %v", err)
	}
	check(t, patched(old, `{"spec":{"interval":"3m"}}`)(t.Context(), p.glass))
	check(t, p.jane.Delete(t.Context(), old))
}

// fluxImages applies the example that says which images Flux's Pods may run.
func (p *guarded) fluxImages(t *testing.T) {
	text, err := examples.Read("policies/flux-images.yaml", nil)
	check(t, err)
	apply(t, p.jane, text)
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	makes := func(namespace, image string) error {
		return client.NewDryRunClient(p.jane).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "flux"},
			Spec: corev1.PodSpec{
				Containers:     []corev1.Container{{Name: "manager", Image: "registry.example.org/fluxcd/source-controller" + digest}},
				InitContainers: []corev1.Container{{Name: "first", Image: image}},
			}})
	}
	soon(t, "the API server has taken notice", func() error {
		err := makes("flux-system", "evil.example/fluxcd/x"+digest)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "Pod flux-system/flux has image evil.example/fluxcd/x") {
			return fmt.Errorf("an image from elsewhere: %w", err)
		}
		return nil
	})
	for image, good := range map[string]bool{
		"registry.example.org/fluxcd/a" + digest:                    true,
		"registry.example.org/fluxcd/a:v1.2.3" + digest:             true,
		"registry.example.org/fluxcd/a:v1.2.3":                      false,
		"registry.example.org/fluxcd/a@sha256:0123":                 false,
		"registry.example.org.evil.example/fluxcd/a" + digest:       false,
		"evil.example/registry.example.org/fluxcd/a" + digest:       false,
		"registry.example.org/fluxcd-mirror/source-ctrl" + digest:   false,
		"registry.example.org/fluxcd/a" + digest + "@evil.example/": false,
	} {
		if err := makes("flux-system", image); (err == nil) != good || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("image %s: %v", image, err)
		}
	}
	check(t, makes("default", "anything:latest"))
}
