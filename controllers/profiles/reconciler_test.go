// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/inventory"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
)

// stored reads profiles from an API server in memory.
type stored struct {
	client.Reader
	Origins // of which the rest is not called
}

func (stored) Installed(origin.Kind) bool { return true }

func (s stored) Get(ctx context.Context, _ origin.Kind, key types.NamespacedName) (*unstructured.Unstructured, origin.Verdict, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(inventoryv1alpha1.GroupVersion.WithKind(origin.ClusterProfile.Kind))
	err := s.Reader.Get(ctx, key, u)
	if client.IgnoreNotFound(err) != nil {
		return nil, origin.Verdict{}, err
	}
	if err != nil {
		return nil, origin.Verdict{}, nil
	}
	return u, origin.Verdict{}, nil
}

var _ Origins = &originreader.Reader{}

// TestOriginIsGone: a registration whose ClusterProfile was deleted gets none of its name from the hub. It would be the origin, nobody would see that the
// registration has none, and nobody could write the former one again, since the cluster manager of a profile never changes.
func TestOriginIsGone(t *testing.T) {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one", UID: "u"}}
	ref := origin.ClusterProfile.Reference("one")
	reg.Spec.OriginRef = &ref
	scheme := hubscheme.New()
	must.Do(t, inventoryv1alpha1.AddToScheme(scheme))
	for _, made := range []bool{false, true} { // true: an older hub has
		b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&inventoryv1alpha1.ClusterProfile{}).WithObjects(reg)
		if made {
			b = b.WithObjects(inventory.Spec(reg, "chandler"))
		}
		api := b.Build()
		r := &Reconciler{Client: api, Live: api, Origins: stored{Reader: api}, Recorder: events.NewFakeRecorder(9), Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "chandler"}}}
		must.Get(r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(reg)})).Or(t)
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(reg), &inventoryv1alpha1.ClusterProfile{}); !apierrors.IsNotFound(err) {
			t.Errorf("made before: %t: there is a profile: %v", made, err)
		}
	}
}

// TestCarried: a profile that a tool has carried here from another management cluster, whose hub has the same ID, is not this hub's, though it names the same
// cluster manager. It is neither deleted before it is registered, nor written over when it is. What a registration has left goes.
func TestCarried(t *testing.T) {
	for name, tc := range map[string]struct {
		registered, owned, stays bool
	}{
		"NotRegisteredYet": {stays: true},
		"Registered":       {registered: true, stays: true},
		"Left":             {owned: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := hubscheme.New()
			must.Do(t, inventoryv1alpha1.AddToScheme(scheme))
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one", UID: "u"}}
			ref := origin.ClusterProfile.Reference("one")
			reg.Spec.OriginRef = &ref
			carried := inventory.Spec(reg, "chandler")
			carried.Labels["from"] = "elsewhere"
			carried.Status.Version.Kubernetes = "v1.33.0"
			if !tc.owned {
				carried.OwnerReferences = nil // which lead to nothing here
			}
			b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(carried).WithObjects(carried)
			if tc.registered {
				b = b.WithObjects(reg)
			}
			api := b.Build()
			r := &Reconciler{Client: api, Live: api, Origins: stored{Reader: api}, Recorder: events.NewFakeRecorder(9), Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "chandler"}}}
			must.Get(r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(reg)})).Or(t)
			there := &inventoryv1alpha1.ClusterProfile{}
			err := api.Get(t.Context(), client.ObjectKeyFromObject(reg), there)
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if (err == nil) != tc.stays || tc.stays && (len(there.OwnerReferences) > 0 || there.Status.Version.Kubernetes != "v1.33.0") {
				t.Errorf("it is there: %t, want %t: %+v", err == nil, tc.stays, there)
			}
		})
	}
}
