// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// moving is a controller in which set old delivers add-on app. move then has set new deliver it, as renamed.
func moving(t *testing.T, app, renamed map[string]any) *fixture {
	renamed["movedFrom"] = []any{map[string]any{"addonSet": "old", "name": "app"}}
	objects := append(addonsOf("old", "1", app), addonsOf("old", "2", releaseAddon("other"))[1:]...)
	objects = append(objects, addonsOf("new", "1", renamed)...)
	m := newFixture(t, append(objects, registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, "old", "1"))...)
	m.settle()
	if m.object(testCluster, "app") == nil {
		t.Fatal("it has not been delivered")
	}
	return m
}

func (m *fixture) move() {
	edit(m, "flux-system", m.delivery(testCluster, "old").Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf("old", "2") })
	m.quietly(func() { m.must(m.api.Create(m.t.Context(), deliveredTo(testCluster, "new", "1"))) })
}

// pause has the registration controller pause the cluster, or end the pause.
func (m *fixture) pause(paused bool) {
	edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(reg *hubv1.ClusterRegistration) {
		if !paused {
			apimeta.RemoveStatusCondition(&reg.Status.Conditions, hubv1.SuspendedCondition)
			return
		}
		apimeta.SetStatusCondition(&reg.Status.Conditions, metav1.Condition{
			Type: hubv1.SuspendedCondition, Status: metav1.ConditionTrue, Reason: hubv1.PausedReason, Message: "paused", LastTransitionTime: metav1.NewTime(m.clock.Now()),
		})
	})
}

// What a set is to take over stays while nobody knows what is in its revision, and goes on when somebody does. A cache that is behind is not
// enough for that: the revision is read live.
func TestHandOverToARevisionThatIsNotKnown(t *testing.T) {
	gone := func(m *fixture) {
		m.quietly(func() {
			m.must(m.api.Delete(t.Context(), &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: revisionOf("new", "1")}}))
		})
	}
	behind := func(m *fixture) {
		m.r.Client = interceptor.NewClient(m.api, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if key.Name == revisionOf("new", "1") {
					return apierrors.NewNotFound(appsv1.Resource("controllerrevisions"), key.Name)
				}
				return c.Get(ctx, key, obj, opts...)
			},
		})
	}
	for name, tc := range map[string]struct {
		of    func(*fixture)
		known bool
	}{
		"Gone": {of: gone}, "Unreadable": {of: func(m *fixture) { m.unreadable("*v1.ControllerRevision " + revisionOf("new", "1")) }},
		"NotInTheCache": {of: behind, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := moving(t, releaseAddon("app"), releaseAddon("renamed"))
			tc.of(m)
			m.move()
			m.settle()
			if o := m.object(testCluster, "app"); len(m.uninstalled) > 0 || (o == nil) != tc.known || (m.object(testCluster, "renamed") != nil) != tc.known {
				t.Errorf("uninstalled %v, orphaned %v; the old object: %v", m.uninstalled, m.released, o)
			}
		})
	}
}

// TestMovedKeepsItsObject: an add-on that is moved to another set, under another name, goes on with the object that is there, also if its
// cluster is paused meanwhile; the next add-on of the old name has an object of its own.
func TestMovedKeepsItsObject(t *testing.T) {
	for name, addon := range map[string]func(string, ...map[string]any) map[string]any{"HelmRelease": releaseAddon, "Kustomization": kustomizationAddon} {
		t.Run(name, func(t *testing.T) {
			m := moving(t, addon("app"), addon("renamed"))
			there := m.object(testCluster, "app")
			m.pause(true)
			m.move()
			m.settle()
			m.pause(false)
			m.settle()
			o := there.DeepCopyObject().(client.Object)
			m.must(m.api.Get(t.Context(), client.ObjectKeyFromObject(there), o))
			if o.GetUID() != there.GetUID() || o.GetLabels()[hubv1.AddonLabel] != "renamed" || o.GetLabels()[hubv1.AddonSetLabel] != "new" {
				t.Errorf("it is %s, with labels %v", o.GetUID(), o.GetLabels())
			}
			if len(m.released)+len(m.uninstalled) > 0 || len(m.objects()) != 2 {
				t.Errorf("orphaned %v, uninstalled %v; there are %v", m.released, m.uninstalled, m.objects())
			}
			edit(m, "flux-system", m.delivery(testCluster, "old").Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf("old", "1") })
			m.settle()
			again := m.object(testCluster, "app")
			if m.object(testCluster, "renamed") == nil || name == "Kustomization" && (again == nil || again.GetName() == there.GetName()) {
				t.Errorf("what has the old name now is %v", again)
			}
			if name == "HelmRelease" && again != nil { // its Helm release is the other one's
				t.Errorf("two have one release: %v", again)
			}
		})
	}
}

// TestRenamedOnANewCluster: a set that has another add-on under the name that one of its add-ons had before delivers both to a new cluster, also if the
// first try to make the renamed one fails.
func TestRenamedOnANewCluster(t *testing.T) {
	moved := map[string]any{"movedFrom": []any{map[string]any{"name": "web"}}}
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("web"), releaseAddon("nextname", moved))...)
	failed := false
	api := m.r.Client.(client.WithWatch)
	m.r.Client = interceptor.NewClient(api, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
		if !failed && obj.(interface{ GetName() string }).GetName() == identity.FluxObject("hub", testCluster, "nextname") {
			failed = true
			return errors.New("overloaded")
		}
		return c.Apply(ctx, obj, opts...)
	}})
	m.settle()
	for _, a := range m.delivery(testCluster, testSet).Status.Addons {
		if !failed || a.State != hubv1.AddonReady || m.object(testCluster, a.Name) == nil {
			t.Errorf("%s is %s: %s", a.Name, a.State, a.Message)
		}
	}
}
