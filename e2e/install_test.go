// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/test/localfleet"
)

const hubNamespace = "chandler-system"

// quick makes an installed hub fit for a test; the rest of its flags is what its Deployment says.
var quick = []string{"--deselection-delay=1s", "--removal-delay=1s", "--chart-retention=1s", "--probe-interval=5s"}

// installation is a hub as its Deployment has it. No kubelet runs its pods here: kwok says that they run, and for each of them a
// process does, with the pod's arguments, and a token of its ServiceAccount that is bound to it.
type installation struct {
	*journey
	parent   *testing.T // outlives the steps, and so do the processes
	extra    []string   // flags that the Deployment has not
	replicas []*replica
	service  *service
}

// replica is a pod of the hub, and the process that stands for it.
type replica struct {
	pod             *corev1.Pod
	process         *localfleet.Process
	charts, metrics string // addresses
}

// TestInstall installs what config/default makes, on an API server with pods and Pod Security, and goes the way of
// an add-on with the Deployment's own arguments and rights, across the end of the replica that leads.
func TestInstall(t *testing.T) {
	beside(t)
	h := startHub(t, hubOptions{name: "hub-install", flux: &localfleet.FluxOptions{NoCrossNamespaceRefs: true}, origins: true, bare: true})
	in := &installation{journey: newJourney(t, h), parent: t, extra: quick}
	apply(t, h.Client, kustomize(t, filepath.Join("..", "config", "default")))
	in.allowSecrets(t)
	in.run(t)
	step(t, "two pods run, restricted, on the Deployment's own terms", in.admitted)
	step(t, "add-ons arrive", in.arrive)
	step(t, "plain manifests arrive", in.manifests)
	step(t, "the policies are on", in.fenced)
	step(t, "a tenant's edits are undone", in.drift)
	step(t, "a change arrives", in.change)
	step(t, "the other replica takes over", in.failOver)
	step(t, "what the hub takes is within its requests", in.measured)
	step(t, "the chart's rendering is applied over it", in.chartOver)
	step(t, "a deselected cluster is cleaned", in.deselect)
	step(t, "plain manifests are uninstalled", in.withoutManifests)
	step(t, "unregistered clusters are cleaned", in.unregister)
}

// allowSecrets has the namespace of the journey's origins register Secrets, as docs/install.md says.
func (in *installation) allowSecrets(t *testing.T) {
	t.Helper()
	apply(t, in.Client, `{apiVersion: v1, kind: Namespace, metadata: {name: tenants, labels: {chandler.dev/register-secrets: "true"}}}`)
}

// run waits until the Deployment is available, and starts a process for each of its pods; the first leads.
func (in *installation) run(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	var pods []corev1.Pod
	soon(t, "the Deployment is available", func() error {
		deployment := in.deployment()
		if err := in.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		if s := deployment.Status; s.ObservedGeneration < deployment.Generation || s.AvailableReplicas != 2 || s.UpdatedReplicas != 2 || s.Replicas != 2 {
			return fmt.Errorf("%+v", s)
		}
		list := &corev1.PodList{}
		err := in.Client.List(ctx, list, client.InNamespace(hubNamespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
		pods = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		if err == nil && len(pods) != 2 {
			err = fmt.Errorf("%d pods", len(pods))
		}
		return err
	})
	if in.service == nil {
		in.service = newService(t)
	}
	in.replicas = nil
	for i := range pods {
		in.start(t, &pods[i])
		soon(t, "a replica leads", func() error {
			_, err := in.leader(t)
			return err
		})
	}
}

func (in *installation) deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "chandler"}}
}

