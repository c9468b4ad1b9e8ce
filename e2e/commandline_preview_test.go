// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/facade"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// previewedFleets is how many fleets TestPreviewIsWhatHappens draws, unless CHANDLER_FLEETS says otherwise.
const previewedFleets = 6

// TestPreviewIsWhatHappens draws fleets, lets a hub deliver them, and holds `chandler render` to what the hub has made: every Flux
// object, source and chart, byte for byte. Each fleet is looked at twice: when it is new, from the files that somebody applied and
// what the hub found out about the clusters; and after edits, pauses, a drain and late sets, from a dump of all that is there.
func TestPreviewIsWhatHappens(t *testing.T) {
	expect.AtNight(t, "TestCommandLine, with one fleet, to the byte; internal/diff and internal/cli/diff")
	beside(t)
	n := previewedFleets
	if text := os.Getenv("CHANDLER_FLEETS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		check(t, err)
	}
	dice := rand.New(rand.NewPCG(seed(t), 0))
	target := workload(t, "workload-a")
	p := &previewed{hub: startHub(t, hubOptions{name: "hub-preview", origins: true, args: []string{"--removal-delay=2s"}})}
	front, err := facade.New(target.Config)
	check(t, err)
	t.Cleanup(front.Close)
	p.front = front
	namespace(t, p.Client, "fleet")
	ready, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); p.flux(ready) }()
	t.Cleanup(func() { stop(); <-over })
	for i := range n {
		fleet := drawFleet(dice, i)
		p.play(t, fleet)
		if t.Failed() {
			t.Fatalf("fleet %d:\n%s", i, fleet)
		}
	}
	t.Logf("%d fleets, with %d objects of the hub compared", n, p.compared)
}

// previewed is a hub without Flux, whose clusters are one API server under many names.
type previewed struct {
	*hub
	front    *facade.Facade
	compared int
}

// flux stands in for Flux: it calls everything Ready, so that no gate stays closed.
func (p *previewed) flux(ctx context.Context) {
	for ctx.Err() == nil {
		for _, k := range fluxKinds[:2] {
			list := unstructuredList(k.apiVersion, k.kind)
			if p.Client.List(ctx, list, client.HasLabels{hubv1.ClusterKeyLabel}) != nil {
				continue
			}
			for i := range list.Items {
				u := &list.Items[i]
				if seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); seen == u.GetGeneration() {
					continue
				}
				u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration(), "conditions": []any{map[string]any{
					"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "as it were",
					"observedGeneration": u.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}}
				_ = p.Client.Status().Update(ctx, u) // the next round tries again
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// play delivers a fleet, compares it in both states, and removes it again.
func (p *previewed) play(t *testing.T, f *drawnFleet) {
	t.Helper()
	apply(t, p.Client, f.foreign())
	apply(t, p.Client, f.sets(f.early)) // before the clusters, so that none of two equal sets comes first by chance
	p.settled(t)
	p.register(t, f, f.first)
	p.settled(t)
	p.same(t, f, "new", func(path string) { p.saveNew(t, f, path) })
	p.change(t, f)
	p.settled(t)
	p.same(t, f, "changed", func(path string) { p.saveAll(t, path) })
	p.clear(t)
}

// register makes the clusters, and waits until the hub knows them.
func (p *previewed) register(t *testing.T, f *drawnFleet, clusters []*drawnCluster) {
	t.Helper()
	for _, c := range clusters {
		apply(t, p.Client, c.yaml()) // first, so that no set selects it by the labels of its origin alone
		kubeconfig, err := p.front.KubeConfig(fmt.Sprintf("f%d-%s", f.number, c.is))
		check(t, err)
		if c.capi {
			check(t, localfleet.CAPICluster(t.Context(), p.Client, "fleet", c.name, map[string]string{hubv1.RegisterLabel: "true"}, kubeconfig))
		} else {
			check(t, p.Client.Create(t.Context(), secret("fleet", c.name+"-login", map[string][]byte{"value": kubeconfig})))
		}
	}
	soon(t, "the clusters have answered", func() error {
		for _, c := range clusters {
			reg := registration("fleet", c.name)
			if err := p.Client.Get(t.Context(), client.ObjectKeyFromObject(reg), reg); err != nil {
				return err
			}
			if reg.Status.ClusterUID == "" || reg.Status.Credential == nil {
				return fmt.Errorf("%s has not", c.name)
			}
		}
		return nil
	})
}

// change does to a fleet what people do later. What the hub does first is decided before there is more to do.
func (p *previewed) change(t *testing.T, f *drawnFleet) {
	t.Helper()
	for _, c := range f.first {
		if c.edit != nil {
			c.edit(c)
			apply(t, p.Client, c.yaml())
		}
		if c.drained {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
				"metadata": map[string]any{"namespace": "fleet", "name": c.name}}}
			check(t, patched(u, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, hubv1.DrainAnnotation))(t.Context(), p.Client))
		}
	}
	soon(t, "pauses and drains are known", func() error {
		for _, c := range f.first {
			reg := registration("fleet", c.name)
			if err := p.Client.Get(t.Context(), client.ObjectKeyFromObject(reg), reg); err != nil {
				return err
			}
			if c.paused != (status.Reason(reg, hubv1.SuspendedCondition) != "") || c.drained != (status.Reason(reg, hubv1.DrainingCondition) != "") {
				return fmt.Errorf("%s is not yet what it is to be", c.name)
			}
		}
		return nil
	})
	p.settled(t)
	p.register(t, f, f.last)
	for _, s := range f.early {
		if s.edit != nil {
			s.edit(s)
		}
	}
	apply(t, p.Client, f.sets(f.early))
	apply(t, p.Client, f.sets(f.late))
}

