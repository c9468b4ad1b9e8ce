// SPDX-License-Identifier: Apache-2.0

package kamaji

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/examples"
)

// podsSet delivers what needs a node: Helm waits until its pods are Ready.
const podsSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: pods, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {nodes: "yes"}}
  sources: [{name: charts, kind: HelmRepository, spec: {url: %s}}]
  addons:
    - name: hello
      helmRelease:
        interval: 1h
        chart: {spec: {chart: hello, sourceRef: {name: charts}}}
        upgrade: {strategy: {name: RetryOnFailure, retryInterval: 3s}}
        values: {replicaCount: 2, image: "registry.example.org/hello:%s"}
`

// nodeGrace is more than the 50 s, and the 5 s between two looks, after which Kubernetes calls a node NotReady that does not renew its
// lease. All of its pods are unready from then on.
const nodeGrace = time.Minute

func (f *tenants) podsSet() *hubv1.AddonSet {
	return &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "pods"}}
}

func (t *tenant) hello() client.ObjectKey {
	return client.ObjectKey{Namespace: "hello", Name: "hello"}
}

// nodeJoins gives the second tenant a node, and something that runs there.
func (f *tenants) nodeJoins(t *testing.T) {
	joined, err := f.JoinNode(t.Context(), f.two.key)
	expect.NoError(t, err)
	if !joined {
		t.Skip("tenants have no nodes on this platform")
	}
	f.joined = time.Now()
	expect.NoError(t, f.PublishChart(examples.FS, "charts/hello"))
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"nodes":"yes"}}}`))
	expect.NoError(t, f.Client().Patch(t.Context(), f.two.object(), patch))
	f.nextPods(t)
}

// nextPods changes the image of what runs on the node, and waits until its pods are Ready, and all is said to be.
func (f *tenants) nextPods(t *testing.T) {
	t.Helper()
	if f.joined.IsZero() {
		return
	}
	image := "registry.example.org/hello:" + f.name()
	real, err := f.Hello(t.Context(), image)
	expect.NoError(t, err)
	expect.Apply(t, f.Client(), fmt.Sprintf(podsSet, f.ChartsURL(), f.name()))
	f.soon(t, f.name()+" runs on the node", func() error {
		own, err := f.tryClient(t.Context(), f.two)
		if err != nil {
			return err
		}
		d := &appsv1.Deployment{}
		if err := own.Get(t.Context(), f.two.hello(), d); err != nil {
			return err
		}
		if now := d.Spec.Template.Spec.Containers[0].Image; now != image {
			return errors.New("it has the image " + now)
		}
		return available(d)
	})
	f.soon(t, "and is Ready", func() error { return expect.Delivered(t.Context(), f.Client(), f.podsSet(), f.two.key) })
	if real {
		f.helloAnswers(t)
	}
}

// helloAnswers: each pod is reached by the others by the name of their Service, which the tenant's DNS knows. The tests ask the
// first pod through the tenant's API server.
func (f *tenants) helloAnswers(t *testing.T) {
	t.Helper()
	var heard []string
	f.soon(t, "both pods answer by their Service", func() error {
		config, err := f.TenantConfig(t.Context(), f.two.key)
		if err != nil {
			return err
		}
		all, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		hello, from := f.two.hello(), map[string]string{"from": "http://hello.hello.svc.cluster.local"}
		name, err := all.CoreV1().Services(hello.Namespace).ProxyGet("http", hello.Name, "80", "/", from).DoRaw(t.Context())
		if err != nil {
			return fmt.Errorf("%w: %s", err, name)
		}
		pod, err := all.CoreV1().Pods(hello.Namespace).Get(t.Context(), string(name), metav1.GetOptions{})
		if err != nil || pod.DeletionTimestamp != nil {
			return errors.Join(err, fmt.Errorf("it was %q that answered", name))
		}
		if line := pod.Name + " on " + pod.Spec.NodeName; !slices.Contains(heard, line) {
			heard = append(heard, line)
		}
		if len(heard) < 2 {
			return fmt.Errorf("only %v answered", heard)
		}
		return nil
	})
	t.Logf("%v answered", heard)
}

// nodeStays: the node lives longer than one that does not renew its lease, and so does all that runs on it, Kamaji's own add-on too.
func (f *tenants) nodeStays(t *testing.T) {
	if f.joined.IsZero() {
		t.Skip("tenants have no nodes on this platform")
	}
	f.soon(t, "the node is old enough, and Ready with all of its pods", func() error {
		if age := time.Since(f.joined); age < nodeGrace {
			return fmt.Errorf("the node is there since %s", age)
		}
		own, err := f.tryClient(t.Context(), f.two)
		if err != nil {
			return err
		}
		deployments := &appsv1.DeploymentList{}
		if err := own.List(t.Context(), deployments); err != nil {
			return err
		}
		errs := []error{nodesReady(t, own)}
		for i := range deployments.Items {
			errs = append(errs, available(&deployments.Items[i]))
		}
		if n := len(deployments.Items); n < 2 {
			errs = append(errs, fmt.Errorf("there are %d Deployments, want hello and coredns", n))
		}
		return errors.Join(errs...)
	})
	t.Logf("the node is there since %s", time.Since(f.joined).Round(time.Second))
}

func nodesReady(t *testing.T, c client.Client) error {
	nodes := &corev1.NodeList{}
	err := c.List(t.Context(), nodes)
	for _, n := range nodes.Items {
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
				err = errors.Join(err, fmt.Errorf("node %s: Ready is %s (%s: %s)", n.Name, condition.Status, condition.Reason, condition.Message))
			}
		}
	}
	return err
}

// available wants every replica of a Deployment's newest template, and no other.
func available(d *appsv1.Deployment) error {
	want, s := *d.Spec.Replicas, d.Status
	if s.ObservedGeneration < d.Generation || s.Replicas != want || s.UpdatedReplicas != want || s.AvailableReplicas != want {
		return fmt.Errorf("Deployment %s/%s wants %d replicas at generation %d, and has %+v", d.Namespace, d.Name, want, d.Generation, s)
	}
	return nil
}