// start starts the process of a pod.
func (in *installation) start(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	kubeconfig, err := in.PodKubeconfig(t.Context(), pod)
	check(t, err)
	file := filepath.Join(workDir, pod.Name+".conf")
	check(t, os.WriteFile(file, kubeconfig, 0o600))
	in.parent.Cleanup(func() { _ = os.Remove(file) })
	r := &replica{pod: pod, charts: address(t), metrics: address(t)}
	var env []string
	for _, e := range pod.Spec.Containers[0].Env {
		value := e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.namespace" {
			value = pod.Namespace
		}
		env = append(env, e.Name+"="+value)
	}
	// Loopback instead of the pod's own addresses; all else is the pod's.
	args := slices.Concat(pod.Spec.Containers[0].Args, in.extra, []string{
		"--allow-target-cidrs=127.0.0.0/8", "--metrics-bind-address=" + r.metrics, "--chart-bind-address=" + r.charts, "--chart-url=http://" + in.service.address(),
	})
	r.process, err = in.RunHub(t.Context(), localfleet.HubOptions{Binary: hubBinary, Kubeconfig: file, Env: env, Args: args})
	check(t, err)
	in.replicas = append(in.replicas, r)
	in.service.add(r.charts)
	in.parent.Cleanup(r.process.Stop)
}

// stop ends all replicas, as a Deployment that goes does.
func (in *installation) stop() {
	for _, r := range in.replicas {
		r.process.Stop()
		in.service.remove(r.charts)
	}
	in.replicas = nil
}

// leader returns who holds the lease.
func (in *installation) leader(t *testing.T) (holder string, err error) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hub.chandler.dev"}}
	if err := in.Client.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
		return "", err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("nobody holds the lease")
	}
	return *lease.Spec.HolderIdentity, nil
}

// admitted: the API server has taken every field for good, the namespace's Pod Security level is restricted, and the Services
// find the pods.
func (in *installation) admitted(t *testing.T) {
	ctx := t.Context()
	ns := &corev1.Namespace{}
	check(t, in.Client.Get(ctx, client.ObjectKey{Name: hubNamespace}, ns))
	if got := ns.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
		t.Errorf("Pod Security enforces %q", got)
	}
	for name, port := range map[string]int32{"chandler": 8082, "chandler-metrics": 8080} {
		soon(t, "Service "+name+" has both pods", func() error {
			list := &discoveryv1.EndpointSliceList{}
			if err := in.Client.List(ctx, list, client.InNamespace(hubNamespace), client.MatchingLabels{discoveryv1.LabelServiceName: name}); err != nil {
				return err
			}
			if len(list.Items) != 1 || len(list.Items[0].Endpoints) != 2 || len(list.Items[0].Ports) != 1 || *list.Items[0].Ports[0].Port != port {
				return fmt.Errorf("%+v", list.Items)
			}
			return nil
		})
	}
	// Every replica serves the chart, whoever leads: the Service knows no difference.
	for _, r := range in.replicas {
		body, err := get(t.Context(), "http://"+r.charts+"/v2/chandler-manifests/manifests/"+manifestchart.Digest())
		check(t, err)
		if body != string(manifestchart.Current().Manifest) {
			t.Errorf("%s serves %q", r.pod.Name, body)
		}
	}
}

// fenced: an administrator is told what a deletion would do, of a Flux object and of the namespace of the set.
func (in *installation) fenced(t *testing.T) {
	releases := &helmv2.HelmReleaseList{}
	check(t, in.Client.List(t.Context(), releases, client.InNamespace("flux-system"), client.HasLabels{hubv1.ClusterKeyLabel}))
	if len(releases.Items) == 0 {
		t.Fatal("the hub has made no HelmRelease")
	}
	for _, tc := range []struct {
		object client.Object
		says   string
	}{
		{&releases.Items[0], "deleting it would uninstall what runs"},
		{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "flux-system"}}, "Namespace flux-system holds AddonSet"},
		{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenants"}}, "Namespace tenants holds ClusterRegistration"},
	} {
		if err := client.NewDryRunClient(in.Client).Delete(t.Context(), tc.object); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("the API server says %v, want %q", err, tc.says)
		}
	}
}

const installedSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: plain, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {tier: prod}}
  rollout: {strategy: AllAtOnce}
  addons: [{name: installed, manifests: {interval: 1h, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: installed}, data: {color: blue}}]}}]
