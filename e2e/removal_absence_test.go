// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// witness remembers what is on the clusters, to say later that nothing of it was made anew.
type witness map[string]types.UID

func (f *teardownFleet) witness(t *testing.T, names ...string) witness {
	t.Helper()
	w := witness{}
	for _, name := range names {
		for _, cm := range []types.NamespacedName{{Namespace: "td-chart", Name: "td-chart"}, {Namespace: "default", Name: "td-git"}, {Namespace: "td-team", Name: "td-team"}, {Namespace: "default", Name: "td-team-git"}} {
			there := &corev1.ConfigMap{}
			check(t, f.cluster(name).Client.Get(t.Context(), cm, there))
			w[name+" "+cm.String()] = there.UID
		}
	}
	return w
}

func (f *teardownFleet) untouched(t *testing.T, before witness, names ...string) {
	t.Helper()
	for what, uid := range f.witness(t, names...) {
		if before[what] != uid {
			t.Errorf("%s was made anew", what)
		}
	}
}

// nothingTwice wants each cluster to have one Flux object for each add-on.
func (f *teardownFleet) nothingTwice(ctx context.Context, names ...string) error {
	for _, name := range names {
		for _, of := range []string{"helm.toolkit.fluxcd.io/v2 HelmReleaseList", "kustomize.toolkit.fluxcd.io/v1 KustomizationList", "chandler.dev/v1alpha1 AddonDeliveryList"} {
			list := &metav1.PartialObjectMetadataList{}
			_, err := fmt.Sscan(of, &list.APIVersion, &list.Kind)
			if err == nil {
				err = f.Client.List(ctx, list, client.MatchingLabels{hubv1.ClusterLabel: name})
			}
			if err != nil || len(list.Items) != 2 {
				return fmt.Errorf("%d of %s for %s, want 2 (%v)", len(list.Items), of, name, err)
			}
		}
	}
	return nil
}

func (f *teardownFleet) deleteCRD(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		check(t, f.Client.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for _, name := range names {
		soon(t, "CRD "+name+" is gone", func() error {
			return wantGone(t.Context(), f.Client, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}})
		})
	}
}

func (f *teardownFleet) installCRDs(t *testing.T, paths ...string) {
	t.Helper()
	installCRDs(t, f.hub, paths...)
}

// kindOfOrigin: the CRD of an origin goes and comes back, and its objects with it.
func (f *teardownFleet) kindOfOrigin(t *testing.T) {
	ctx := t.Context()
	before := f.witness(t, tenantName)
	reg := f.registration(tenantName)
	check(t, f.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg))
	uid := reg.UID
	f.deleteCRD(t, "tenantcontrolplanes.kamaji.clastix.io")
	soon(t, "it cannot look", func() error {
		return condition(ctx, f.Client, reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.OriginKindNotInstalledReason)
	})
	crds, err := localfleet.CRDs(parts.Kamaji)
	check(t, err)
	f.installCRDs(t, crds...)
	soon(t, "it can look, and nothing is there", func() error {
		return condition(ctx, f.Client, reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.OriginNotFoundReason)
	})
	check(t, f.Client.Delete(ctx, secret(tenantNamespace, tenantName+"-admin-kubeconfig", nil)))
	f.makeOrigin(t, tenantName)
	soon(t, "it goes on when its origin is back", func() error {
		return errors.Join(condition(ctx, f.Client, reg, hubv1.KubeConfigValidCondition, metav1.ConditionTrue, ""), f.ready(ctx, tenantName))
	})
	if reg.UID != uid {
		t.Error("the registration was made anew")
	}
	f.untouched(t, before, tenantName)
}

// ownKinds: somebody deletes the hub's own CRDs, and with them every object that says what is to be where.
func (f *teardownFleet) ownKinds(t *testing.T) {
	ctx := t.Context()
	all := []string{tenantName, capiName, secretName}
	before := f.witness(t, all...)
	f.deleteCRD(t, "addonsets.chandler.dev", "clusterregistrations.chandler.dev", "addondeliveries.chandler.dev")
	f.untouched(t, before, all...)
	f.installCRDs(t, filepath.Join("..", "config", "crd", "bases"))
	soon(t, "the sets can be applied again", func() error {
		return errors.Join(applyAll(ctx, f.Client, f.fill(teardownBase)), applyAll(ctx, f.Client, f.fill(teardownTeam)))
	})
	soon(t, "all goes on", func() error { return errors.Join(f.ready(ctx, all...), f.nothingTwice(ctx, all...)) })
	f.untouched(t, before, all...)
}

