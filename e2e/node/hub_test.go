// SPDX-License-Identifier: Apache-2.0

// Package node holds the end-to-end tests on one real node (package test/node): Flux and the hub as pods, from their images,
// with the rights of their ServiceAccounts and nothing else.
package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/node"
)

const (
	namespace = "chandler-system"
	chart     = "../../charts/chandler"
	image     = "chandler-hub"
)

// quick makes the hub fit for a test.
var quick = []string{"--deselection-delay=1s", "--removal-delay=1s", "--probe-interval=5s"}

func TestMain(m *testing.M) { os.Exit(node.Main(m, prepare)) }

// prepare builds two hubs as the Dockerfile does: each says another version. And a pod that asks for others.
func prepare(ctx context.Context, dir string) error {
	const version = "-X github.com/chandler-hub/chandler/internal/version.release="
	return errors.Join(
		node.Build(ctx, "./cmd/hub", filepath.Join(dir, "hub-v1"), version+"v9.0.1"),
		node.Build(ctx, "./cmd/hub", filepath.Join(dir, "hub-v2"), version+"v9.0.2"),
		node.Build(ctx, "./test/node/hello", filepath.Join(dir, "hello")),
	)
}

// installation is a hub on a real node, and a workload cluster beside it.
type installation struct {
	*node.Node
	workload *localfleet.Cluster
	values   string // file
	color    string
}

// TestHub installs Flux and the hub as people do, and goes the way of an add-on with them, across the end of the pod that
// leads, an upgrade, and the uninstallation.
func TestHub(t *testing.T) {
	node.Require(t)
	n, err := node.Start(t.Context(), localfleet.ClusterOptions{Name: "management", Scheme: hubscheme.New(), Audit: true})
	expect.NoError(t, err)
	in := &installation{Node: n, values: filepath.Join(t.TempDir(), "values.yaml"), color: "blue"}
	t.Cleanup(func() {
		if t.Failed() {
			n.Dump(t.Output())
		}
		expect.NoError(t, n.Stop())
	})
	in.workload, err = localfleet.StartCluster(t.Context(),
		localfleet.ClusterOptions{Name: "workload", Dir: node.Dir(), Address: node.Address, ControllerManager: true, Scheme: n.Client.Scheme()})
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, in.workload.Stop()) })

	expect.Step(t, "Flux's controllers become Ready as pods", in.flux)
	expect.Step(t, "the chart installs the hub", in.install)
	expect.Step(t, "two pods run with what their security context says", in.confined)
	expect.Step(t, "a cluster registers, and an add-on arrives", in.arrive)
	expect.Step(t, "the network lets nobody but Flux to its charts", in.isolated)
	expect.Step(t, "the policies know the hub and Flux by their tokens", in.fenced)
	expect.Step(t, "the other pod takes over when the one that leads is deleted", in.failOver)
	expect.Step(t, "an upgrade replaces the pods, and the chart is served all the time", in.upgrade)
	expect.Step(t, "nothing was restarted, and nothing was denied", in.calm)
	expect.Step(t, "the hub is uninstalled, and the add-on stays", in.uninstall)
}

func (in *installation) flux(t *testing.T) { expect.NoError(t, in.InstallFlux(t.Context())) }

func (in *installation) install(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		expect.NoError(t, in.Load(t.Context(), node.HubImage(image+":"+version, filepath.Join(node.Dir(), "hub-"+version))))
	}
	values := "secretNamespaces: ['*']\nextraArgs: [" + strings.Join(quick, ", ") + "]\nimage: {repository: " + image + "}\n"
	expect.NoError(t, os.WriteFile(in.values, []byte(values), 0o600))
	// As docs/install.md has it: Helm makes no namespace with labels.
	expect.Apply(t, in.Client, `{apiVersion: v1, kind: Namespace, metadata: {name: chandler-system, labels: {pod-security.kubernetes.io/enforce: restricted}}}`)
	in.helm(t, "install", "v1")
}