// fluxKinds are the kinds of Flux that the hub makes objects of, each with a label that only its own have.
var fluxKinds = []struct{ apiVersion, kind, label string }{
	{"helm.toolkit.fluxcd.io/v2", "HelmRelease", hubv1.ClusterKeyLabel}, {"kustomize.toolkit.fluxcd.io/v1", "Kustomization", hubv1.ClusterKeyLabel},
	{"source.toolkit.fluxcd.io/v1", "HelmChart", hubv1.ChartLabel}, {"source.toolkit.fluxcd.io/v1", "HelmRepository", hubv1.SourceLabel},
	{"source.toolkit.fluxcd.io/v1", "OCIRepository", hubv1.SourceLabel}, {"source.toolkit.fluxcd.io/v1", "GitRepository", hubv1.SourceLabel},
}

var hubKinds = []struct{ apiVersion, kind, label string }{
	{"chandler.dev/v1alpha1", "AddonSet", ""}, {"chandler.dev/v1alpha1", "ClusterRegistration", ""}, {"chandler.dev/v1alpha1", "AddonDelivery", ""},
	{"cluster.x-k8s.io/v1beta2", "Cluster", ""}, {"v1", "ConfigMap", ""}, {"v1", "Secret", ""},
}

// settled waits until nothing has changed for two seconds.
func (p *previewed) settled(t *testing.T) {
	t.Helper()
	last, since := "", time.Now()
	within(t, 2*time.Minute, "the hub has settled", func() error {
		var b strings.Builder
		for _, k := range append(slices.Clone(hubKinds[:3]), fluxKinds...) {
			list := unstructuredList(k.apiVersion, k.kind)
			if err := p.Client.List(t.Context(), list); err != nil {
				return err
			}
			for _, u := range list.Items {
				fmt.Fprintln(&b, u.GetUID(), u.GetResourceVersion())
			}
		}
		if b.String() != last {
			last, since = b.String(), time.Now()
		}
		if d := time.Since(since); d < 2*time.Second {
			return fmt.Errorf("something has changed %s ago", d)
		}
		return nil
	})
}

// same compares what the command line says of files with what is there. What has just settled may go on once more.
func (p *previewed) same(t *testing.T, f *drawnFleet, state string, save func(path string)) {
	t.Helper()
	dir := t.TempDir()
	var out, errs string
	var n int
	var err error
	for range 4 {
		save(filepath.Join(dir, "dump.yaml"))
		out, errs, _ = chandler(t, "render", "-f", dir)
		if n, err = p.compare(t.Context(), out); err == nil {
			p.compared += n
			return
		}
		p.settled(t)
	}
	t.Errorf("fleet %d, %s: %v\n%s\n%s", f.number, state, err, errs, out)
}

// saveNew writes what somebody applied, with what the hub says of itself and of the clusters.
func (p *previewed) saveNew(t *testing.T, f *drawnFleet, path string) {
	t.Helper()
	kinds := []struct{ apiVersion, kind, label string }{hubKinds[1], hubKinds[3], hubKinds[4], hubKinds[5]}
	p.write(t, path, f.foreign()+f.sets(f.early), kinds)
}

// saveAll writes all that is there, as kubectl get -A -o yaml does.
func (p *previewed) saveAll(t *testing.T, path string) {
	t.Helper()
	p.write(t, path, "", append(slices.Clone(hubKinds), fluxKinds...))
}

func (p *previewed) write(t *testing.T, path, text string, kinds []struct{ apiVersion, kind, label string }) {
	t.Helper()
	var b strings.Builder
	b.WriteString(text)
	for _, k := range kinds {
		list := unstructuredList(k.apiVersion, k.kind)
		check(t, p.Client.List(t.Context(), list))
		for i := range list.Items {
			list.Items[i].SetManagedFields(nil)
			raw, err := yaml.Marshal(list.Items[i].Object)
			check(t, err)
			b.WriteString("---\n" + string(raw))
		}
	}
	check(t, os.WriteFile(path, []byte(b.String()), 0o600))
}

