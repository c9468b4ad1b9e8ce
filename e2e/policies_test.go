// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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
	"github.com/chandler-hub/chandler/internal/localfleet"
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
	p := startGuarded(t)
	step := func(name string, f func(*testing.T)) {
		if !t.Run(name, f) {
			t.FailNow() // what comes after a failure would only add noise
		}
	}
	step("a hub delivers", p.delivers)
	step("people are denied", p.denied)
	step("people suspend, reconcile and edit what is theirs", p.allowed)
	step("Git is people too", p.fromGit)
	step("garbage is collected", p.collected)
	step("a namespace goes", p.namespaceGoes)
	step("everything is uninstalled", p.uninstalled)
}

func startGuarded(t *testing.T) *guarded {
	p := &guarded{one: workload(t, "workload-c")}
	p.hub = startHub(t, hubOptions{name: "hub-policies", noHub: true, args: []string{"--platform-namespaces=flux-system,team", "--removal-delay=1s"}})
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
	forged.Labels = map[string]string{hubv1.MirrorLabel: "true"}
	soon(t, "the API server has taken notice", func() error {
		if err := p.jane.Create(t.Context(), forged.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a forged mirror: %w", err)
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
	kubeconfig, err := p.one.Kubeconfig("kubernetes-admin", "system:masters")
	check(t, err)
	s := secret("fleet", "one", map[string][]byte{"value": kubeconfig})
	s.Labels = map[string]string{hubv1.RegisterLabel: "true"}
	check(t, p.jane.Create(ctx, s))
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

// edit is what somebody tries to do.
type edit struct {
	name string
	do   func(context.Context, client.Client) error
	// denied is what jane is told, and broken what she is told as a member of the break-glass group: nothing if it then works.
	denied, broken string
}

// namesObject is how each message begins.
var namesObject = regexp.MustCompile(` denied request: [A-Z][A-Za-z]+ [a-z-]+/[a-z0-9-]+ `)

func patched(u *unstructured.Unstructured, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, u.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func patchedStatus(u *unstructured.Unstructured, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, u.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func deleted(u *unstructured.Unstructured) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, u.DeepCopy()) }
}

// forged makes an object of another name that looks like one of the hub's, with only some of its labels.
func forged(u *unstructured.Unstructured, labels ...string) func(context.Context, client.Client) error {
	f := u.DeepCopy()
	delete(f.Object, "status")
	f.Object["metadata"] = map[string]any{"name": "forged", "namespace": u.GetNamespace()}
	kept := map[string]string{}
	for _, l := range labels {
		kept[l] = u.GetLabels()[l]
	}
	f.SetLabels(kept)
	return func(ctx context.Context, c client.Client) error { return c.Create(ctx, f.DeepCopy()) }
}

func (p *guarded) denied(t *testing.T) {
	ctx := t.Context()
	since := time.Now()
	hr, k := p.find(t, helmAPI, "HelmRelease", hubv1.AddonLabel, "pol-chart"), p.find(t, kustomizeAPI, "Kustomization", hubv1.AddonLabel, "pol-git")
	chart, git := p.find(t, sourceAPI, "HelmChart", hubv1.ChartLabel, ""), p.find(t, sourceAPI, "GitRepository", hubv1.SourceLabel, "")
	mirror := p.find(t, "v1", "Secret", hubv1.MirrorLabel, "true")
	delivery, revision := p.find(t, hubAPI, "AddonDelivery", hubv1.AddonSetLabel, "pol"), p.find(t, "apps/v1", "ControllerRevision", hubv1.AddonSetLabel, "pol")
	reg := &unstructured.Unstructured{}
	reg.SetAPIVersion(hubAPI)
	reg.SetKind("ClusterRegistration")
	check(t, p.Client.Get(ctx, client.ObjectKey{Namespace: "fleet", Name: "one"}, reg))
	own := hr.DeepCopy()
	own.Object["metadata"] = map[string]any{"name": "of-jane", "namespace": "flux-system"}
	own.Object["spec"] = map[string]any{"interval": "1m", "suspend": true, "chartRef": map[string]any{"kind": "HelmChart", "name": "none"}}
	ownSecret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "of-jane", "namespace": "flux-system"}}}
	ownConfigMap := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "of-jane", "namespace": "flux-system"}}}
	for _, u := range []*unstructured.Unstructured{own, ownSecret, ownConfigMap} {
		check(t, p.jane.Create(ctx, u)) // with no label of the hub they are hers
	}

	instead := "Change AddonSet flux-system/pol, or spec.overrides of ClusterRegistration fleet/one. In an emergency, act as a member of group " + breakGlass
	marks := "of its labels and annotations only annotations reconcile.fluxcd.io/* are yours to change, not "
	const owner = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`
	edits := []edit{
		{"values of a HelmRelease", patched(hr, `{"spec":{"values":{"color":"pink"}}}`), "of its spec only suspend is yours to change, not values. " + instead, ""},
		{"two fields, and suspend", patched(hr, `{"spec":{"suspend":true,"interval":"1h","releaseName":null}}`), "is yours to change, not interval, releaseName. " + instead, ""},
		{"a field by server-side apply", func(ctx context.Context, c client.Client) error {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"timeout": "1s"}}}
			u.SetGroupVersionKind(hr.GroupVersionKind())
			u.SetNamespace(hr.GetNamespace())
			u.SetName(hr.GetName())
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl"))
		}, "not timeout. " + instead, ""},
		{"a label of the hub taken off", patched(hr, `{"metadata":{"labels":{"chandler.dev/cluster-key":null}}}`), marks + "chandler.dev/cluster-key: the hub knows it again by them", ""},
		{"all labels taken off", patched(hr, `{"metadata":{"labels":null}}`), "chandler.dev/cluster-key", ""},
		{"a label of the hub changed", patched(k, `{"metadata":{"labels":{"chandler.dev/addon":"other"}}}`), marks + "chandler.dev/addon: the hub knows it again by them", ""},
		{"an annotation of the hub", patched(hr, `{"metadata":{"annotations":{"chandler.dev/delivery":"other"}}}`), marks + "chandler.dev/delivery: the hub knows it again by them", ""},
		{"an annotation that stops Flux", patched(k, `{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/reconcile":"disabled"}}}`), marks + "kustomize.toolkit.fluxcd.io/reconcile: the hub knows it again by them", ""},
		{"finalizers of Flux", patched(hr, `{"metadata":{"finalizers":null}}`), "has finalizers so that Flux tidies up before it goes", ""},
		{"an owner", patched(k, owner), "leave its ownerReferences as they are", ""},
		{"a HelmRelease deleted", deleted(hr), "deleting it would uninstall what runs, for the hub to make it again. Drop the add-on from AddonSet flux-system/pol, or exclude it in spec.overrides of ClusterRegistration fleet/one", ""},
		{"a collection deleted", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, k.DeepCopy(), client.InNamespace("flux-system"), client.HasLabels{hubv1.ClusterKeyLabel})
		}, "deleting it would uninstall", ""},
		{"path of a Kustomization", patched(k, `{"spec":{"path":"./other"}}`), "not path. " + instead, ""},
		{"a forged HelmRelease", forged(hr, hubv1.ClusterKeyLabel), "would be taken for one", ""},
		{"a forged Kustomization", forged(k, hubv1.ClusterKeyLabel, hubv1.AddonLabel), "would be taken for one", ""},
		{"a HelmRelease that becomes a forged one", patched(own, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, hubv1.ClusterKeyLabel, hr.GetLabels()[hubv1.ClusterKeyLabel])), "would be taken for one", ""},
		{"version of a HelmChart", patched(chart, `{"spec":{"version":"9"}}`), "not version. Change AddonSet. In an emergency", ""},
		{"a HelmChart deleted", deleted(chart), "goes by itself when none does", ""},
		{"a forged HelmChart", forged(chart, hubv1.ChartLabel), "would be taken for one", ""},
		{"url of a source", patched(git, `{"spec":{"url":"https://example.org/other"}}`), "not url. Change AddonSet flux-system/pol", ""},
		{"a label of a source", patched(git, `{"metadata":{"labels":{"chandler.dev/source":null}}}`), marks + "chandler.dev/source: the hub knows it again by them", ""},
		{"a source deleted", deleted(git), "goes by itself when none does", ""},
		{"a forged source", forged(git, hubv1.SourceLabel), "would be taken for one", ""},

		{"a mirror's content", patched(mirror, `{"stringData":{"value":"x"}}`), "is the hub's copy of a kubeconfig: nothing of it is to be edited. Change the Secret that ClusterRegistration fleet/one names", ""},
		{"a mirror's labels", patched(mirror, `{"metadata":{"labels":{"chandler.dev/mirror":null,"chandler.dev/cluster-key":null}}}`), "nothing of it is to be edited", ""},
		{"an annotation of a mirror", patched(mirror, `{"metadata":{"annotations":{"chandler.dev/kubeconfig-fingerprint":"x"}}}`), "nothing of it is to be edited", ""},
		{"an owner of a mirror", patched(mirror, owner), "nothing of it is to be edited", ""},
		{"a mirror made immutable", patched(mirror, `{"immutable":true}`), "nothing of it is to be edited", ""},
		{"a mirror's finalizer", patched(mirror, `{"metadata":{"finalizers":null}}`), "nothing of it is to be edited", ""},
		{"a mirror deleted", deleted(mirror), "without which Flux can neither change nor uninstall anything on that cluster", ""},
		{"a forged mirror", forged(mirror, hubv1.MirrorLabel), "would be taken for one. To register a cluster, label a Secret chandler.dev/register", ""},
		{"a forged mirror of a workload identity", forged(ownConfigMap, hubv1.MirrorLabel), "ConfigMap flux-system/forged has a label by which the hub knows", ""},
		{"a Secret that becomes a forged mirror", patched(ownSecret, `{"metadata":{"labels":{"chandler.dev/cluster-key":"x"}}}`), "would be taken for one", ""},
		{"a forged mirror, as the hub knows them", forged(mirror, hubv1.ClusterKeyLabel), "would be taken for one", ""},

		{"revision of a delivery", patched(delivery, `{"spec":{"revisionName":"other"}}`), "says what the hub decided, and only the hub writes that. Change AddonSet flux-system/pol", "says what the hub decided"},
		{"status of a delivery", patchedStatus(delivery, `{"status":{"addons":null}}`), "has a status that only the hub writes", "has a status that only the hub writes"},
		{"an annotation of a delivery", patched(delivery, `{"metadata":{"annotations":{"a":"b"}}}`), "is to be read only", ""},
		{"a label of a delivery", patched(delivery, `{"metadata":{"labels":{"chandler.dev/cluster-key":null}}}`), "is to be read only", ""},
		{"an owner of a delivery", patched(delivery, owner), "is to be read only", ""},
		{"finalizers of a delivery", patched(delivery, `{"metadata":{"finalizers":null}}`), "is to be read only", ""},
		{"a delivery deleted", deleted(delivery), "goes by itself when AddonSet flux-system/pol does not need it any more", ""},
		{"a forged delivery", forged(delivery), "would be a decision of the hub, which alone makes them", "would be a decision of the hub"},
		{"number of a revision", patched(revision, `{"revision":99}`), "says what the hub decided", "says what the hub decided"},
		{"a label of a revision", patched(revision, `{"metadata":{"labels":{"chandler.dev/addonset":null}}}`), "is to be read only", ""},
		{"a revision deleted", deleted(revision), "goes by itself", ""},
		{"a forged revision", forged(revision, hubv1.AddonSetLabel), "would be a decision of the hub", "would be a decision of the hub"},

		{"status of a registration", patchedStatus(reg, `{"status":{"clusterUID":"other"}}`), "has a status that the hub finds out by asking the cluster", ""},
		{"name of a registration", patched(reg, `{"metadata":{"labels":{"chandler.dev/name":"two"}}}`), "gets chandler.dev/name from the hub, and sets select by it: neither set nor change it", ""},
		{"two labels of a registration", patched(reg, `{"metadata":{"labels":{"chandler.dev/provider":"Kamaji","chandler.dev/kubernetes-minor":null}}}`), "gets chandler.dev/provider, chandler.dev/kubernetes-minor from the hub", ""},
		{"a registration that brings its labels", forged(reg, hubv1.ProviderLabel), "gets chandler.dev/provider from the hub", ""},
	}
	dry := client.NewDryRunClient(p.glass)
	for _, e := range edits {
		t.Run(strings.ReplaceAll(e.name, " ", "-"), func(t *testing.T) {
			err := e.do(ctx, p.jane)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), e.denied) || !namesObject.MatchString(err.Error()) {
				t.Errorf("jane is told %v, want %q", err, e.denied)
			}
			switch err := e.do(ctx, dry); {
			case e.broken == "" && err != nil:
				t.Errorf("having broken the glass, she is told %v", err)
			case e.broken != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), e.broken)):
				t.Errorf("having broken the glass, she is told %v, want %q", err, e.broken)
			}
		})
	}
	check(t, p.jane.Delete(ctx, ownSecret))
	check(t, p.jane.Delete(ctx, own))
	soon(t, "what is hers goes as she likes", func() error { return wantGone(ctx, p.Client, own) })
	p.audited(t, since)
}

