// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
)

// longest is what the CRDs take for a condition's message.
const longest = 32_768

// newFixture returns the controller over a fake API server, which refuses messages that a real one refuses.
func newFixture(t *testing.T, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := hubscheme.New()
	byKey := func(o client.Object) []string { return []string{o.GetLabels()[hubv1.ClusterKeyLabel]} }
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	api := indextest.NoTeams(fake.NewClientBuilder().WithScheme(scheme)).WithObjects(objects...).WithStatusSubresource(&hubv1.AddonSet{}, &hubv1.AddonDelivery{}, &hubv1.ClusterRegistration{}).
		WithIndex(&helmv2.HelmRelease{}, index.ClusterKey, byKey).WithIndex(&kustomizev1.Kustomization{}, index.ClusterKey, byKey).
		WithIndex(&corev1.Namespace{}, metav1.ObjectNameField, byName).WithIndex(&apiextensionsv1.CustomResourceDefinition{}, metav1.ObjectNameField, byName).
		WithIndex(&hubv1.AddonDelivery{}, index.DeliverySet, func(o client.Object) []string { return []string{o.(*hubv1.AddonDelivery).Spec.AddonSetRef.Name} }).
		WithIndex(&hubv1.AddonDelivery{}, index.DeliveryRegistration, func(o client.Object) []string {
			return []string{o.(*hubv1.AddonDelivery).Spec.RegistrationRef.Key().String()}
		}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if o, ok := obj.(status.Object); ok {
				for _, c := range *o.GetConditions() {
					if n := utf8.RuneCountInString(c.Message); n > longest {
						return fmt.Errorf("status.conditions[%s].message: Too long: may not be more than %d bytes", c.Type, longest)
					}
				}
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		}}).Build()
	return &Reconciler{
		Client: api, Live: api, Config: &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}, HubID: "chandler"}, Concurrency: 1},
		Clock: testingclock.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)), changed: enqueue.NewBell(enqueue.Itself), Recorder: events.NewFakeRecorder(100),
	}
}

// TestLongErrorsAreTold: somebody renames an add-on that a hundred overlays name. The set says so, shortened, as it would a short error.
func TestLongErrorsAreTold(t *testing.T) {
	body := &apiextensionsv1.JSON{Raw: []byte(`{"chartRef":{"kind":"OCIRepository","name":"x"}}`)}
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", Generation: 2, Finalizers: []string{hubv1.Finalizer}}}
	set.Spec.SelectAll = true
	for i := range 60 {
		set.Spec.Addons = append(set.Spec.Addons, hubv1.Addon{Name: fmt.Sprintf("an-add-on-%02d", i), AddonBody: hubv1.AddonBody{HelmRelease: body}})
	}
	for i := range 100 {
		set.Spec.Overlays = append(set.Spec.Overlays, hubv1.Overlay{
			Name: fmt.Sprintf("overlay-%02d", i), When: "<< true >>", Addons: []hubv1.AddonOverlay{{Name: "renamed", AddonBody: hubv1.AddonBody{HelmRelease: body}}},
		})
	}
	r := newFixture(t, set)
	stored := &hubv1.AddonSet{}
	must.Do(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(set), stored))
	if _, err := r.Reconcile(t.Context(), stored.DeepCopy()); err != nil {
		t.Fatalf("the set cannot report: %.300s", err)
	}
	must.Do(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(set), stored))
	c := status.Find(stored, hubv1.StalledCondition)
	if c == nil || !strings.HasPrefix(c.Message, `overlay "overlay-00", add-on "renamed": there is no add-on of that name`) || !strings.Contains(c.Message, " more characters)") {
		t.Errorf("the set says %+v", c)
	}
}