// backedUp are the kinds that a backup of the hub holds.
var backedUp = [][2]string{
	{"v1", "Secret"}, {"v1", "ServiceAccount"}, {"kamaji.clastix.io/v1alpha1", "TenantControlPlane"}, {"cluster.x-k8s.io/v1beta2", "Cluster"},
	{"chandler.dev/v1alpha1", "ClusterRegistration"}, {"chandler.dev/v1alpha1", "AddonSet"}, {"chandler.dev/v1alpha1", "AddonDelivery"}, {"apps/v1", "ControllerRevision"},
	{"helm.toolkit.fluxcd.io/v2", "HelmRelease"}, {"kustomize.toolkit.fluxcd.io/v1", "Kustomization"}, {"source.toolkit.fluxcd.io/v1", "HelmChart"},
	{"source.toolkit.fluxcd.io/v1", "HelmRepository"}, {"source.toolkit.fluxcd.io/v1", "OCIRepository"}, {"source.toolkit.fluxcd.io/v1", "GitRepository"},
}

// backup: everything on the hub is lost without a trace, and comes back in any order, without its status and with other UIDs, while the
// hub and Flux are at work.
func (f *teardownFleet) backup(t *testing.T) {
	ctx := t.Context()
	all := []string{tenantName, capiName, secretName}
	before := f.witness(t, all...)
	f.stop()
	objects := f.collect(t)
	f.lose(t, objects)
	f.start(t)
	rand.New(rand.NewPCG(seed(t), 0)).Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	for _, o := range objects {
		f.restore(t, o)
	}
	soon(t, "all goes on", func() error { return errors.Join(f.ready(ctx, all...), f.nothingTwice(ctx, all...)) })
	f.untouched(t, before, all...)
}

func (f *teardownFleet) collect(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	namespaces := map[string]bool{tenantNamespace: true, capiNamespace: true, secretNamespace: true, "td-team": true, "flux-system": true}
	var out []*unstructured.Unstructured
	for _, kind := range backedUp {
		list := unstructuredList(kind[0], kind[1])
		check(t, f.Client.List(t.Context(), list))
		for i := range list.Items {
			if o := &list.Items[i]; namespaces[o.GetNamespace()] && o.GetName() != "default" {
				out = append(out, o)
			}
		}
	}
	return out
}

// lose removes objects so that nobody notices: Flux orphans what is suspended, and the hub is stopped.
func (f *teardownFleet) lose(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	flux := func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "HelmRelease" || o.GetKind() == "Kustomization"
	}
	for _, o := range objects {
		if flux(o) {
			check(t, f.Client.Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))))
			check(t, f.Client.Delete(t.Context(), o.DeepCopy()))
		}
	}
	for _, o := range objects {
		if flux(o) {
			soon(t, o.GetName()+" is lost", func() error { return wantGone(t.Context(), f.Client, o.DeepCopy()) })
		}
	}
	for _, o := range objects {
		if flux(o) {
			continue
		}
		soon(t, o.GetName()+" is lost", func() error {
			err := f.Client.Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			return errors.Join(client.IgnoreNotFound(err), client.IgnoreNotFound(f.Client.Delete(t.Context(), o.DeepCopy())), wantGone(t.Context(), f.Client, o.DeepCopy()))
		})
	}
}

// restore makes an object again, as a restore does: not where one is there already. The status of an origin is its own controller's to
// write again.
func (f *teardownFleet) restore(t *testing.T, saved *unstructured.Unstructured) {
	t.Helper()
	o := saved.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	delete(o.Object, "status")
	err := f.Client.Create(t.Context(), o, client.FieldOwner("restore"))
	if apierrors.IsAlreadyExists(err) {
		return
	}
	check(t, err)
	if status, ok := saved.Object["status"]; ok && (o.GetKind() == "TenantControlPlane" || o.GetKind() == "Cluster") {
		o.Object["status"] = status
		check(t, f.Client.Status().Update(t.Context(), o))
	}
}
