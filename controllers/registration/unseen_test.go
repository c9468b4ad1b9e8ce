// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// TestUnregisteringReadsByName: a registration that goes has the API server look through no kind of which each cluster has some, and
// still sees a delivery that the cache does not show yet.
func TestUnregisteringReadsByName(t *testing.T) {
	for name, unseen := range map[string]bool{"nothing is left": false, "the cache lacks a delivery": true} {
		t.Run(name, func(t *testing.T) {
			key := types.NamespacedName{Namespace: "fleet", Name: "one"}
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name,
				Finalizers: []string{hubv1.Finalizer}, DeletionTimestamp: &metav1.Time{Time: moment.Add(-time.Hour)}}}
			status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.UnregisteredReason, "", moment.Add(-time.Hour))
			set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}}
			build := func(objects ...client.Object) client.WithWatch {
				b := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithStatusSubresource(reg).WithObjects(objects...)
				for _, o := range []client.Object{&corev1.Namespace{}, &apiextensionsv1.CustomResourceDefinition{}} {
					b = b.WithIndex(o, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
				}
				return b.Build()
			}
			there := []client.Object{reg, set}
			if unseen {
				d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: identity.Delivery(set.Name, key)}}
				d.Spec.AddonSetRef.Name = set.Name
				d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: key.Namespace, Name: key.Name}
				there = append(there, d)
			}
			cached := build(reg, set)
			var listed []string
			live := interceptor.NewClient(build(there...), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					o := client.ListOptions{}
					if o.ApplyOptions(opts); o.FieldSelector == nil {
						listed = append(listed, fmt.Sprintf("%T", list))
					}
					return c.List(ctx, list, opts...)
				}})
			r := &Reconciler{Client: cached, Live: live, Clock: clocktesting.NewFakePassiveClock(moment), Recorder: events.NewFakeRecorder(10),
				Pool:   probe.NewPool(probe.PoolOptions{}),
				Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}}}
			for range 3 {
				got := &hubv1.ClusterRegistration{}
				if err := cached.Get(t.Context(), key, got); apierrors.IsNotFound(err) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if _, err := r.finalize(t.Context(), got, nil, origin.Verdict{Origin: teardown.OriginNone}); err != nil {
					t.Fatal(err)
				}
			}
			err := cached.Get(t.Context(), key, &hubv1.ClusterRegistration{})
			if left := err == nil; left != unseen {
				t.Errorf("it is there: %t (%v)", left, err)
			}
			if len(listed) > 0 {
				t.Errorf("it lists %v of the whole fleet", listed)
			}
		})
	}
}
