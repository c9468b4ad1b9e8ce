// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// topologyClass is a ClusterClass with a variable, and topologyCluster a Cluster of it.
const topologyClass = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: LocalClusterTemplate
metadata: {name: local, namespace: $NAMESPACE}
spec: {template: {spec: {color: none}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: LocalControlPlaneTemplate
metadata: {name: local, namespace: $NAMESPACE}
spec: {template: {spec: {}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: local, namespace: $NAMESPACE}
spec:
  infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: LocalClusterTemplate, name: local}}
  controlPlane: {templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: LocalControlPlaneTemplate, name: local}}
  variables: [{name: color, required: true, schema: {openAPIV3Schema: {type: string, enum: [orange, violet]}}}]
  patches:
    - name: color
      definitions:
        - selector: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: LocalClusterTemplate, matchResources: {infrastructureCluster: true}}
          jsonPatches: [{op: replace, path: /spec/template/spec/color, valueFrom: {variable: color}}]
`

const topologyCluster = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: $NAME, namespace: $NAMESPACE, labels: {via: topology, chandler.dev/register: "true"}}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.44.0.0/16]}}
  topology: {classRef: {name: local}, version: v1.36.3, controlPlane: {replicas: 1}, variables: [{name: color, value: $COLOR}]}
`

func (f *capiFleet) topology(t *testing.T) {
	ctx := t.Context()
	apply(t, f.Client, f.set("topology", `<< origin.spec.topology.variables.filter(v, v.name == "color")[0].value >>`))
	f.api.Serve("c2", "c2", f.two)
	f.create(t, "c2", topologyClass)
	for _, color := range []string{"orange", "violet"} {
		f.create(t, "c2", strings.ReplaceAll(topologyCluster, "$COLOR", color))
		soon(t, "Cluster API patches the infrastructure with the variable", func() error { return f.wantInfrastructure(ctx, "c2", color) })
		soon(t, "the variable is in the values", func() error { return f.delivered(ctx, f.two, "c2", color) })
	}
	soon(t, "the registration is Ready", func() error { return f.ready(ctx, "c2") })
	err := applyAll(ctx, f.Client, strings.NewReplacer("$NAMESPACE", "c2", "$NAME", "c2", "$COLOR", "pink").Replace(topologyCluster))
	if !apierrors.IsInvalid(err) {
		t.Errorf("a value that the class does not have: %v", err)
	}
}

// wantInfrastructure wants the one infrastructure of a namespace to have a color.
func (f *capiFleet) wantInfrastructure(ctx context.Context, namespace, color string) error {
	infrastructure, err := f.infrastructure(ctx, namespace)
	if err != nil {
		return err
	}
	if got, _, _ := unstructured.NestedString(infrastructure.Object, "spec", "color"); got != color {
		return fmt.Errorf("LocalCluster %s has color %q, want %q", infrastructure.GetName(), got, color)
	}
	return nil
}

func (f *capiFleet) infrastructure(ctx context.Context, namespace string) (*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta2")
	list.SetKind("LocalClusterList")
	if err := f.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("there are %d LocalClusters in namespace %s", len(list.Items), namespace)
	}
	return &list.Items[0], nil
}

// kamaji makes a Cluster whose control plane is a Kamaji tenant. Kamaji's provider copies the labels of the control plane to the
// tenant, so that both are labelled.
func (f *capiFleet) kamaji(t *testing.T) {
	ctx := t.Context()
	f.api.Serve("c3", "c3", f.tenant)
	text := strings.NewReplacer(
		"apiVersion: controlplane.cluster.x-k8s.io/v1beta2\nkind: LocalControlPlane\nmetadata: {name: $NAME,", "apiVersion: controlplane.cluster.x-k8s.io/v1alpha2\nkind: KamajiControlPlane\nmetadata: {name: $NAME-kcp, labels: {chandler.dev/register: 'true', via: plain},",
		"kind: LocalControlPlane, name: $NAME}", "kind: KamajiControlPlane, name: $NAME-kcp}",
	).Replace(plainCluster)
	f.create(t, "c3", text)
	f.register(t, "c3")
	soon(t, "the tenant is there", func() error {
		tcp := capiObject("kamaji.clastix.io/v1alpha1", "TenantControlPlane", "c3")
		tcp.SetName("c3-kcp")
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(tcp), tcp); err != nil {
			return err
		}
		if l := tcp.GetLabels(); l["chandler.dev/register"] != "true" || l["cluster.x-k8s.io/cluster-name"] != "c3" {
			return fmt.Errorf("it has the labels %v", l)
		}
		return nil
	})
	soon(t, "the add-ons arrive", func() error { return f.delivered(ctx, f.tenant, "c3", f.color) })
	soon(t, "the Cluster's registration is Ready", func() error { return f.ready(ctx, "c3") })
	soon(t, "the tenant says why it has none", func() error { return wantEvent(ctx, f.hub, "c3-kcp", "of Cluster API; label") })
	list := &hubv1.ClusterRegistrationList{}
	check(t, f.Client.List(ctx, list, client.InNamespace("c3")))
	if len(list.Items) != 1 || list.Items[0].Spec.OriginRef.Kind != "Cluster" {
		t.Errorf("there are %d registrations: %+v", len(list.Items), list.Items)
	}
}