func (in *installation) helm(t *testing.T, verb, tag string) {
	t.Helper()
	expect.NoError(t, in.Helm(t.Context(), verb, "chandler", chart, "--namespace", namespace, "--values", in.values, "--set", "image.tag="+tag,
		"--wait", "--timeout", expect.Patience.String()))
}

// pods returns the hub's that are not going.
func (in *installation) pods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := in.Client.List(ctx, list, client.InNamespace(namespace))
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), err
}

// confined reads back from the kernel how the processes of the pods run.
func (in *installation) confined(t *testing.T) {
	pods, err := in.pods(t.Context())
	expect.NoError(t, err)
	for _, p := range pods {
		if !p.Status.ContainerStatuses[0].Ready || p.Status.PodIP == "" {
			t.Errorf("%s is %+v", p.Name, p.Status)
		}
	}
	hubs := processes(t, "/hub")
	if len(pods) != 2 || len(hubs) != 2 {
		t.Fatalf("there are %d pods and %d processes", len(pods), len(hubs))
	}
	for _, pid := range hubs {
		status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
		expect.NoError(t, err)
		for _, want := range []string{`Uid:\s65532\s65532`, `Gid:\s65532\s65532`, `CapEff:\s0+\n`, `CapBnd:\s0+\n`, `NoNewPrivs:\s1\n`, `Seccomp:\s2\n`} {
			if !regexp.MustCompile(want).Match(status) {
				t.Errorf("the hub's process has not %q in\n%s", want, status)
			}
		}
		mounts, err := os.ReadFile(filepath.Join("/proc", pid, "mountinfo"))
		expect.NoError(t, err)
		if !regexp.MustCompile(`(?m)^\d+ \d+ \S+ / / ro,`).Match(mounts) {
			t.Errorf("the hub may write to its root:\n%s", mounts)
		}
		if _, err := os.Stat(filepath.Join("/proc", pid, "root/var/run/secrets/kubernetes.io/serviceaccount/token")); err != nil {
			t.Errorf("its token: %v", err)
		}
	}
}

// processes returns the numbers of those that run a program of this path in an image.
func processes(t *testing.T, program string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	expect.NoError(t, err)
	var found []string
	for _, file := range all {
		if line, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(line), program+"\x00") {
			found = append(found, filepath.Base(filepath.Dir(file)))
		}
	}
	return found
}

const set = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: base, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {tier: prod}}
  addons: [{name: colors, manifests: {interval: 3s, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: colors}, data: {color: %s}}]}}]