// audited wants the audit log to say who broke the glass, and for what.
func (p *guarded) audited(t *testing.T, since time.Time) {
	events, err := p.Writes(testAgent, since)
	check(t, err)
	said := map[string]bool{}
	for _, e := range events {
		for policy, text := range e.Annotations {
			if name, ok := strings.CutSuffix(policy, "/break-glass"); ok && strings.HasPrefix(text, "jane: ") {
				said[name] = true
			}
		}
		if e.Annotations["chandler-generated/break-glass"] != "" && e.ImpersonatedUser == nil {
			t.Errorf("%s is said to have broken the glass", e.User.Username)
		}
	}
	if len(said) != 4 {
		t.Errorf("the audit log tells of a broken glass for %v, want all four policies", said)
	}
}

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
	soon(t, "a mirror is written as it is", func() error { // not while the hub writes it
		return p.jane.Update(ctx, p.find(t, "v1", "Secret", hubv1.MirrorLabel, "true"))
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
		if m := findCondition(k.Status.Conditions, "Ready").Message; !strings.Contains(m, "HelmRelease flux-system/from-git has a label by which the hub knows its own objects") {
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
	lost := map[string]any{"name": "lost", "namespace": "team", "labels": map[string]any{hubv1.ClusterKeyLabel: "none", hubv1.MirrorLabel: "true"}}
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
	soon(t, "nothing of ours is left on the hub", func() error { return wantNothingOfOurs(ctx, p.Client) })
}
