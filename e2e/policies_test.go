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

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// Who is who. All but the hub that runs are in system:masters, so that it is the policies that stop somebody, and never RBAC. There
// is another hub than the one that the policies say, to show how one tells them.
const (
	hubUser    = "system:serviceaccount:platform:hub"
	breakGlass = "chandler.dev:break-glass"
	testAgent  = "policies-test"
)

// guarded is a hub under the policies, with real Flux controllers and garbage collection that are who they are in production.
type guarded struct {
	*hub
	one                 *localfleet.Cluster
	charts              *localfleet.ChartServer
	git                 *localfleet.GitServer
	jane, glass, itself client.Client
}

// TestPolicies runs a hub with Flux under the policies of config/policies: they are in nobody's way who has business with the
// generated objects, and in that of everybody else.
func TestPolicies(t *testing.T) {
	beside(t)
	p := startGuarded(t)
	step(t, "a hub delivers", p.delivers)
	step(t, "people are denied", p.denied)
	step(t, "people suspend, reconcile and edit what is theirs", p.allowed)
	step(t, "Git is people too", p.fromGit)
	step(t, "a team delivers", p.teamDelivers)
	step(t, "teams have the sources that they may have", p.teamSources)
	step(t, "Flux runs known images", p.fluxImages)
	step(t, "garbage is collected", p.collected)
	step(t, "a namespace goes", p.namespaceGoes)
	step(t, "everything is uninstalled", p.uninstalled)
}

func startGuarded(t *testing.T) *guarded {
	p := &guarded{one: workload(t, "workload-c")}
	p.hub = startHub(t, hubOptions{name: "hub-policies", noHub: true, args: []string{"--platform-namespaces=flux-system,team", "--removal-delay=1s",
		"--without-policies=false"}}) // it is Ready, since they are there
	p.jane, p.itself = p.client(t, "jane"), p.client(t, hubUser)
	// As docs/policies.md has her do it: kubectl --as=jane --as-group=chandler.dev:break-glass
	p.glass = p.client(t, "jane", func(c *rest.Config) {
		c.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"system:masters", breakGlass}}
	})
	p.install(t)
	p.controllerManager(t)
	check(t, p.StartFlux(t.Context(), localfleet.FluxOptions{}))
	p.start(t)
	p.charts, p.git = serve(t)
	return p
}

func (p *guarded) kubeconfig(t *testing.T, user string, groups ...string) []byte {
	t.Helper()
	raw, err := p.Kubeconfig(user, append([]string{"system:masters"}, groups...)...)
	check(t, err)
	return raw
}

func (p *guarded) client(t *testing.T, user string, more ...func(*rest.Config)) client.Client {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(p.kubeconfig(t, user))
	check(t, err)
	config.QPS, config.UserAgent = -1, testAgent
	for _, f := range more {
		f(config)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	check(t, err)
	return c
}

// install applies what kustomization.yaml lists, with the patch that it describes.
func (p *guarded) install(t *testing.T) {
	folder := filepath.Join("..", "config", "policies")
	raw, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	check(t, err)
	var k struct{ Resources []string }
	check(t, yaml.Unmarshal(raw, &k))
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	check(t, err)
	if len(k.Resources) != len(files)-1 {
		t.Errorf("kustomization.yaml lists %d files, and there are %d beside it", len(k.Resources), len(files)-1)
	}
	for _, name := range k.Resources {
		raw, err := os.ReadFile(filepath.Join(folder, name))
		check(t, err)
		for _, text := range strings.Split(string(raw), "\n---\n") {
			u := &unstructured.Unstructured{}
			check(t, yaml.Unmarshal([]byte(text), &u.Object))
			if u.GetKind() == "ValidatingAdmissionPolicy" {
				variables, _, err := unstructured.NestedSlice(u.Object, "spec", "variables")
				check(t, err)
				first := variables[0].(map[string]any)
				if first["name"] != "hubs" || first["expression"] != "['system:serviceaccount:chandler-system:chandler']" {
					t.Fatalf("the first variable of %s is %v, and people patch it by its number", u.GetName(), first)
				}
				first["expression"] = "['" + hubUser + "', '" + localfleet.HubUser + "']"
				check(t, unstructured.SetNestedSlice(u.Object, variables, "spec", "variables"))
			}
			check(t, p.Client.Create(t.Context(), u))
		}
	}
	forged := secret("default", "forged", nil)
	forged.Labels = map[string]string{hubv1.CopyLabel: "true"}
	soon(t, "the API server has taken notice", func() error {
		if err := p.jane.Create(t.Context(), forged.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a forged copy: %w", err)
		}
		return nil
	})
}

// controllerManager runs one whose controllers have ServiceAccounts of their own, as they have in any cluster of kubeadm.
func (p *guarded) controllerManager(t *testing.T) {
	t.Helper()
	check(t, p.StartControllerManager(t.Context(), "--use-service-account-credentials",
		"--controllers=namespace-controller,garbage-collector-controller,serviceaccount-controller,validatingadmissionpolicy-status-controller"))
}

const guardedSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: $NAME, namespace: $NAMESPACE}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS, interval: 1m}}, {name: fleet, kind: GitRepository, spec: {url: $GIT, ref: {branch: main}}}]
  addons:
    - {name: $NAME-chart, helmRelease: {interval: 1m, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: blue}}}
    - {name: $NAME-git, kustomization: {interval: 1m, path: ./$NAME, sourceRef: {name: fleet}}}
    - {name: $NAME-plain, manifests: {interval: 1m, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: $NAME-plain}, data: {color: << vars.color >>}}]}}
  variables: {color: blue}
