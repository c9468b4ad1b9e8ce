// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/tenure"
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

// shows has the cache show these deliveries, whatever there is.
func (m *room) shows(deliveries ...hubv1.AddonDelivery) {
	m.r.Client = interceptor.NewClient(m.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if l, ok := list.(*hubv1.AddonDeliveryList); ok {
				l.Items = deliveries
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
}

// readsOf counts the live reads of a delivery, which come to err, and returns the count.
func (m *room) readsOf(d *hubv1.AddonDelivery, err error) *int {
	reads := 0
	m.r.Live = interceptor.NewClient(m.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if key == client.ObjectKeyFromObject(d) {
				if reads++; err != nil {
					return err
				}
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	return &reads
}

// vanish has the cluster's delivery go with its finalizer, as the hub that led before lets it go.
func (m *room) vanish() {
	d := m.delivery(roomCluster, roomSet)
	m.quietly(func() {
		d.Finalizers = nil
		m.must(m.api.Update(m.t.Context(), d))
		m.must(client.IgnoreNotFound(m.api.Delete(m.t.Context(), d)))
	})
}

// makeAnother makes another delivery of its name.
func (m *room) makeAnother() {
	d := deliveredTo(roomCluster, roomSet, "1")
	d.UID = "again"
	m.quietly(func() { m.must(m.api.Create(m.t.Context(), d)) })
}

// changeLive has the cluster's delivery changed, which the cache may not show.
func (m *room) changeLive() {
	d := m.delivery(roomCluster, roomSet)
	edit(m, d.Namespace, d.Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Generation += 5 })
}

// TestAChangeOfADeletedDeliveryStopsNothing: whoever may write a delivery that is being deleted, and does so all the time, has nobody wait for
// the cache to show it.
func TestAChangeOfADeletedDeliveryStopsNothing(t *testing.T) {
	m := newServedRoom(t, append(addonsOf(roomSet, "1", releaseAddon("app")), addonsOf("other", "1", releaseAddon("new"))...)...)
	m.settle()
	m.delete(roomCluster, roomSet)
	m.quietly(func() { m.must(m.api.Create(t.Context(), deliveredTo(roomCluster, "other", "1"))) })
	m.shows(*m.delivery(roomCluster, roomSet), *m.delivery(roomCluster, "other"))
	m.changeLive()
	m.must(m.reconcile(roomCluster))
	if m.object(roomCluster, "new") == nil {
		t.Error("what another set delivers there is not made")
	}
}

// TestCacheDoesNotShowDeletion: the hub that led before has let a delivery go that somebody had deleted, with all that it had. The cache does not
// even show the deletion. Nothing is made for it: no object, and no kubeconfig.
func TestCacheDoesNotShowDeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		deleted  bool  // and there still
		again    bool  // another delivery was made in its place
		changed  bool  // it is there still, by another revision
		err      error // of the live read
		mirrored bool  // the kubeconfig is there
	}{
		"Gone": {}, "Deleted": {deleted: true}, "MadeAgain": {again: true}, "NotKnown": {err: errors.New("no answer")},
		"Changed": {changed: true}, "GoneAndMirrored": {mirrored: true}, "NotKnownAndMirrored": {mirrored: true, err: errors.New("no answer")},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
			if tc.mirrored {
				m.settle()
				edit(m, "flux-system", m.object(roomCluster, "app").GetName(), &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) { o.Finalizers = nil })
				m.quietly(func() { m.must(m.api.Delete(t.Context(), m.object(roomCluster, "app"))) })
			}
			shown, mirrors := m.delivery(roomCluster, roomSet), len(m.secrets())
			switch {
			case tc.deleted:
				m.delete(roomCluster, roomSet)
			case tc.changed:
				m.changeLive()
			default:
				m.vanish()
			}
			if tc.again {
				m.makeAnother()
			}
			m.shows(*shown)
			writes, reads := m.writes, m.readsOf(shown, tc.err)
			if err := m.reconcile(roomCluster); !errors.Is(err, tc.err) {
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if m.writes != writes || *reads == 0 || len(m.objects()) > 0 || len(m.secrets()) != mirrors {
				t.Errorf("%d reads, %d writes; there are %v, and kubeconfigs in %v", *reads, m.writes-writes, m.objects(), m.secrets())
			}
		})
	}
}

