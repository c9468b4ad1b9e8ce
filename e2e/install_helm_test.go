// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// release is a hub that Helm has installed.
type release struct {
	*installation
	values string // file
}

// TestHelm installs an older chart with Helm, upgrades it, uninstalls it and installs it again, with a fleet that keeps what it has.
func TestHelm(t *testing.T) {
	beside(t)
	h := startHub(t, hubOptions{name: "hub-helm", flux: &localfleet.FluxOptions{}, origins: true, bare: true})
	r := &release{installation: &installation{journey: newJourney(t, h), parent: t}, values: filepath.Join(t.TempDir(), "values.yaml")}
	r.write(t, quick)
	// As docs/install.md has it: Helm makes no namespace with labels.
	apply(t, h.Client, `{apiVersion: v1, kind: Namespace, metadata: {name: chandler-system, labels: {pod-security.kubernetes.io/enforce: restricted}}}`)
	r.helm(t, "install", olderChart(t))
	r.run(t)
	step(t, "add-ons arrive", r.arrive)
	step(t, "plain manifests arrive", r.manifests)
	step(t, "an upgrade brings the new CRDs, and then the new hub", r.upgrade)
	step(t, "a change arrives", r.change)
	step(t, "the hub is uninstalled, and the add-ons stay", r.uninstall)
	step(t, "Flux keeps the add-ons as they are", r.drift)
	step(t, "the hub is installed again, and goes on without a write", r.reinstall)
	step(t, "a deselected cluster is cleaned", r.deselect)
	step(t, "plain manifests are uninstalled", r.withoutManifests)
	step(t, "unregistered clusters are cleaned", r.unregister)
}

// write writes the values with which the hub is installed.
func (r *release) write(t *testing.T, args []string) {
	t.Helper()
	raw, err := yaml.Marshal(map[string]any{
		"secretNamespaces": []string{"*"}, "extraArgs": args, "serviceMonitor": map[string]any{"enabled": true, "labels": map[string]string{"release": "monitoring"}, "interval": "30s"},
	})
	check(t, err)
	check(t, os.WriteFile(r.values, raw, 0o600))
}

func (r *release) helm(t *testing.T, verb, chart string) {
	t.Helper()
	helm(t, r.Cluster, verb, "chandler", chart, "--namespace", hubNamespace, "--values", r.values, "--wait", "--timeout", expect.Patience.String())
}

// olderChart is the chart with CRDs that lack something.
func olderChart(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "chandler")
	check(t, os.CopyFS(dir, os.DirFS(chart)))
	for file, edit := range map[string][2]string{
		"Chart.yaml":                            {"version: 0.1.0\n", "version: 0.0.9\n"},
		"files/crd/chandler.dev_addonsets.yaml": {"    shortNames:\n    - aset\n", ""},
	} {
		path := filepath.Join(dir, filepath.FromSlash(file))
		raw, err := os.ReadFile(path)
		check(t, err)
		if !strings.Contains(string(raw), edit[0]) {
			t.Fatalf("%s has no %q", file, edit[0])
		}
		check(t, os.WriteFile(path, []byte(strings.Replace(string(raw), edit[0], edit[1], 1)), 0o600))
	}
	return dir
}

func (r *release) shortNames(t *testing.T) []string {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	check(t, r.Client.Get(t.Context(), client.ObjectKey{Name: "addonsets.chandler.dev"}, crd))
	return crd.Spec.Names.ShortNames
}