`

// set has a person write an AddonSet, and waits until what it delivers is on the cluster.
func (p *guarded) set(t *testing.T, namespace, name string) {
	t.Helper()
	ctx := t.Context()
	_, err := p.git.Commit("fleet", map[string]string{name + "/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "-git, namespace: default}\ndata: {color: blue}\n"})
	check(t, err)
	apply(t, p.jane, strings.NewReplacer("$NAMESPACE", namespace, "$NAME", name, "$CHARTS", p.charts.URL(), "$GIT", p.git.URL("fleet")).Replace(guardedSet))
	soon(t, "the add-ons arrive", func() error {
		return errors.Join(wantData(ctx, p.one, name+"-chart", name+"-chart", "color", "blue"), wantData(ctx, p.one, "default", name+"-git", "color", "blue"),
			wantData(ctx, p.one, "default", name+"-plain", "color", "blue"))
	})
	soon(t, "the set is Healthy", func() error {
		return condition(ctx, p.Client, addonSet(namespace, name), hubv1.HealthyCondition, metav1.ConditionTrue, "")
	})
}

func (p *guarded) wantGone(ctx context.Context, name string) error {
	return errors.Join(wantNoConfigMap(ctx, p.one, name+"-chart", name+"-chart"), wantNoConfigMap(ctx, p.one, "default", name+"-git"), wantNoConfigMap(ctx, p.one, "default", name+"-plain"))
}

func (p *guarded) delivers(t *testing.T) {
	ctx := t.Context()
	namespace(t, p.jane, "fleet")
	register(t, p.jane, "fleet", "one", p.one, nil)
	p.set(t, "flux-system", "pol")
	soon(t, "the policies have been looked at", func() error {
		list := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
		check(t, p.Client.List(ctx, list))
		for _, policy := range list.Items {
			if policy.Status.TypeChecking == nil || policy.Status.ObservedGeneration < policy.Generation {
				return fmt.Errorf("%s has not been type-checked", policy.Name)
			}
			for _, w := range policy.Status.TypeChecking.ExpressionWarnings {
				t.Errorf("%s, %s: %s", policy.Name, w.FieldRef, w.Warning)
			}
		}
		return nil
	})
}

// find returns an object of the hub's in flux-system, with a label.
func (p *guarded) find(t *testing.T, apiVersion, kind, label, value string) *unstructured.Unstructured {
	t.Helper()
	list := unstructuredList(apiVersion, kind)
	selector := client.ListOption(client.MatchingLabels{label: value})
	if value == "" {
		selector = client.HasLabels{label}
	}
	check(t, p.Client.List(t.Context(), list, client.InNamespace("flux-system"), selector))
	if len(list.Items) == 0 {
		t.Fatalf("there is no %s with label %s=%s", kind, label, value)
	}
	return &list.Items[0]
}

const (
	helmAPI, kustomizeAPI, sourceAPI, hubAPI = "helm.toolkit.fluxcd.io/v2", "kustomize.toolkit.fluxcd.io/v1", "source.toolkit.fluxcd.io/v1", "chandler.dev/v1alpha1"
)

func (p *guarded) allowed(t *testing.T) {
	ctx := t.Context()
	do := func(f func(context.Context, client.Client) error) {
		t.Helper()
		check(t, f(ctx, p.jane))
	}
	hr := p.find(t, helmAPI, "HelmRelease", hubv1.AddonLabel, "pol-chart")
	k, git, chart := p.find(t, kustomizeAPI, "Kustomization", hubv1.AddonLabel, "pol-git"), p.find(t, sourceAPI, "GitRepository", hubv1.SourceLabel, ""), p.find(t, sourceAPI, "HelmChart", hubv1.ChartLabel, "")

	do(patched(hr, `{"spec":{"suspend":true}}`))
	soon(t, "it is suspended", func() error { return p.wantAddon(t, "pol", "pol-chart", hubv1.AddonSuspended, "flux resume") })
	do(patched(hr, `{"spec":{"suspend":false}}`))
	soon(t, "it is resumed", func() error { return p.wantAddon(t, "pol", "pol-chart", hubv1.AddonReady, "") })
	for _, u := range []*unstructured.Unstructured{hr, k, git, chart} {
		do(patched(u, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"now","reconcile.fluxcd.io/forceAt":"now"}}}`))
		soon(t, u.GetKind()+" is reconciled", func() error {
			if err := p.Client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
				return err
			}
			if at, _, _ := unstructured.NestedString(u.Object, "status", "lastHandledReconcileAt"); at != "now" {
				return fmt.Errorf("the last request that was handled is %q", at)
			}
			return nil
		})
		do(patched(u, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":null,"reconcile.fluxcd.io/forceAt":null}}}`))
	}

	reg := &unstructured.Unstructured{Object: map[string]any{"apiVersion": hubAPI, "kind": "ClusterRegistration", "metadata": map[string]any{"namespace": "fleet", "name": "one"}}}
	do(patched(reg, `{"metadata":{"labels":{"team":"blue"}},"spec":{"variables":{"color":"red"}}}`))
	soon(t, "a variable reaches the cluster", func() error { return wantData(ctx, p.one, "default", "pol-plain", "color", "red") })
	do(patched(reg, `{"spec":{"pause":{"reason":"a test"}}}`))
	soon(t, "the hub suspends what is there", func() error { return p.wantAddon(t, "pol", "pol-chart", hubv1.AddonPaused, "") })
	do(patched(reg, `{"spec":{"pause":null,"variables":null}}`))
	soon(t, "and resumes it", func() error { return p.wantAddon(t, "pol", "pol-chart", hubv1.AddonReady, "") })
	soon(t, "with what changed meanwhile", func() error { return wantData(ctx, p.one, "default", "pol-plain", "color", "blue") })

	// `kubectl get secrets -o json | kubectl replace -f -` encrypts anew.
	soon(t, "a copy is written as it is", func() error { // not while the hub writes it
		return p.jane.Update(ctx, p.find(t, "v1", "Secret", hubv1.CopyLabel, "true"))
	})
}