// TestStillThereIsReadOnce: before what a delivery brings is made, it is read live once, and not at all while nothing is made, or if no other
// process is at work.
func TestStillThereIsReadOnce(t *testing.T) {
	for alone, want := range map[bool]int{false: 1, true: 0} {
		m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"), releaseAddon("other"))...)
		if alone {
			m.r.Tenure = &tenure.Tenure{}
			for ago := time.Minute; ago >= 0; ago -= 5 * time.Second {
				m.r.Tenure.Renew(m.clock.Now().Add(-ago))
			}
		}
		reads := m.readsOf(m.delivery(roomCluster, roomSet), nil)
		m.settle()
		if len(m.objects()) != 2 || *reads != want {
			t.Errorf("alone %t: %d objects, and %d reads, want 2 and %d", alone, len(m.objects()), *reads, want)
		}
	}
}

// TestUpdateMakesNoObject: the cache still shows a Flux object that is gone, and that is to be changed.
func TestUpdateMakesNoObject(t *testing.T) {
	m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
	m.settle()
	shown := m.object(roomCluster, "app").(*helmv2.HelmRelease)
	m.quietly(func() {
		edit(m, shown.Namespace, shown.Name, &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) { o.Finalizers = nil })
		m.must(m.api.Delete(t.Context(), shown.DeepCopy()))
	})
	shown.UID, shown.Generation = "was", shown.Generation+1 // somebody has edited it
	m.r.Client = interceptor.NewClient(m.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if l, ok := list.(*helmv2.HelmReleaseList); ok {
				l.Items = []helmv2.HelmRelease{*shown}
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	if err := m.reconcile(roomCluster); err != nil || m.object(roomCluster, "app") != nil {
		t.Errorf("it was made again (%v)", err)
	}
}

// TestWithdrawnAndMadeAgain: the hub that led before has let a delivery go that was being withdrawn, and there is another one of its name. What the
// cache shows is not reported of that one.
func TestWithdrawnAndMadeAgain(t *testing.T) {
	m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
	m.settle()
	m.withdraw(roomCluster, roomSet)
	shown := m.delivery(roomCluster, roomSet)
	m.vanish()
	m.makeAnother()
	m.shows(*shown)
	writes := m.writes
	if err := m.reconcile(roomCluster); err != nil || m.writes != writes {
		t.Errorf("%d writes (%v); the other one says %+v", m.writes-writes, err, m.delivery(roomCluster, roomSet).Status)
	}
}

// TestAnswerIsOfAnotherDelivery: a delivery that is being withdrawn has been let go, and made again, by the time at which its status is written:
// while something is left of it, or when nothing is. The other one keeps its finalizer.
func TestAnswerIsOfAnotherDelivery(t *testing.T) {
	for name, uninstalled := range map[string]int{"something is left": 0, "nothing is left": 1} {
		t.Run(name, func(t *testing.T) {
			m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
			m.settle()
			m.withdraw(roomCluster, roomSet)
			m.failing = func(what string) (error, bool) {
				if what == "patch status of *v1alpha1.AddonDelivery" && len(m.uninstalled) == uninstalled {
					m.vanish()
					m.makeAnother()
					m.failing = nil
				}
				return nil, false
			}
			for i := 0; i < 20 && m.failing != nil; i++ {
				if i > 5 {
					m.flux()
				}
				m.clock.SetTime(m.clock.Now().Add(3500 * time.Millisecond))
				if err := m.reconcile(roomCluster); err != nil {
					t.Log(err)
				}
			}
			if d := m.delivery(roomCluster, roomSet); d == nil || d.UID != "again" || len(d.Finalizers) == 0 {
				t.Errorf("there is %+v", d)
			}
		})
	}
}
