// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/crdschema"
)

// ofTenant makes what addonsOf returns, with its delivery, one of the cluster's own namespace.
func ofTenant(set string, addons ...map[string]any) []client.Object {
	out := append(addonsOf(set, "1", addons...), client.Object(deliveredTo(testCluster, set, "1")))
	for _, o := range out {
		o.SetNamespace(testCluster.Namespace)
	}
	return out
}

// compiling has a hub that has compiled nothing compile a set of the tenant's for long. It returns how to end that.
func (m *fixture) compiling() (end func()) {
	begun, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	m.restart()
	m.r.Programs = &programs.Cache{Slots: 2, Compile: func(raw []byte, a compile.Author) (*compile.Program, error) {
		if a.Set == "other" {
			close(begun)
			<-release
		}
		return compile.Revision(raw, a)
	}}
	go func() {
		defer close(done)
		_, _ = m.r.Programs.Get("", compile.Author{Namespace: testCluster.Namespace, Set: "other"}, func() ([]byte, error) { return []byte("{}"), nil })
	}()
	<-begun
	return func() { close(release); <-done }
}

// While a tenant's set cannot be compiled because others are, the platform's add-ons come to his cluster. His delivery says nothing of that, and
// what it has delivered stays.
func TestBusyCompilerHoldsUpOneDelivery(t *testing.T) {
	for name, delivered := range map[string]bool{"NotDeliveredYet": false, "Delivered": true} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), ofTenant("mine", releaseAddon("his"))...)...)
			if delivered {
				m.settle()
				m.quietly(func() { m.must(m.api.Delete(t.Context(), m.object(testCluster, "app"))) })
				m.flux()
			}
			end := m.compiling()
			before := m.tenantsDelivery()
			for range 3 {
				result, err := m.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: testCluster})
				if err != nil || result.RequeueAfter == 0 || result.RequeueAfter > programs.Wait {
					t.Errorf("again after %s: %v", result.RequeueAfter, err)
				}
				m.flux()
			}
			if app := m.object(testCluster, "app"); app == nil || app.GetDeletionTimestamp() != nil || (m.object(testCluster, "his") != nil) != delivered || len(m.released) > 0 {
				t.Errorf("the platform's is %v, his is %v, orphaned %v", app, m.object(testCluster, "his"), m.released)
			}
			if d := cmp.Diff(before, m.tenantsDelivery()); d != "" {
				t.Errorf("his delivery says (-want +got):\n%s", d)
			}
			end()
			m.settle()
			if a := m.tenantsDelivery().Status.Addons; len(a) != 1 || a[0].State != hubv1.AddonReady {
				t.Errorf("when it is compiled: %+v", a)
			}
		})
	}
}

// What depends on an add-on of another set waits while that one's set cannot be compiled: it is about to be delivered, and not missing.
func TestBusyCompilerKeepsTheOrderOfSets(t *testing.T) {
	after := kustomizationAddon("after")
	after["dependsOn"] = []any{map[string]any{"addonSet": "a", "name": "first"}}
	m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), append(ofTenant("a", releaseAddon("first")), ofTenant("b", after)...)...)...)
	end, gets := m.compiling(), 0
	m.r.Programs.Schemas = func() *crdschema.Library { // which each program is asked for with
		if gets++; gets == 2 { // a's could not be compiled, and b's can
			end()
		}
		return nil
	}
	m.must(m.reconcile(testCluster))
	if first, o := m.object(testCluster, "first"), m.object(testCluster, "after"); first != nil || o != nil || gets != 3 {
		t.Errorf("first is %v, what comes after it %v; %d programs", first, o, gets)
	}
	m.settle()
	if m.object(testCluster, "first") == nil || m.object(testCluster, "after") == nil {
		t.Errorf("there are %v", m.objects())
	}
}