// fromGit has Flux apply a forged HelmRelease from Git: it does so under the name by which it also writes finalizers.
func (p *guarded) fromGit(t *testing.T) {
	ctx := t.Context()
	hr := p.find(t, helmAPI, "HelmRelease", hubv1.AddonLabel, "pol-chart")
	_, err := p.git.Commit("people", map[string]string{"forged.yaml": fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: from-git, namespace: flux-system, labels: {%s: %q}}
spec: {interval: 1m, chartRef: {kind: HelmChart, name: none}}
`, hubv1.ClusterKeyLabel, hr.GetLabels()[hubv1.ClusterKeyLabel])})
	check(t, err)
	apply(t, p.jane, fmt.Sprintf(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: people, namespace: flux-system}
spec: {url: %s, interval: 1m, ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: people, namespace: flux-system}
spec: {interval: 1m, retryInterval: 1s, prune: true, path: ./, sourceRef: {kind: GitRepository, name: people}}
`, p.git.URL("people")))
	k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "people"}}
	soon(t, "Flux says why it does not apply that", func() error {
		if err := p.Client.Get(ctx, client.ObjectKeyFromObject(k), k); err != nil {
			return err
		}
		if m := conditionOf(k, "Ready").Message; !strings.Contains(m, "HelmRelease flux-system/from-git has a label by which the hub knows its own objects") {
			return fmt.Errorf("message %q", m)
		}
		return nil
	})
	check(t, p.jane.Delete(ctx, k))
	soon(t, "the Kustomization is gone", func() error { return wantGone(ctx, p.Client, k) })
}

