// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/must"
)

// TestFinalizeWaitsForDeliveries: a set is deleted while the API server is slow to take a delivery of it. The set must not look for
// what it has to withdraw before that has landed, and none may be made after.
func TestFinalizeWaitsForDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "set", Finalizers: []string{hubv1.Finalizer}}}
		reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one"}}
		key := client.ObjectKeyFromObject(set)
		selector := must.Get(match.New(match.Reach{Namespace: set.Namespace, Platform: true}, &hubv1.AddonSetSpec{SelectAll: true})).Or(t)
		landed := make(chan struct{})
		var applied, looked, deleted int
		r := &Reconciler{
			Config: &hubconfig.Config{},
			Clock:  clock.RealClock{},
			Client: interceptor.NewClient(nil, interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
					return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
				},
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					<-landed
					applied++
					return nil
				},
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					deleted++
					return nil
				},
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return nil
				},
			}),
			Live: interceptor.NewClient(nil, interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
					obj.SetUID(set.UID)
					return nil
				},
				List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
					switch l := list.(type) {
					case *hubv1.AddonDeliveryList:
						looked++
					case *appsv1.ControllerRevisionList:
						l.Items = []appsv1.ControllerRevision{{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: set.UID, Controller: ptr.To(true)}}}}}
					}
					return nil
				},
			}),
		}
		m := &Matcher{Reconciler: r}
		sets := compiled{uid: set.UID, reach: selector.Reach(), selector: selector, everyone: "base-1-e2", newcomers: "base-1-e2"}
		r.registry.put(key, sets)
		deliver := func() {
			if err := m.match(ctx, reg, key, sets, nil); err != nil {
				t.Error(err)
			}
		}
		finalize := func() {
			if err := r.finalize(ctx, set); err != nil {
				t.Error(err)
			}
		}
		go deliver()
		synctest.Wait()
		go finalize()
		synctest.Wait()
		if looked != 0 {
			t.Error("the set looked for its deliveries while one was being made")
		}
		close(landed)
		synctest.Wait()
		if applied != 1 || looked != 1 {
			t.Errorf("%d deliveries were made, and the set looked %d times, want 1 and 1", applied, looked)
		}
		if deleted != 1 {
			t.Error("a revision that the cache does not know yet stays")
		}
		deliver() // by one who had read the registry before
		if applied != 1 {
			t.Error("a delivery was made of a set that is gone")
		}
	})
}
