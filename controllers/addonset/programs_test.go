// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"testing"
	"testing/synctest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/internal/compile"
)

// TestSetsAreCompiledOnce: a set is compiled when it is new or has changed, and not by each reconcile. While another tenant's is being
// compiled, a tenant's is put off without holding a worker, and the platform's is served.
func TestSetsAreCompiledOnce(t *testing.T) {
	set := func(namespace string) *hubv1.AddonSet {
		s := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "base", Generation: 1, Finalizers: []string{hubv1.Finalizer}}}
		s.Spec.SelectAll = true
		s.Spec.Addons = []hubv1.Addon{{Name: "a", AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(`{"chartRef":{"kind":"OCIRepository","name":"x"}}`)}}}}
		return s
	}
	tenant, other, platform := set("tenant"), set("other"), set("flux-system")
	tenant.UID, other.UID, platform.UID = "t", "o", "p"
	r := newFixture(t, tenant, other, platform)
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		compiled := map[string]int{}
		r.Programs = &programs.Cache{Compile: func(_ []byte, author compile.Author) (*compile.Program, error) {
			if compiled[author.Namespace]++; author.Namespace == "tenant" {
				<-gate
			}
			return &compile.Program{}, nil
		}}
		reconcile := func(s *hubv1.AddonSet) (putOff bool) {
			stored := &hubv1.AddonSet{}
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(s), stored); err != nil {
				t.Error(err)
			}
			result, err := r.Reconcile(t.Context(), stored)
			if err != nil {
				t.Error(err)
			}
			return result.RequeueAfter > 0
		}
		done := make(chan bool)
		go func() { done <- reconcile(tenant) }()
		synctest.Wait()
		if !reconcile(other) {
			t.Error("two tenants' sets are compiled at once")
		}
		for range 3 {
			if reconcile(platform) {
				t.Error("the platform's set waits for a tenant's")
			}
		}
		close(gate)
		if <-done {
			t.Error("the first is put off")
		}
		for range 3 {
			if reconcile(tenant) || reconcile(other) {
				t.Error("they are put off for nothing")
			}
		}
		for namespace, n := range compiled {
			if n != 1 {
				t.Errorf("the set in %s was compiled %d times", namespace, n)
			}
		}
		if len(compiled) != 3 {
			t.Errorf("compiled: %v", compiled)
		}
	})
}
