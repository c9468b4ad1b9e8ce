// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// TestCreate: `chandler create` applies what it says, says what became of it, and writes nothing if any of it is wrong. The
// people of a team may do their work in its hub namespace, and nothing that reaches further.
func TestCreate(t *testing.T) {
	beside(t)
	h := startHub(t, hubOptions{name: "hub-create"})
	ctx := t.Context()
	namespace(t, h.Client, "fleet")
	check(t, h.Client.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}},
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"chandler.dev/register-secrets":"true"}}}`))))
	create := func(args string) (string, string, int) {
		t.Helper()
		return chandler(t, append(append([]string{"create"}, strings.Fields(args)...), "--kubeconfig", h.KubeconfigFile())...)
	}
	says := func(args, want string) {
		t.Helper()
		if out, errs, code := create(args); code != 0 || out != want {
			t.Errorf("create %s ends with %d: %s\n%swant\n%s", args, code, errs, out, want)
		}
	}
	fails := func(args, want string) {
		t.Helper()
		if out, errs, code := create(args); code != 1 || !strings.Contains(errs, want) || out != "" {
			t.Errorf("create %s ends with %d, prints %q, and says %s\nwant %s", args, code, out, errs, want)
		}
	}
	team := "team shop -l env=staging --cluster-namespace shop-apps --group shop-devs --allow-source https://git.example.org/shop/*"
	const made = "namespace/shop WHAT\nrole.rbac.authorization.k8s.io/chandler-team WHAT\nrolebinding.rbac.authorization.k8s.io/chandler-team WHAT\nteam.chandler.dev/shop TEAM\n"
	texts := func(what, team string) string {
		return strings.NewReplacer("WHAT", what, "TEAM", team).Replace(made)
	}
	// The last object is wrong in a way that only the API server tells: the others are not made.
	fails(strings.Replace(team, "--cluster-namespace shop-apps", "--source-kind Svn", 1), "spec.sources.kinds")
	if err := h.Client.Get(ctx, client.ObjectKey{Name: "shop"}, unstructuredOf("v1", "Namespace")); !apierrors.IsNotFound(err) {
		t.Fatalf("a namespace was made for a Team that is wrong: %v", err)
	}
	says(team, texts("created", "created"))
	says(team, texts("unchanged", "unchanged"))
	fails(team+" --pod-security restricted", "team.chandler.dev/shop exists, and differs in spec.namespaces: choose another name, or write --overwrite to change it")
	says(team+" --pod-security restricted --overwrite", texts("unchanged", "configured"))
	fails("team web -l env=staging --team-namespace fleet --group shop-devs", "namespace fleet registers clusters, so admin kubeconfigs lie there")

	// The hub's Teams decide what a set may do, before it is written.
	fails("set web -n shop --all --from-git https://git.example.org/other/web --branch main", `AddonSet shop/web: sources[web].spec.url: `)
	says("set web -n shop --all --from-git https://git.example.org/shop/web --branch main", "addonset.chandler.dev/web created\n")
	// Two people, who do not know of each other, and one name: what clusters have of the one would leave them.
	says("set monitoring --selector env=prod --from-helm https://charts.example.org/prometheus", "addonset.chandler.dev/monitoring created\n")
	fails("set monitoring --selector env=dev --from-helm https://charts.example.org/grafana", "addonset.chandler.dev/monitoring exists, and differs in spec.addons, spec.clusterSelector, spec.sources: ")
	fails("set x -n nowhere --all --from-oci oci://registry.example.org/x --tag latest", `"nowhere"`)

	// Somebody else's field is not taken by surprise.
	theirs := unstructuredOf("chandler.dev/v1alpha1", "AddonSet")
	theirs.SetNamespace("flux-system")
	theirs.SetName("monitoring")
	check(t, h.Client.Patch(ctx, theirs, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"clusterSelector":{"matchLabels":{"env":"theirs"}}}}`)), client.FieldOwner("gitops")))
	const again = "set monitoring --selector env=prod --from-helm https://charts.example.org/prometheus"
	fails(again, "addonset.chandler.dev/monitoring: another user or tool has set some of its fields: ")
	says(again+" --force-conflicts", "addonset.chandler.dev/monitoring configured\n")

	config := rest.CopyConfig(h.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "ann", Groups: []string{"shop-devs"}}
	ann, err := client.New(config, client.Options{Scheme: scheme, Mapper: h.Client.RESTMapper()})
	check(t, err)
	for _, tc := range []struct {
		kind     schema.GroupVersionKind
		at, spec string
		may      bool
	}{
		{hubv1.GroupVersion.WithKind("AddonSet"), "shop", `{"selectAll":true,"addons":[{"name":"a","manifests":{"objects":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]}}]}`, true},
		{schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "HelmRepository"}, "shop", `{"url":"https://git.example.org/shop/charts"}`, true},
		{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "shop", "", true},
		{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "flux-system", "", false},
		{schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}, "shop", `{"interval":"1m","chartRef":{"kind":"OCIRepository","name":"x"}}`, false},
		{schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}, "shop", `{"interval":"1m","prune":true,"sourceRef":{"kind":"GitRepository","name":"x"}}`, false},
		{hubv1.GroupVersion.WithKind("ClusterRegistration"), "shop", `{"kubeConfig":{"secretRef":{"name":"x"}}}`, false},
		{hubv1.GroupVersion.WithKind("Team"), "flux-system", `{"selectAll":true,"namespaces":[{"name":"x"}]}`, false},
		{schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}, "shop", "", false},
		{schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "shop", "", false},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		check(t, u.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"X","spec":`+map[bool]string{true: "null", false: tc.spec}[tc.spec == ""]+`}`)))
		u.SetGroupVersionKind(tc.kind)
		u.SetNamespace(tc.at)
		u.SetName("of-ann")
		if tc.kind.Kind == "RoleBinding" {
			u.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
		}
		if tc.spec == "" {
			delete(u.Object, "spec")
		}
		err := ann.Create(ctx, u, &client.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if tc.may && err != nil || !tc.may && !apierrors.IsForbidden(err) {
			t.Errorf("ann makes a %s in %s: %v", tc.kind.Kind, tc.at, err)
		}
	}
}

func unstructuredOf(apiVersion, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	return u
}
