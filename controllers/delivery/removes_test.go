// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/guard"
)

// byUID has the API server refuse what names another UID than an object has, which the fake one does not look at.
func (m *fixture) byUID(of *helmv2.HelmRelease) interceptor.Funcs {
	refuse := func(obj client.Object, uid types.UID) error {
		if obj.GetName() == of.Name && uid != "" && uid != of.UID {
			return apierrors.NewConflict(helmv2.GroupVersion.WithResource("helmreleases").GroupResource(), of.Name, nil)
		}
		return nil
	}
	return interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			var o client.DeleteOptions
			if o.ApplyOptions(opts); o.Preconditions != nil && o.Preconditions.UID != nil {
				if err := refuse(obj, *o.Preconditions.UID); err != nil {
					return err
				}
			}
			return c.Delete(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			raw, err := patch.Data(obj)
			m.must(err)
			var named struct{ Metadata metav1.ObjectMeta }
			m.must(json.Unmarshal(raw, &named))
			if err := refuse(obj, named.Metadata.UID); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}
}

// TestRemovesWhatItHasSeen: the cache still shows an object that is to go, by its UID, and that has gone: another hub has uninstalled it, and made
// another one for an add-on of that name, since the set has it again. That one stays, and Flux's orders for it as well.
func TestRemovesWhatItHasSeen(t *testing.T) {
	for name, suspended := range map[string]bool{"Deleted": false, "ResumedFirst": true} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app"), releaseAddon("other")),
				addonsOf(testSet, "2", releaseAddon("other"))[1:]...)...)
			m.settle()
			there := m.object(testCluster, "app").(*helmv2.HelmRelease)
			is := there.DeepCopy()
			is.UID, is.Spec.Suspend = "again", suspended
			m.quietly(func() { m.must(m.api.Update(t.Context(), is)) })
			there.UID, there.Spec.Suspend = "was", suspended
			shown := m.delivery(testCluster, testSet)
			shown.Spec.RevisionName, shown.Spec.Removals = revisionOf(testSet, "2"), []string{guard.Dropped("was")}
			funcs := m.byUID(is)
			funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				switch l := list.(type) {
				case *hubv1.AddonDeliveryList:
					l.Items = []hubv1.AddonDelivery{*shown}
					return nil
				case *helmv2.HelmReleaseList:
					l.Items = []helmv2.HelmRelease{*there, *m.object(testCluster, "other").(*helmv2.HelmRelease)}
					return nil
				}
				return c.List(ctx, list, opts...)
			}
			m.r.Client = interceptor.NewClient(m.api, funcs)
			for range 5 {
				m.must(m.reconcile(testCluster))
				shown.Status = m.delivery(testCluster, testSet).Status
				m.clock.SetTime(m.clock.Now().Add(3500 * time.Millisecond))
			}
			if o := m.object(testCluster, "app"); o == nil || o.GetDeletionTimestamp() != nil || o.(*helmv2.HelmRelease).Spec.Suspend != suspended {
				t.Errorf("it is on its way out, or Flux is to do something else with it: %+v", o)
			}
		})
	}
}
