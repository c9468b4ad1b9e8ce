// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// teamed is a fleet of two clusters, of which one is a team's.
type teamed struct{ *generation }

const shopTeam = `
apiVersion: chandler.dev/v1alpha1
kind: Team
metadata: {name: shop, namespace: flux-system}
spec:
  hubNamespaces: [shop-team]
  clusterSelector: {matchLabels: {region: eu}}
  namespaces:
    - name: shop-apps
      podSecurity: restricted
      labels: {cost-center: "42"}
      resourceQuota: {hard: {services.loadbalancers: "0"}}
      limitRange: {limits: [{type: Container, default: {cpu: 100m}}]}
      networkPolicy: Isolated
  sources: {allow: ["$GIT", "$CHARTS"]}
`

// shopSet is an AddonSet of the team, with more add-ons.
func shopSet(name, addons string) string {
	return fmt.Sprintf(`
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: %s, namespace: shop-team}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  sources:
    - {name: fleet, kind: GitRepository, spec: {interval: 10s, url: $GIT, ref: {branch: main}}}
    - {name: charts, kind: HelmRepository, spec: {url: $CHARTS}}
  addons:
%s`, name, addons)
}

// TestTeams shows that a team's own add-ons reach its clusters and no others, with a token of its own, that they are
// confined to its namespaces there, by the hub, by Flux or by the cluster, and that all of it leaves cleanly.
func TestTeams(t *testing.T) {
	beside(t)
	g := &teamed{startGeneration(t, "hub-teams")}
	namespace(t, g.Client, "shop-team")
	g.commit(t, "b")
	t.Run("a team arrives", g.arrives)
	t.Run("its token", g.token)
	t.Run("a token grows old", g.renewal)
	t.Run("what the hub refuses", g.refusals)
	t.Run("what the cluster refuses", g.denials)
	t.Run("it loses a cluster", g.loses)
	t.Run("it leaves", g.leaves)
}

// commit has the team commit its folders, with a value of its ConfigMap.
func (g *teamed) commit(t *testing.T, a string) {
	t.Helper()
	_, err := g.git.Commit("fleet", map[string]string{
		"shop/cm.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-git, namespace: shop-apps}\ndata: {a: " + a + "}\n",
		"elsewhere/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-shop, namespace: default}\ndata: {a: b}\n",
		"role/role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: from-shop}\n" +
			"rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n",
		"flux/child.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: from-shop, namespace: shop-apps}\n" +
			"spec: {interval: 1m, prune: true, path: ./, sourceRef: {kind: GitRepository, name: fleet, namespace: flux-system}}\n",
		"escalates/binding.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: from-shop, namespace: shop-apps}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
			"subjects: [{kind: User, name: mallory, apiGroup: rbac.authorization.k8s.io}]\n",
	})
	check(t, err)
}

func (g *teamed) arrives(t *testing.T) {
	ctx := t.Context()
	g.apply(t, shopTeam)
	soon(t, "the team has its namespace", func() error {
		if err := g.placed(ctx, g.one); err != nil {
			team := shop()
			return errors.Join(err, g.Client.Get(ctx, client.ObjectKeyFromObject(team), team), fmt.Errorf("the Team says %+v", team.Status))
		}
		return nil
	})
	g.apply(t, shopSet("shop", `
    - {name: web, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: "of << cluster.name >>"}}}
    - {name: conf, kustomization: {interval: 1h, path: ./shop, sourceRef: {name: fleet}}}
`))
	soon(t, "its chart is in its namespace", func() error { return wantData(ctx, g.one, "shop-apps", "web", "color", "of one") })
	soon(t, "its folder is applied", func() error { return wantData(ctx, g.one, "shop-apps", "from-git", "a", "b") })
	soon(t, "the set is Ready", func() error {
		return expect.Delivered(ctx, g.Client, addonSet("shop-team", "shop"), types.NamespacedName{Namespace: "fleet", Name: "one"})
	})
	soon(t, "the Team is Ready", func() error {
		return condition(ctx, g.Client, shop(), hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason)
	})
	check(t, wantNoNamespace(ctx, g.two, "shop-apps"))
	check(t, wantNoNamespace(ctx, g.two, "chandler-shop"))
}

func shop() *hubv1.Team {
	return &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop"}}
}

