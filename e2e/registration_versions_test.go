// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
)

// TestOriginVersions upgrades Cluster API under a hub that runs on: from a release that knows only v1beta1 to one that serves
// v1beta1 no more.
func TestOriginVersions(t *testing.T) {
	beside(t)
	ctx := t.Context()
	h := startHub(t, hubOptions{name: "hub-versions", origins: true, noHub: true})
	serve := func(versions ...string) {
		t.Helper()
		crd := &apiextensionsv1.CustomResourceDefinition{}
		check(t, h.Client.Get(ctx, client.ObjectKey{Name: origin.ClusterAPI.CRD}, crd))
		before := crd.DeepCopy()
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			v.Served = false
			for _, served := range versions {
				v.Served = v.Served || v.Name == served
			}
		}
		check(t, h.Client.Patch(ctx, crd, client.MergeFrom(before)))
	}
	// The hub has seen a Cluster when its registration says so; what it has not seen, it does not miss.
	registered := func(name string) func() error {
		return func() error {
			reg := registration(name, name)
			err := h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg)
			if err == nil && reg.Status.OriginUID == "" {
				err = errors.New("its registration has no status.originUID")
			}
			return err
		}
	}
	create := func(version, name string) {
		t.Helper()
		namespace(t, h.Client, name)
		cluster := capiObject("cluster.x-k8s.io/"+version, "Cluster", name)
		cluster.SetLabels(map[string]string{hubv1.RegisterLabel: "true"})
		cluster.Object["spec"] = map[string]any{"clusterNetwork": map[string]any{"serviceDomain": "cluster.local"}}
		soon(t, version+" is served", func() error { return client.IgnoreAlreadyExists(h.Client.Create(ctx, cluster.DeepCopy())) })
	}

	serve("v1beta1")
	create("v1beta1", "old")
	h.start(t)
	soon(t, "a Cluster of v1beta1 is registered", registered("old"))
	reg := registration("old", "old")
	check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg))
	uid := reg.UID

	for _, step := range []struct {
		name   string
		served []string
	}{
		{"both", []string{"v1beta1", "v1beta2"}}, {"next", []string{"v1beta2"}}, {"back", []string{"v1beta1"}},
	} {
		serve(step.served...)
		version := step.served[len(step.served)-1]
		create(version, step.name)
		soon(t, "a new Cluster is registered, step "+step.name, registered(step.name))
		check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg))
		if reg.UID != uid || reg.DeletionTimestamp != nil {
			t.Errorf("the first registration was removed, step %s", step.name)
		}
		check(t, h.Client.Delete(ctx, capiObject("cluster.x-k8s.io/"+version, "Cluster", step.name)))
		soon(t, "it is unregistered when it is deleted, step "+step.name, func() error { return wantGone(ctx, h.Client, registration(step.name, step.name)) })
	}
}
