// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/faultproxy"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// The sets, each with one Kustomization and one HelmRelease, and what happens to them while a cluster is at fault. Each
// selects by a label of its own name.
const (
	arriving = "flt-arriving" // selects the cluster
	changing = "flt-changing" // gets another value
	leaving  = "flt-leaving"  // selects it no more
)

const faultsSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: %[1]s, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {%[1]s: "yes"}}
  rollout: {strategy: AllAtOnce}
  removalGuard: {mode: "Off"} # more clusters come and go here in a few minutes than should anywhere in an hour
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}, {name: fleet, kind: GitRepository, spec: {url: $GIT, ref: {branch: main}}}]
  addons:
    - {name: %[1]s-chart, helmRelease: {chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: "<< cluster.labels.color >>"}}}
    - {name: %[1]s-git, kustomization: {path: ./%[1]s, sourceRef: {name: fleet}, postBuild: {substitute: {color: "<< cluster.labels.color >>"}}}}
`

// ward is one workload cluster behind a proxy, where faults are tried one after the other, each on a registration of its own.
type ward struct {
	*faults
	cluster *localfleet.Cluster
	proxy   *faultproxy.Proxy
}

func (f *faults) ward(t *testing.T, cluster string) *ward {
	w := &ward{faults: f, cluster: workload(t, cluster)}
	port, err := localfleet.FreePort()
	check(t, err)
	now := time.Now()
	o := faultproxy.Options{Address: fmt.Sprintf("127.0.0.1:%d", port), Target: strings.TrimPrefix(w.cluster.Server(), "https://")}
	o.Certificate, err = w.cluster.ServingCertificate(now.Add(-time.Hour), now.Add(24*time.Hour))
	check(t, err)
	o.Outdated, err = w.cluster.ServingCertificate(now.Add(-48*time.Hour), now.Add(-24*time.Hour))
	check(t, err)
	w.proxy, err = faultproxy.Start(o)
	check(t, err)
	t.Cleanup(func() { _ = w.proxy.Close() })
	return w
}

// kubeconfig leads to the proxy.
func (w *ward) kubeconfig(t *testing.T) []byte {
	t.Helper()
	raw := kubeconfigOf(t, w.cluster)
	return bytes.ReplaceAll(raw, []byte(w.cluster.Server()), []byte(w.proxy.URL()))
}

// patient is a registration of a ward's cluster, in a namespace of its own name.
type patient struct {
	*ward
	name string
	// origin is a Cluster or a TenantControlPlane.
	origin *unstructured.Unstructured
	secret string
}

// admit labels a cluster, of which Cluster API or Kamaji has made the objects.
func (w *ward) admit(t *testing.T, name, kind string, kubeconfig []byte) *patient {
	t.Helper()
	p := &patient{ward: w, name: name, origin: &unstructured.Unstructured{}, secret: name + "-kubeconfig"}
	namespace(t, w.Client, name)
	labels := map[string]string{hubv1.RegisterLabel: "true", changing: "yes", leaving: "yes", "color": "blue"}
	p.origin.SetNamespace(name)
	p.origin.SetName(name)
	p.origin.SetKind(kind)
	if kind == "TenantControlPlane" {
		p.secret = name + "-admin-kubeconfig"
		p.origin.SetAPIVersion("kamaji.clastix.io/v1alpha1")
		check(t, localfleet.Tenant(t.Context(), w.Client, name, name, labels, kubeconfig))
		return p
	}
	p.origin.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	check(t, localfleet.CAPICluster(t.Context(), w.Client, name, name, labels, kubeconfig))
	return p
}

// label changes labels of the origin; nil takes one off.
func (p *patient) label(t *testing.T, labels map[string]any) {
	t.Helper()
	p.patch(t, map[string]any{"metadata": map[string]any{"labels": labels}})
}

func (p *patient) patch(t *testing.T, patch map[string]any) {
	t.Helper()
	raw, err := json.Marshal(patch)
	check(t, err)
	check(t, p.Client.Patch(t.Context(), p.origin.DeepCopy(), client.RawPatch(types.MergePatchType, raw)))
}

// act does at one moment all that is to be done while the cluster is at fault: a set comes, one is changed, one goes.
func (p *patient) act(t *testing.T) {
	t.Helper()
	p.label(t, map[string]any{arriving: "yes", "color": "green", leaving: nil})
}

// has wants what a set delivers to be on the cluster, with a color.
func (p *patient) has(ctx context.Context, set, color string) error {
	return errors.Join(wantData(ctx, p.cluster, set+"-chart", set+"-chart", "color", color), wantData(ctx, p.cluster, "default", set+"-git", "color", color))
}

// lacks wants nothing of a set to be on the cluster.
func (p *patient) lacks(ctx context.Context, set string) error {
	return errors.Join(wantNoConfigMap(ctx, p.cluster, set+"-chart", set+"-chart"), wantNoConfigMap(ctx, p.cluster, "default", set+"-git"))
}

// objects returns the Flux objects for the cluster, by kind and name.
func (p *patient) objects(ctx context.Context) ([]client.Object, error) {
	releases, kustomizations := &helmv2.HelmReleaseList{}, &kustomizev1.KustomizationList{}
	of := client.MatchingLabels{hubv1.ClusterLabel: p.name}
	if err := errors.Join(p.Client.List(ctx, releases, of), p.Client.List(ctx, kustomizations, of)); err != nil {
		return nil, err
	}
	var out []client.Object
	for i := range releases.Items {
		out = append(out, &releases.Items[i])
	}
	for i := range kustomizations.Items {
		out = append(out, &kustomizations.Items[i])
	}
	return out, nil
}

func (p *patient) noObjects(ctx context.Context) error {
	objects, err := p.objects(ctx)
	if err != nil || len(objects) == 0 {
		return err
	}
	names := make([]string, 0, len(objects))
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	return fmt.Errorf("there are Flux objects: %s", strings.Join(names, ", "))
}

// stilled wants Flux to leave the cluster alone: its objects are suspended, but for those that are being deleted, which
// suspending would orphan.
func (p *patient) stilled(ctx context.Context) error {
	objects, err := p.objects(ctx)
	if err != nil {
		return err
	}
	for _, o := range objects {
		suspended := false
		switch o := o.(type) {
		case *helmv2.HelmRelease:
			suspended = o.Spec.Suspend
		case *kustomizev1.Kustomization:
			suspended = o.Spec.Suspend
		}
		if !suspended && o.GetDeletionTimestamp().IsZero() {
			return fmt.Errorf("%s is not suspended", o.GetName())
		}
	}
	return nil
}

// state wants every add-on of a set in a state.
func (p *patient) state(ctx context.Context, set string, state hubv1.AddonState, text string) error {
	list := &hubv1.AddonDeliveryList{}
	if err := p.Client.List(ctx, list, client.MatchingLabels{hubv1.AddonSetLabel: set, hubv1.ClusterLabel: p.name}); err != nil || len(list.Items) != 1 {
		return fmt.Errorf("%d deliveries of %s (%v)", len(list.Items), set, err)
	}
	d := list.Items[0]
	addons := d.Status.Addons
	if d.Status.ObservedGeneration != d.Generation {
		return fmt.Errorf("the status of delivery %s is of generation %d, and there is %d", d.Name, d.Status.ObservedGeneration, d.Generation)
	}
	if len(addons) == 0 || slices.ContainsFunc(addons, func(a hubv1.AddonStatus) bool { return a.State != state || !strings.Contains(a.Message, text) }) {
		return fmt.Errorf("add-ons of %s are %+v, want %s", set, addons, state)
	}
	return nil
}

func (p *patient) noDelivery(ctx context.Context, set string) error {
	list := &hubv1.AddonDeliveryList{}
	err := p.Client.List(ctx, list, client.MatchingLabels{hubv1.AddonSetLabel: set, hubv1.ClusterLabel: p.name})
	if err == nil && len(list.Items) > 0 {
		err = fmt.Errorf("its delivery is still there: %+v", list.Items[0].Status.Addons)
	}
	return err
}

func (p *patient) condition(ctx context.Context, typ string, status metav1.ConditionStatus, reason string) error {
	return condition(ctx, p.Client, registration(p.name, p.name), typ, status, reason)
}

// discharge unregisters the cluster, which cleans it, and removes what belonged to it.
func (p *patient) discharge(t *testing.T) {
	t.Helper()
	p.label(t, map[string]any{hubv1.RegisterLabel: "false"})
	p.promise(t, p.name, "is unregistered, and cleaned", expect.Patience, func(ctx context.Context) error {
		return errors.Join(wantGone(ctx, p.Client, registration(p.name, p.name)), p.noObjects(ctx), p.lacks(ctx, changing), p.lacks(ctx, arriving), p.lacks(ctx, leaving))
	})
}

// promise waits for what was promised, and notes how long it took.
func (f *faults) promise(t *testing.T, fault, what string, limit time.Duration, kept func(context.Context) error) {
	t.Helper()
	start := time.Now()
	within(t, limit, what, func() error { return kept(t.Context()) })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, []string{fault, what, time.Since(start).Round(100 * time.Millisecond).String(), limit.Round(time.Second).String()})
}

// report prints what was promised, how long it took and how long it may.
func (f *faults) report(t *testing.T) {
	t.Helper()
	slices.SortStableFunc(f.kept, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "fault\tpromise\ttook\tat most")
	for _, row := range f.kept {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	t.Log("\n" + table.String())
}

// orphaned wants an event that names an add-on which was left on the cluster, and says something about that.
func (p *patient) orphaned(ctx context.Context, addon, says string) error {
	events := &eventsv1.EventList{}
	if err := p.Client.List(ctx, events); err != nil {
		return err
	}
	var others []string
	for _, e := range events.Items {
		if !strings.Contains(e.Note, p.name+"/"+p.name) {
			continue
		}
		if e.Reason == hubv1.AddonOrphanedEvent && strings.Contains(e.Note, fmt.Sprintf("%q", addon)) && strings.Contains(e.Note, says) {
			return nil
		}
		others = append(others, fmt.Sprintf("%s: %s", e.Reason, e.Note))
	}
	return fmt.Errorf("no event says that %s is left on %s (%q); there are\n%s\nand the hub logged of events\n%s", addon, p.name, says,
		strings.Join(others, "\n"), strings.Join(p.logged("event"), "\n"))
}

// logged returns the errors in the hub's log that mention something.
func (p *patient) logged(what string) (lines []string) {
	raw, err := os.ReadFile(p.process.Log)
	if err != nil {
		return []string{err.Error()}
	}
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, `"level":"ERROR"`) && strings.Contains(line, what) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// sweep removes what was left on the cluster, with Helm's own records: others come after.
func (p *patient) sweep(t *testing.T) {
	t.Helper()
	for _, set := range []string{changing, leaving, arriving} {
		check(t, p.cluster.Client.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(set+"-chart"), client.MatchingLabels{"owner": "helm"}))
		for namespace, name := range map[string]string{set + "-chart": set + "-chart", "default": set + "-git"} {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			check(t, client.IgnoreNotFound(p.cluster.Client.Delete(t.Context(), cm)))
		}
	}
}