// placed wants what the Team says to be on a cluster.
func (g *teamed) placed(ctx context.Context, c *localfleet.Cluster) error {
	ns := &corev1.Namespace{}
	if err := c.Client.Get(ctx, types.NamespacedName{Name: "shop-apps"}, ns); err != nil {
		return err
	}
	if ns.Labels["pod-security.kubernetes.io/enforce"] != "restricted" || ns.Labels["cost-center"] != "42" {
		return fmt.Errorf("its labels are %v", ns.Labels)
	}
	quotas, limits, bindings := &corev1.ResourceQuotaList{}, &corev1.LimitRangeList{}, &rbacv1.RoleBindingList{}
	for _, list := range []client.ObjectList{quotas, limits, bindings} {
		if err := c.Client.List(ctx, list, client.InNamespace("shop-apps")); err != nil {
			return err
		}
	}
	if len(quotas.Items) != 1 || len(limits.Items) != 1 || len(bindings.Items) != 1 || bindings.Items[0].RoleRef.Name != "admin" {
		return fmt.Errorf("%d quotas, %d limits, bindings %v", len(quotas.Items), len(limits.Items), bindings.Items)
	}
	return nil
}

func wantNoNamespace(ctx context.Context, c *localfleet.Cluster, name string) error {
	return wantGone(ctx, c.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// kubeconfigs returns those of clusters in the team's namespace on the hub.
func (g *teamed) kubeconfigs(ctx context.Context) ([]corev1.Secret, error) {
	list := &corev1.SecretList{}
	err := g.Client.List(ctx, list, client.InNamespace("shop-team"), client.HasLabels{hubv1.CopyLabel})
	return list.Items, err
}

// member returns a client with the credential that a member of the team finds in its namespace on the hub.
func (g *teamed) member(t *testing.T) client.Client {
	t.Helper()
	copies, err := g.kubeconfigs(t.Context())
	check(t, err)
	if len(copies) != 1 {
		t.Fatalf("%d kubeconfigs in the team's namespace", len(copies))
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(copies[0].Data["value"])
	check(t, err)
	if config.BearerToken == "" || len(config.CertData)+len(config.KeyData) > 0 || config.Username != "" {
		t.Fatal("the team's kubeconfig has another credential than a token")
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	check(t, err)
	return c
}

// token wants the team's token to be good for its namespace and for nothing else.
func (g *teamed) token(t *testing.T) {
	ctx, m := t.Context(), g.member(t)
	check(t, m.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-apps", Name: "by-hand"}}))
	check(t, m.List(ctx, &corev1.SecretList{}, client.InNamespace("shop-apps")))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "chandler-shop", Name: "shop"}}
	for what, try := range map[string]func() error{
		"list Secrets of kube-system": func() error { return m.List(ctx, &corev1.SecretList{}, client.InNamespace("kube-system")) },
		"list Secrets everywhere":     func() error { return m.List(ctx, &corev1.SecretList{}) },
		"make a namespace": func() error {
			return m.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-more"}})
		},
		"write into another namespace": func() error {
			return m.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}})
		},
		"make a ClusterRole": func() error { return m.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "x"}}) },
		"change its own namespace": func() error {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-apps"}}
			return m.Patch(ctx, ns, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`)))
		},
		"change its quota": func() error {
			return m.DeleteAllOf(ctx, &corev1.ResourceQuota{}, client.InNamespace("shop-apps"))
		},
		"ask for a token that outlives the hub's": func() error {
			return m.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
		},
		"give itself more": func() error {
			return m.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-apps", Name: "x"},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}})
		},
	} {
		if err := try(); !apierrors.IsForbidden(err) {
			t.Errorf("the team's token may %s: %v", what, err)
		}
	}
}

// renewal moves the clock by what the copy says of its token: a third of its time is over. Flux goes on with the new one.
func (g *teamed) renewal(t *testing.T) {
	ctx := t.Context()
	old, err := g.kubeconfigs(ctx)
	check(t, err)
	config := old[0].Data["value"]
	for _, a := range []string{hubv1.TokenIssuedAnnotation, hubv1.TokenExpiryAnnotation} {
		at, err := time.Parse(time.RFC3339, old[0].Annotations[a])
		check(t, err)
		old[0].Annotations[a] = at.Add(-9 * time.Hour).Format(time.RFC3339)
	}
	check(t, g.Client.Update(ctx, &old[0]))
	soon(t, "the hub asks for another token", func() error {
		now, err := g.kubeconfigs(ctx)
		if err != nil {
			return err
		}
		if len(now) != 1 || bytes.Equal(now[0].Data["value"], config) {
			return fmt.Errorf("the kubeconfig is as it was, with %v", now[0].Annotations)
		}
		expires, err := time.Parse(time.RFC3339, now[0].Annotations[hubv1.TokenExpiryAnnotation])
		if left := time.Until(expires); err != nil || left < 23*time.Hour || left > 25*time.Hour {
			return fmt.Errorf("the new token has %s left: %w", left, err)
		}
		return nil
	})
	check(t, g.member(t).List(ctx, &corev1.SecretList{}, client.InNamespace("shop-apps")))
	g.commit(t, "c")
	soon(t, "Flux goes on with it", func() error { return wantData(ctx, g.one, "shop-apps", "from-git", "a", "c") })
}

// refusals are what files tell: the set is Stalled, and names the Team's rule.
func (g *teamed) refusals(t *testing.T) {
	const chart = "chart: {spec: {chart: settings, sourceRef: {name: charts}}}"
	for name, tc := range map[string]struct{ addon, want string }{
		"create-namespace":  {"{name: x, helmRelease: {" + chart + ", install: {createNamespace: true}}}", "createNamespace"},
		"other-namespace":   {"{name: x, helmRelease: {" + chart + ", targetNamespace: kube-system}}", "targetNamespace"},
		"records-elsewhere": {"{name: x, helmRelease: {" + chart + ", storageNamespace: default}}", "storageNamespace"},
		"crds":              {"{name: x, helmRelease: {" + chart + ", install: {crds: CreateReplace}}}", "crds"},
		"impersonates":      {"{name: x, kustomization: {path: ./shop, sourceRef: {name: fleet}, serviceAccountName: admin}}", "serviceAccountName"},
		"others-source": {"{name: x, kustomization: {path: ./shop, sourceRef: {kind: GitRepository, name: fleet, namespace: flux-system}}}",
			"sourceRef.namespace"},
		"own-kubeconfig":  {"{name: x, kustomization: {path: ./shop, sourceRef: {name: fleet}, kubeConfig: {secretRef: {name: x}}}}", "kubeConfig"},
		"cluster-scoped":  {"{name: x, manifests: {objects: [{apiVersion: v1, kind: Namespace, metadata: {name: x}}]}}", "Namespace"},
		"manifests-there": {"{name: x, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: default}}]}}", "namespace"},
		"origin":          {"{name: x, helmRelease: {" + chart + ", values: {x: \"<< origin.metadata.name >>\"}}}", "origin"},
	} {
		t.Run(name, func(t *testing.T) {
			g.apply(t, shopSet(name, "    - "+tc.addon+"\n"))
			soon(t, "the set is refused", func() error {
				set := addonSet("shop-team", name)
				if err := condition(t.Context(), g.Client, set, hubv1.StalledCondition, metav1.ConditionTrue, ""); err != nil {
					return err
				}
				if m := conditionOf(set, hubv1.StalledCondition).Message; !strings.Contains(m, tc.want) || !strings.Contains(m, "Team") && tc.want != "kubeConfig" && tc.want != "sourceRef.namespace" {
					return fmt.Errorf("it says %q", m)
				}
				return nil
			})
			g.remove(t, "shop-team", name)
		})
	}
	t.Run("priority and foreign source", func(t *testing.T) {
		g.apply(t, strings.Replace(shopSet("greedy", "    - {name: x, kustomization: {path: ./shop, sourceRef: {name: fleet}}}\n"), "selectAll: true", "selectAll: true\n  priority: 5", 1))
		soon(t, "the priority is refused", func() error {
			return stalledWith(t.Context(), g.Client, addonSet("shop-team", "greedy"), "priority")
		})
		g.apply(t, strings.Replace(shopSet("greedy", "    - {name: x, kustomization: {path: ./shop, sourceRef: {name: fleet}}}\n"), "url: $GIT", "url: https://git.example.org/x", 1))
		soon(t, "the URL is refused", func() error {
			return stalledWith(t.Context(), g.Client, addonSet("shop-team", "greedy"), "https://git.example.org/x")
		})
		g.remove(t, "shop-team", "greedy")
	})
}

func stalledWith(ctx context.Context, c client.Client, set *hubv1.AddonSet, want string) error {
	if err := condition(ctx, c, set, hubv1.StalledCondition, metav1.ConditionTrue, ""); err != nil {
		return err
	}
	if m := conditionOf(set, hubv1.StalledCondition).Message; !strings.Contains(m, want) {
		return fmt.Errorf("it says %q", m)
	}
	return nil
}

// denials are what only the cluster and Flux can tell: the add-on fails, and says why.
func (g *teamed) denials(t *testing.T) {
	ctx := t.Context()
	check(t, g.charts.Publish(os.DirFS("testdata"), "charts/hooked"))
	check(t, g.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "others"}, Data: map[string]string{"a": "b"}}))
	folder := func(path, more string) string {
		return "kustomization: {interval: 1h, path: ./" + path + ", sourceRef: {name: fleet}" + more + "}"
	}
	chart := func(name, more string) string {
		return "helmRelease: {interval: 1h, chart: {spec: {chart: " + name + ", sourceRef: {name: charts}}}" + more + "}"
	}
	const others = "valuesFrom: [{kind: ConfigMap, name: others}]"
	cases := map[string]struct{ body, says string }{
		"elsewhere":   {folder("elsewhere", ""), `Team "shop" may not patch configmaps in namespace "default"`},
		"clusterrole": {folder("role", ""), `Team "shop" may not patch clusterroles.rbac.authorization.k8s.io at the cluster scope`},
		"escalation":  {folder("escalates", ""), `Team "shop" may not grant rights that it does not have`},
		"flux":        {folder("flux", ""), "the folder holds a Kustomization, which only Flux understands"},
		"hook":        {chart("hooked", ""), `Team "shop" may not delete configmaps in namespace "default"`},
		"substitute":  {folder("shop", ", postBuild: {substituteFrom: [{kind: ConfigMap, name: others}]}"), `substitute from 'ConfigMap/others'`},
		"values":      {chart("settings", ", "+others), "could not resolve ConfigMap chart values reference 'shop-team/others'"},
	}
	var addons strings.Builder
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		fmt.Fprintf(&addons, "    - {name: %s, %s}\n", name, cases[name].body)
	}
	g.apply(t, shopSet("denied", addons.String()))
	for name, tc := range cases {
		soon(t, "add-on "+name+" fails", func() error { return g.addonOf(ctx, "one", "denied", name, hubv1.AddonFailed, tc.says) })
	}
	check(t, wantGone(ctx, g.one.Client, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "from-shop"}}))
	check(t, wantGone(ctx, g.one.Client, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-apps", Name: "from-shop"}}))
	check(t, wantNoConfigMap(ctx, g.one, "default", "from-shop"))
	check(t, wantNoConfigMap(ctx, g.one, "shop-apps", "values"))
	g.remove(t, "shop-team", "denied")
}

func (g *teamed) loses(t *testing.T) {
	ctx, m := t.Context(), g.member(t)
	check(t, g.Client.Patch(ctx, secret("fleet", "one", nil), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"region":"asia"}}}`))))
	soon(t, "its add-ons are gone", func() error {
		if err := approveHeld(t.Context(), g.Client); err != nil {
			return err
		}
		return errors.Join(wantNoConfigMap(ctx, g.one, "shop-apps", "web"), wantNoConfigMap(ctx, g.one, "shop-apps", "from-git"))
	})
	soon(t, "its rights are gone", func() error {
		if err := approveHeld(t.Context(), g.Client); err != nil {
			return err
		}
		return errors.Join(wantNoNamespace(ctx, g.one, "chandler-shop"),
			wantGone(ctx, g.one.Client, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-apps", Name: "chandler-shop-admin"}}))
	})
	soon(t, "its token is worth nothing", func() error {
		if err := m.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("shop-apps")); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("with the token: %v", err)
		}
		return nil
	})
	soon(t, "its credential is gone", func() error {
		if err := approveHeld(t.Context(), g.Client); err != nil {
			return err
		}
		copies, err := g.kubeconfigs(ctx)
		if err == nil && len(copies) > 0 {
			err = fmt.Errorf("there are %d", len(copies))
		}
		return err
	})
	_, err := configMap(ctx, g.one, "shop-apps", "by-hand")
	check(t, err)
	check(t, g.Client.Patch(ctx, secret("fleet", "one", nil), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"region":"eu"}}}`))))
	soon(t, "it has the cluster again", func() error {
		return errors.Join(g.placed(ctx, g.one), wantData(ctx, g.one, "shop-apps", "web", "color", "of one"))
	})
}

// leaves deletes the Team.
func (g *teamed) leaves(t *testing.T) {
	ctx := t.Context()
	check(t, g.Client.Delete(ctx, shop()))
	soon(t, "the Team is gone", func() error { return errors.Join(approveHeld(t.Context(), g.Client), wantGone(ctx, g.Client, shop())) })
	check(t, errors.Join(wantNoConfigMap(ctx, g.one, "shop-apps", "web"), wantNoNamespace(ctx, g.one, "chandler-shop")))
	_, err := configMap(ctx, g.one, "shop-apps", "by-hand")
	check(t, err)
	g.remove(t, "shop-team", "shop")
	copies, err := g.kubeconfigs(ctx)
	check(t, err)
	if len(copies) > 0 {
		t.Errorf("%d kubeconfigs are left", len(copies))
	}
}