`

func (in *installation) manifests(t *testing.T) {
	apply(t, in.Client, installedSet)
	for reg, c := range in.clusters {
		soon(t, "they are on "+reg, func() error { return wantData(t.Context(), c, "default", "installed", "color", "blue") })
	}
}

func (in *installation) withoutManifests(t *testing.T) {
	set := addonSet("flux-system", "plain")
	check(t, in.Client.Delete(t.Context(), set))
	soon(t, "the set is gone", func() error {
		return errors.Join(approveHeld(t.Context(), in.Client), wantGone(t.Context(), in.Client, set))
	})
	for _, reg := range []string{tenant, plain} {
		check(t, wantNoConfigMap(t.Context(), in.clusters[reg], "default", "installed"))
	}
}

// failOver kills the replica that leads, so that it cannot give the lease back.
func (in *installation) failOver(t *testing.T) {
	before, err := in.leader(t)
	check(t, err)
	first := in.replicas[0]
	in.service.remove(first.charts)
	killed := time.Now()
	first.process.Kill()
	in.replicas = in.replicas[1:]
	in.color = "orange"
	in.set(t, true)
	// The lease is good for 35 s, and is looked at every two; the log says how long it took.
	soon(t, "the other leads", func() error {
		holder, err := in.leader(t)
		if err == nil && holder == before {
			err = errors.New("the killed one holds the lease still")
		}
		return err
	})
	t.Logf("the other replica led %s after the first was killed", time.Since(killed).Round(100*time.Millisecond))
	for reg := range in.clusters {
		soon(t, "the change of meanwhile arrives on "+reg, func() error { return in.has(t.Context(), reg) })
	}
}

var resident = regexp.MustCompile(`(?m)^process_resident_memory_bytes (\S+)$`)

// measured holds the Deployment's request of memory against what the process has, as its own metrics say.
func (in *installation) measured(t *testing.T) {
	deployment := in.deployment()
	check(t, in.Client.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment))
	request := deployment.Spec.Template.Spec.Containers[0].Resources.Requests.Memory().Value()
	for _, r := range in.replicas {
		body, err := get(t.Context(), "http://"+r.metrics+"/metrics")
		check(t, err)
		found := resident.FindStringSubmatch(body)
		if found == nil {
			t.Fatal("/metrics has no process_resident_memory_bytes")
		}
		var bytes float64
		if _, err := fmt.Sscan(found[1], &bytes); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s has %.0f MiB resident", r.pod.Name, bytes/(1<<20))
		if int64(bytes) > request {
			t.Errorf("%s has %.0f bytes resident, and requests %d", r.pod.Name, bytes, request)
		}
	}
}

// chartOver: who comes from kustomize may go on with the chart. No field is one that a live object cannot change.
func (in *installation) chartOver(t *testing.T) {
	apply(t, in.Client, helm(t, in.Cluster, "template", "chandler", chart, "--namespace", hubNamespace))
	deployment := in.deployment()
	check(t, in.Client.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment))
	if deployment.Labels["app.kubernetes.io/managed-by"] != "Helm" {
		t.Errorf("the chart's labels are not there: %v", deployment.Labels)
	}
	for reg := range in.clusters {
		check(t, in.has(t.Context(), reg))
	}
	// The step before has changed the set, and waited for what it brings alone.
	soon(t, "the set is Ready", func() error {
		return condition(t.Context(), in.Client, addonSet("flux-system", "base"), hubv1.ReadyCondition, metav1.ConditionTrue, "")
	})
}

func address(t *testing.T) string {
	t.Helper()
	port, err := localfleet.FreePort()
	check(t, err)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// service stands where kube-proxy would: connections to its address go to its endpoints, one after the other.
type service struct {
	listener  net.Listener
	mu        sync.Mutex
	endpoints []string
	next      int
}

func newService(t *testing.T) *service {
	t.Helper()
	l, err := net.Listen("tcp", address(t))
	check(t, err)
	s := &service{listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.forward(conn)
		}
	}()
	return s
}

func (s *service) address() string { return s.listener.Addr().String() }

func (s *service) add(endpoint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints = append(s.endpoints, endpoint)
}

func (s *service) remove(endpoint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints = slices.DeleteFunc(s.endpoints, func(e string) bool { return e == endpoint })
}

func (s *service) pick() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.endpoints) == 0 {
		return ""
	}
	s.next++
	return s.endpoints[s.next%len(s.endpoints)]
}

func (s *service) forward(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	endpoint := s.pick()
	if endpoint == "" {
		return
	}
	to, err := net.Dial("tcp", endpoint)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() { _, _ = io.Copy(to, conn) }()
	_, _ = io.Copy(conn, to)
}
