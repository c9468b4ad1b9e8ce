// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/localfleet"
	"github.com/chandler-hub/chandler/internal/localfleet/parts"
)

// Who is who. All are in system:masters, so that it is the policies that stop somebody, and never RBAC. The hub has another name
// than the policies say, to show how one tells them.
const (
	hubUser    = "system:serviceaccount:platform:hub"
	fluxUser   = "system:serviceaccount:flux-system:kustomize-controller"
	fluxGroup  = "system:serviceaccounts:flux-system"
	breakGlass = "chandler.dev:break-glass"
	janesAgent = "jane"
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
	p.hub = startHub(t, hubOptions{name: "hub-policies", audit: true, noHub: true, args: []string{"--platform-namespaces=flux-system,team", "--removal-delay=1s"}})
	p.jane, p.glass, p.itself = p.client(t, "jane"), p.client(t, "jane", breakGlass), p.client(t, hubUser)
	p.install(t)
	p.controllerManager(t)
	// Flux and the hub take whom they are from the administrator's kubeconfig file when they start.
	p.become(t, fluxUser, fluxGroup)
	check(t, p.StartFlux(t.Context(), localfleet.FluxOptions{}))
	p.become(t, hubUser)
	p.start(t)
	var err error
	p.charts, err = localfleet.NewChartServer()
	check(t, err)
	p.git, err = localfleet.NewGitServer()
	check(t, err)
	t.Cleanup(func() { _, _ = p.charts.Close(), p.git.Close() })
	check(t, p.charts.Publish(os.DirFS("testdata"), "charts/settings"))
	return p
}

func (p *guarded) kubeconfig(t *testing.T, user string, groups ...string) []byte {
	t.Helper()
	raw, err := p.Kubeconfig(user, append([]string{"system:masters"}, groups...)...)
	check(t, err)
	return raw
}

func (p *guarded) client(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(p.kubeconfig(t, user, groups...))
	check(t, err)
	config.QPS, config.UserAgent = -1, janesAgent
	c, err := client.New(config, client.Options{Scheme: scheme})
	check(t, err)
	return c
}

func (p *guarded) become(t *testing.T, user string, groups ...string) {
	t.Helper()
	check(t, os.WriteFile(p.KubeconfigFile(), p.kubeconfig(t, user, groups...), 0o600))
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
				first["expression"] = "['" + hubUser + "']"
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

// controllerManager runs one whose controllers have ServiceAccounts of their own, as they have in any cluster of kubeadm. The one
// that the fleet could start has none: it is an administrator like others, whom the policies stop.
func (p *guarded) controllerManager(t *testing.T) {
	t.Helper()
	path, err := parts.Path(parts.KubeControllerManager)
	check(t, err)
	dir := filepath.Dir(p.KubeconfigFile())
	kubeconfig := filepath.Join(dir, "controller-manager.conf")
	check(t, os.WriteFile(kubeconfig, p.kubeconfig(t, "system:kube-controller-manager"), 0o600))
	log, err := os.Create(filepath.Join(dir, "controller-manager.log"))
	check(t, err)
	// The shell ends it when our end of the pipe is closed, as it is when we are killed.
	cmd := exec.Command("/bin/sh", "-c", `"$@" & read -r _; kill -9 $!`, "sh", path, "--kubeconfig="+kubeconfig, "--use-service-account-credentials",
		"--controllers=namespace-controller,garbage-collector-controller,serviceaccount-controller,validatingadmissionpolicy-status-controller",
		"--service-account-private-key-file="+filepath.Join(dir, "service-accounts.key"), "--leader-elect=false", "--secure-port=0")
	cmd.Stdout, cmd.Stderr = log, log
	stdin, err := cmd.StdinPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() { _, _, _ = stdin.Close(), cmd.Wait(), log.Close() })
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

// the returns the only generated object with some labels.
func the[T client.Object](t *testing.T, c client.Client, list client.ObjectList, labels client.ListOption) T {
	t.Helper()
	check(t, c.List(t.Context(), list, client.InNamespace("flux-system"), labels))
	var items []T
	switch l := list.(type) {
	case *helmv2.HelmReleaseList:
		items = pointers[T](l.Items)
	case *kustomizev1.KustomizationList:
		items = pointers[T](l.Items)
	case *sourcev1.HelmChartList:
		items = pointers[T](l.Items)
	case *sourcev1.GitRepositoryList:
		items = pointers[T](l.Items)
	case *corev1.SecretList:
		items = pointers[T](l.Items)
	case *hubv1.AddonDeliveryList:
		items = pointers[T](l.Items)
	case *appsv1.ControllerRevisionList:
		items = pointers[T](l.Items)
	}
	if len(items) == 0 {
		t.Fatalf("there is no %T with %v", list, labels)
	}
	return items[0]
}

func pointers[T client.Object, E any](items []E) []T {
	out := make([]T, len(items))
	for i := range items {
		out[i] = any(&items[i]).(T)
	}
	return out
}