func (r *release) upgrade(t *testing.T) {
	if got := r.shortNames(t); len(got) != 0 {
		t.Fatalf("the older CRD has short names %v: the test shows nothing", got)
	}
	before := time.Now()
	r.write(t, append([]string{"--log-level=debug"}, quick...))
	r.helm(t, "upgrade", chart)
	if got := r.shortNames(t); len(got) != 1 {
		t.Errorf("the upgraded CRD has short names %v", got)
	}
	version := strings.TrimSpace(helm(t, nil, "version", "--template", "{{.Version}}"))
	writes, err := r.Writes("Helm/"+strings.TrimPrefix(version, "v"), before)
	check(t, err)
	lastCRD, deployment := -1, -1
	for i := range writes {
		switch writes[i].ObjectRef.Resource {
		case "customresourcedefinitions":
			lastCRD = i
		case "deployments":
			deployment = i
		}
	}
	if lastCRD < 0 || deployment < lastCRD {
		t.Errorf("of %d writes of Helm the last of a CRD is number %d, and the Deployment's number %d", len(writes), lastCRD, deployment)
	}
	// The Deployment has replaced its pods.
	r.stop()
	r.run(t)
	for _, replica := range r.replicas {
		if args := replica.pod.Spec.Containers[0].Args; !slices.Contains(args, "--log-level=debug") {
			t.Errorf("%s has the arguments %v", replica.pod.Name, args)
		}
	}
}

func (r *release) uninstall(t *testing.T) {
	ctx := t.Context()
	// The replicas are still there when their rights go, as it may well be in life, and must do no harm.
	from := time.Now()
	helm(t, r.Cluster, "uninstall", "chandler", "--namespace", hubNamespace, "--wait", "--timeout", expect.Patience.String())
	r.stop()
	r.withoutRights = append(r.withoutRights, span{from, time.Now()})
	for _, gone := range []client.Object{
		r.deployment(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "chandler"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "chandler-hub"}},
	} {
		check(t, wantGone(ctx, r.Client, gone))
	}
	left, err := ours(ctx, r.Client)
	check(t, err)
	for _, kind := range []string{"ClusterRegistration", "AddonDelivery", "ControllerRevision", "HelmRelease", "Kustomization", "HelmChart", "Secret"} {
		if !strings.Contains(strings.Join(left, ","), kind+" ") {
			t.Errorf("no %s is left on the hub", kind)
		}
	}
	for _, list := range []client.ObjectList{&hubv1.AddonSetList{}, &hubv1.ClusterRegistrationList{}, &hubv1.AddonDeliveryList{}} {
		check(t, r.Client.List(ctx, list))
		if err := noneGoes(list); err != nil {
			t.Error(err)
		}
	}
	for reg, c := range r.clusters {
		check(t, r.has(ctx, reg))
		check(t, wantData(ctx, c, "default", "installed", "color", "blue"))
	}
}

// noneGoes returns an error unless a list has items, and none is being deleted.
func noneGoes(list client.ObjectList) error {
	items, err := meta.ExtractList(list)
	if err == nil && len(items) == 0 {
		err = fmt.Errorf("%T is empty", list)
	}
	for _, item := range items {
		if o := item.(client.Object); o.GetDeletionTimestamp() != nil {
			err = errors.Join(err, fmt.Errorf("%T %s is being deleted", o, o.GetName()))
		}
	}
	return err
}

func (r *release) reinstall(t *testing.T) {
	ctx := t.Context()
	again := time.Now()
	r.helm(t, "install", chart)
	r.run(t)
	r.label(t, "sentinel", "again", tenant)
	soon(t, "the hub is at work again", func() error {
		reg := registration("tenants", tenant)
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg); err != nil || reg.Labels["sentinel"] != "again" {
			return fmt.Errorf("sentinel is %q (%v)", reg.Labels["sentinel"], err)
		}
		return nil
	})
	soon(t, "the hub has nothing left to write", func() error { return r.quiet(5 * time.Second) })
	if writes := r.fluxWrites(t, again); len(writes) > 0 {
		t.Errorf("the hub wrote after it was installed again: %s", strings.Join(writes, ", "))
	}
	r.color = "violet"
	r.set(t, true)
	for reg := range r.clusters {
		soon(t, "a change arrives on "+reg, func() error { return r.has(ctx, reg) })
	}
}