`

// arrive delivers plain manifests: their chart is the hub's own, which source-controller fetches by the Service's name.
func (in *installation) arrive(t *testing.T) {
	kubeconfig, err := in.workload.TokenKubeconfig(t.Context(), "hub")
	expect.NoError(t, err)
	expect.Namespace(t, in.Client, "tenants")
	expect.NoError(t, in.Client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "one", Labels: map[string]string{hubv1.RegisterLabel: "true", "tier": "prod"}},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	}))
	in.change(t, "blue")
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "one"}}
	expect.Soon(t, "the registration is Ready", func() error {
		return expect.Condition(t.Context(), in.Client, reg, hubv1.ReadyCondition, metav1.ConditionTrue, "")
	})
}

// change changes the set, and waits for what it brings.
func (in *installation) change(t *testing.T, color string) {
	t.Helper()
	in.color = color
	expect.Apply(t, in.Client, fmt.Sprintf(set, color))
	expect.Soon(t, color+" arrives", func() error { return in.arrived(t.Context()) })
}

func (in *installation) arrived(ctx context.Context) error {
	cm := &corev1.ConfigMap{}
	if err := in.workload.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "colors"}, cm); err != nil {
		return err
	}
	if cm.Data["color"] != in.color {
		return fmt.Errorf("the color is %q, want %q", cm.Data["color"], in.color)
	}
	return nil
}

// fenced: an administrator is told what a deletion would do. That the hub and Flux may do their work is what everything else shows.
func (in *installation) fenced(t *testing.T) {
	releases := &helmv2.HelmReleaseList{}
	expect.NoError(t, in.Client.List(t.Context(), releases, client.InNamespace("flux-system"), client.HasLabels{hubv1.ClusterKeyLabel}))
	if len(releases.Items) == 0 {
		t.Fatal("the hub has made no HelmRelease")
	}
	err := client.NewDryRunClient(in.Client).Delete(t.Context(), &releases.Items[0])
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "deleting it would uninstall what runs") {
		t.Errorf("the API server says %v", err)
	}
}

// leader returns the pod that holds the lease.
func (in *installation) leader(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	if err := in.Client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "hub.chandler.dev"}, lease); err != nil {
		return "", err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("nobody holds the lease")
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return name, nil
}

func (in *installation) failOver(t *testing.T) {
	before, err := in.leader(t.Context())
	expect.NoError(t, err)
	pods, err := in.pods(t.Context())
	expect.NoError(t, err)
	i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == before })
	if i < 0 {
		t.Fatalf("%s leads, and is no pod", before)
	}
	expect.NoError(t, in.Client.Delete(t.Context(), &pods[i]))
	deleted := time.Now()
	expect.Soon(t, "another pod leads", func() error {
		now, err := in.leader(t.Context())
		if err == nil && now == before {
			err = errors.New(now + " still leads")
		}
		return err
	})
	t.Logf("another pod led %s after the first was deleted", time.Since(deleted).Round(100*time.Millisecond))
	in.change(t, "green")
	expect.NoError(t, in.Available(t.Context(), client.ObjectKey{Namespace: namespace, Name: "chandler"}))
}

func (in *installation) upgrade(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	asked := make(chan []string)
	go func() { asked <- askForChart(ctx) }()
	in.helm(t, "upgrade", "v2")
	pods, err := in.pods(t.Context())
	expect.NoError(t, err)
	for _, p := range pods {
		if got := p.Status.ContainerStatuses[0].Image; !strings.HasSuffix(got, "chandler-hub:v2") {
			t.Errorf("%s runs %s", p.Name, got)
		}
	}
	in.change(t, "red")
	expect.Soon(t, "the old pods have ended", func() error {
		if left := processes(t, "/hub"); len(left) != 2 {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
	stop()
	if failures := <-asked; len(failures) > 0 {
		t.Errorf("while the pods were replaced, the Service failed %d times: %s", len(failures), strings.Join(failures, "; "))
	}
}

// calm wants no container to have ended by itself, and no right to have lacked.
func (in *installation) calm(t *testing.T) {
	list := &corev1.PodList{}
	expect.NoError(t, in.Client.List(t.Context(), list))
	for _, p := range list.Items {
		for _, c := range p.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				t.Errorf("%s/%s was restarted %d times: %+v", p.Namespace, p.Name, c.RestartCount, c.LastTerminationState.Terminated)
			}
		}
	}
	for _, pod := range list.Items {
		if pod.Namespace != namespace {
			continue
		}
		log := in.Log(t.Context(), &pod)
		for line := range strings.Lines(log) {
			if strings.Contains(line, "forbidden") || strings.Contains(line, "panic") {
				t.Errorf("%s says %s", pod.Name, line)
			}
		}
		if log == "" {
			t.Errorf("%s has no log", pod.Name)
		}
	}
}

func (in *installation) uninstall(t *testing.T) {
	expect.NoError(t, in.Helm(t.Context(), "uninstall", "chandler", "--namespace", namespace, "--wait", "--timeout", expect.Patience.String()))
	expect.NoError(t, expect.Gone(t.Context(), in.Client, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "chandler"}}))
	expect.Soon(t, "its processes are gone", func() error {
		if left := processes(t, "/hub"); len(left) > 0 {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
	expect.Lasts(t, 10*time.Second, "the add-on stays", func() error { return in.arrived(t.Context()) })
}
