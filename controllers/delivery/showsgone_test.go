// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// TestCacheShowsDeliveryThatIsGone: somebody has deleted a delivery, and then its Flux object, and the delivery was let go. While the cache still shows
// it, nothing is made for it: its set may be gone as well. What Flux is done with goes afterwards.
func TestCacheShowsDeliveryThatIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		again types.UID // of another delivery that was made in its place
		err   error     // of the live read
	}{
		"Gone": {}, "MadeAgain": {again: "again"}, "NotKnown": {err: errors.New("no answer")},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
			m.settle()
			edit(m, "flux-system", roomSet, &hubv1.AddonSet{}, func(s *hubv1.AddonSet) {
				s.Spec.SelectAll, s.Spec.ClusterSelector = false, &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}
			})
			m.delete(roomCluster, roomSet)
			m.settle()
			m.quietly(func() { m.must(m.api.Delete(t.Context(), m.object(roomCluster, "app"))) })
			m.flux()
			shown := m.delivery(roomCluster, roomSet)
			edit(m, shown.Namespace, shown.Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Finalizers = nil })
			if tc.again != "" {
				other := deliveredTo(roomCluster, roomSet, "1")
				other.UID = tc.again
				m.quietly(func() { m.must(m.api.Create(t.Context(), other)) })
			}
			m.r.Client = interceptor.NewClient(m.api, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if l, ok := list.(*hubv1.AddonDeliveryList); ok {
						l.Items = []hubv1.AddonDelivery{*shown}
						return nil
					}
					return c.List(ctx, list, opts...)
				},
			})
			m.r.Live = interceptor.NewClient(m.api, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if tc.err != nil && key == client.ObjectKeyFromObject(shown) {
						return tc.err
					}
					return c.Get(ctx, key, obj, opts...)
				},
			})
			writes := m.writes
			if err := m.reconcile(roomCluster); !errors.Is(err, tc.err) {
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if o := m.object(roomCluster, "app"); m.writes != writes || o == nil || o.GetDeletionTimestamp() == nil {
				t.Fatalf("%d writes, and its object is %v", m.writes-writes, o)
			}
			m.r.Client, m.r.Live = m.api, m.api // the cache shows it
			m.settle()
			if tc.again == "" && (len(m.objects()) > 0 || len(m.secrets()) > 0) {
				t.Errorf("left: %v, kubeconfigs in %v", m.objects(), m.secrets())
			}
		})
	}
}
