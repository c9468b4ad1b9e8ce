// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// strictNames refuses names as the real client does, before it sends anything (client-go/rest/request.go). The fake client says NotFound.
type strictNames struct{ client.Reader }

func (c strictNames) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if msgs := rest.IsValidPathSegmentName(key.Name); len(msgs) != 0 {
		return fmt.Errorf("invalid resource name %q: %v", key.Name, msgs)
	}
	return c.Reader.Get(ctx, key, obj, opts...)
}

// ofTheTenant returns a set in the registration's namespace, with its revision and its delivery.
func ofTheTenant(set string, addons ...map[string]any) (objects []client.Object, delivery *hubv1.AddonDelivery) {
	objects = addonsOf(set, "1", addons...)
	for _, o := range objects {
		o.SetNamespace(testCluster.Namespace)
	}
	delivery = deliveredTo(testCluster, set, "1")
	delivery.Namespace = testCluster.Namespace
	return append(objects, delivery), delivery
}

// tenantsAddon is an add-on that a tenant may write, after more is put into it.
func tenantsAddon(name string, more map[string]any) map[string]any {
	out := releaseAddon(name, map[string]any{"chartRef": map[string]any{"kind": "OCIRepository", "name": "chart", "namespace": testCluster.Namespace}})
	for k, v := range more {
		out[k] = v
	}
	return out
}

// failsWith returns whether an add-on of a delivery is Failed, and says all of texts.
func failsWith(d *hubv1.AddonDelivery, addon string, texts ...string) bool {
	return slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
		return a.Name == addon && a.State == hubv1.AddonFailed && a.Reason == hubv1.RenderFailedReason &&
			!slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(a.Message, text) })
	})
}

// A tenant's set adopts what no object can be called: that is an error of the one add-on.
func TestAdoptOfNoName(t *testing.T) {
	theirs, d := ofTheTenant("mine", tenantsAddon("bad", map[string]any{"adopt": map[string]any{"name": "a/b"}}), tenantsAddon("good", nil))
	objects := append(theirs, addonsOf(testSet, "1", releaseAddon("falco"))...)
	m := newServedFixture(t, objects...)
	m.r.Live = strictNames{m.api}
	m.settle()
	if m.object(testCluster, "falco") == nil {
		t.Error("the platform's add-on is not there")
	}
	if m.object(testCluster, "good") == nil {
		t.Error("the tenant's other add-on is not there")
	}
	m.must(m.api.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	if !failsWith(d, "bad", "adopt.name", `"a/b"`) {
		t.Errorf("the tenant's delivery says %+v", d.Status.Addons)
	}
}

// The platform's set adopts what tenants have written, and a tenant writes nonsense into it.
func TestAdoptOfAHelmReleaseWithNoKubeConfig(t *testing.T) {
	for _, kubeconfig := range []string{"a/b", ".."} {
		hr := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "one-cert-manager"}}
		hr.Spec.Suspend = true
		hr.Spec.KubeConfig = &fluxmeta.KubeConfigReference{SecretRef: &fluxmeta.SecretKeyReference{Name: kubeconfig}}
		adopting := releaseAddon("cert-manager")
		adopting["adopt"] = map[string]any{"namespace": "<< cluster.namespace >>", "name": "<< cluster.name >>-cert-manager"}
		m := newFixture(t, append(addonsOf(testSet, "1", releaseAddon("falco"), adopting),
			registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), hr, deliveredTo(testCluster, testSet, "1"))...)
		m.r.Live = strictNames{m.api}
		m.settle()
		if m.object(testCluster, "falco") == nil {
			t.Errorf("%s: the platform's other add-on is not there", kubeconfig)
		}
		if d := m.delivery(testCluster, testSet); !failsWith(d, "cert-manager", "HelmRelease fleet/one-cert-manager", "spec.kubeConfig.secretRef.name", fmt.Sprintf("%q", kubeconfig)) {
			t.Errorf("%s: the delivery says %+v", kubeconfig, d.Status.Addons)
		}
	}
}