// compare compares what is printed with what the hub has made, and returns how many objects are the same.
func (p *previewed) compare(ctx context.Context, stream string) (int, error) {
	want, stays := map[string]string{}, map[string]bool{}
	for _, doc := range strings.Split(stream, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return 0, err
		}
		if u.Object != nil {
			want[nameOf(u)] = text(u)
		}
	}
	for line := range strings.Lines(stream) { // what the preview does not know the content of
		if rest, ok := strings.CutPrefix(line, "# stays: "); ok {
			name, _, _ := strings.Cut(rest, ": ")
			stays[name] = true
		}
	}
	got := map[string]*unstructured.Unstructured{}
	for _, k := range fluxKinds {
		list := unstructuredList(k.apiVersion, k.kind)
		if err := p.Client.List(ctx, list, client.HasLabels{k.label}); err != nil {
			return 0, err
		}
		for i := range list.Items {
			got[nameOf(&list.Items[i])] = &list.Items[i]
		}
	}
	kept := map[string]bool{} // what something refers to that stays
	var errs []error
	for name := range stays {
		u := got[name]
		if u == nil {
			errs = append(errs, fmt.Errorf("%s is to stay, and is not there", name))
			continue
		}
		delete(got, name)
		for _, path := range [][]string{{"spec", "chartRef", "name"}, {"spec", "sourceRef", "name"}} {
			ref, _, _ := unstructured.NestedString(u.Object, path...)
			kept[ref] = true
		}
	}
	for _, u := range got { // a chart refers to its repository
		if ref, _, _ := unstructured.NestedString(u.Object, "spec", "sourceRef", "name"); kept[u.GetName()] {
			kept[ref] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		u := got[name]
		switch {
		case u == nil:
			errs = append(errs, fmt.Errorf("%s is previewed, and not there", name))
		case text(applied(u)) != want[name]:
			errs = append(errs, fmt.Errorf("%s is previewed as\n%s\nand is\n%s", name, want[name], text(applied(u))))
		}
		delete(got, name)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if !kept[got[name].GetName()] {
			errs = append(errs, fmt.Errorf("%s is there, and not previewed", name))
		}
	}
	if len(want) == 0 {
		errs = append(errs, errors.New("nothing is previewed"))
	}
	return len(want), errors.Join(errs...)
}

func nameOf(u *unstructured.Unstructured) string {
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// notes are annotations in which the hub keeps what an object has been through.
var notes = []string{hubv1.AppliedAsAnnotation, hubv1.SuspendedAnnotation}

// text is what a hub decides of an object: its name, labels, annotations and spec.
func text(u *unstructured.Unstructured) string {
	a := u.GetAnnotations()
	for _, name := range notes {
		delete(a, name)
	}
	raw, err := yaml.Marshal(map[string]any{"name": nameOf(u), "labels": u.GetLabels(), "annotations": a, "spec": u.Object["spec"]})
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// applied returns an object with the fields that the hub has applied, and without what the API server has added.
func applied(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	for _, m := range u.GetManagedFields() {
		if m.Manager != hubv1.FieldManager || m.Subresource != "" {
			continue
		}
		var fields map[string]any
		if yaml.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			return out
		}
		spec, _ := fields["f:spec"].(map[string]any)
		out.Object["spec"] = owned(u.Object["spec"], spec)
	}
	return out
}

func owned(v any, fields map[string]any) any {
	m, ok := v.(map[string]any)
	if !ok || len(fields) == 0 {
		return v
	}
	out := map[string]any{}
	for k, inner := range fields {
		if name, ok := strings.CutPrefix(k, "f:"); ok && m[name] != nil {
			below, _ := inner.(map[string]any)
			out[name] = owned(m[name], below)
		}
	}
	return out
}

// clear removes a fleet.
func (p *previewed) clear(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	// The clusters first: a registration that its origin asks for would be made again. Both before the sets, so that no pause holds anything.
	cluster := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster"}}
	check(t, p.Client.DeleteAllOf(ctx, cluster, client.InNamespace("fleet")))
	check(t, p.Client.DeleteAllOf(ctx, &hubv1.ClusterRegistration{}, client.InNamespace("fleet")))
	for _, ns := range []string{"flux-system", "fleet"} {
		check(t, p.Client.DeleteAllOf(ctx, &hubv1.AddonSet{}, client.InNamespace(ns)))
	}
	within(t, 2*time.Minute, "the fleet is gone", func() error {
		for _, k := range append(slices.Clone(hubKinds[:4]), fluxKinds...) {
			list := unstructuredList(k.apiVersion, k.kind)
			if err := p.Client.List(ctx, list); err != nil {
				return err
			}
			for i := range list.Items {
				if l := list.Items[i].GetLabels(); l[hubv1.ClusterKeyLabel] == "" && k.kind == "HelmRelease" {
					check(t, client.IgnoreNotFound(p.Client.Delete(ctx, &list.Items[i])))
				}
			}
			if n := len(list.Items); n > 0 {
				return fmt.Errorf("%d %ss are left, such as %s", n, k.kind, nameOf(&list.Items[0]))
			}
		}
		return nil
	})
	check(t, p.Client.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace("fleet")))
	check(t, p.Client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("flux-system")))
}