func (p *guarded) collected(t *testing.T) {
	ctx := t.Context()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	check(t, p.jane.Create(ctx, owner))
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "owned", Labels: map[string]string{hubv1.AddonSetLabel: "none"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}, Data: runtime.RawExtension{Raw: []byte("{}")}}
	check(t, p.itself.Create(ctx, revision))
	check(t, p.jane.Delete(ctx, owner))
	soon(t, "what it owned is gone", func() error { return wantGone(ctx, p.Client, revision) })
}

// namespaceGoes deletes a namespace with all that lies in it: the set, and everything that was generated for it.
func (p *guarded) namespaceGoes(t *testing.T) {
	ctx := t.Context()
	namespace(t, p.jane, "team")
	p.set(t, "team", "polteam")
	// What the hub knows nothing of goes as well: the namespace controller deletes it, and Flux takes its finalizer off.
	lost := map[string]any{"name": "lost", "namespace": "team", "labels": map[string]any{hubv1.ClusterKeyLabel: "none", hubv1.CopyLabel: "true"}}
	check(t, p.itself.Create(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": lost}}))
	check(t, p.itself.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": helmAPI, "kind": "HelmRelease", "metadata": lost,
		"spec": map[string]any{"interval": "1m", "suspend": true, "chartRef": map[string]any{"kind": "HelmChart", "name": "none"}},
	}}))
	p.keepsNamespaces(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	check(t, p.jane.Delete(ctx, ns))
	soon(t, "the namespace is gone", func() error { return wantGone(ctx, p.Client, ns) })
	soon(t, "so are its add-ons", func() error { return p.wantGone(ctx, "polteam") })
}

// keepsNamespaces: a namespace that holds sets or clusters is not deleted before somebody says so on it, and any other is.
func (p *guarded) keepsNamespaces(t *testing.T) {
	ctx := t.Context()
	named := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	for name, says := range map[string]string{
		"fleet": "Namespace fleet holds ClusterRegistration one: its add-ons would be uninstalled",
		"team":  "Namespace team holds AddonSet polteam: everything that it delivers would leave its clusters at once",
	} {
		err := p.jane.Delete(ctx, named(name))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "kubectl annotate namespace "+name+" chandler.dev/force-deletion=true") {
			t.Fatalf("jane deletes namespace %s and is told %v, want %q", name, err, says)
		}
		check(t, client.NewDryRunClient(p.glass).Delete(ctx, named(name)))
	}
	namespace(t, p.jane, "empty")
	check(t, p.jane.Delete(ctx, named("empty")))
	check(t, p.jane.Patch(ctx, named("team"), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, hubv1.ForceDeletionAnnotation))))
}

func (p *guarded) uninstalled(t *testing.T) {
	ctx := t.Context()
	check(t, p.jane.Delete(ctx, addonSet("flux-system", "pol")))
	soon(t, "the add-ons are uninstalled", func() error { return p.wantGone(ctx, "pol") })
	check(t, p.jane.Patch(ctx, secret("fleet", "one", nil), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"false"}}}`, hubv1.RegisterLabel))))
	soon(t, "nothing of ours is left on the hub", func() error { return errors.Join(approveHeld(t.Context(), p.Client), wantNothingOfOurs(ctx, p.Client)) })
}
