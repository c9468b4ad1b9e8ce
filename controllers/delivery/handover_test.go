// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
)

// moving is a room in which set old delivers add-on app. move then has set new deliver it, as renamed.
func moving(t *testing.T, app, renamed map[string]any) *room {
	renamed["movedFrom"] = []any{map[string]any{"addonSet": "old", "name": "app"}}
	objects := append(addonsOf("old", "1", app), addonsOf("old", "2", releaseAddon("other"))[1:]...)
	objects = append(objects, addonsOf("new", "1", renamed)...)
	m := newRoom(t, append(objects, registered(roomCluster, "c1"), kubeconfigSecret(roomCluster, "t0"), deliveredTo(roomCluster, "old", "1"))...)
	m.settle()
	if m.object(roomCluster, "app") == nil {
		t.Fatal("it has not been delivered")
	}
	return m
}

func (m *room) move() {
	edit(m, "flux-system", m.delivery(roomCluster, "old").Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf("old", "2") })
	m.quietly(func() { m.must(m.api.Create(m.t.Context(), deliveredTo(roomCluster, "new", "1"))) })
}

// pause has the registration room pause the cluster, or end the pause.
func (m *room) pause(paused bool) {
	edit(m, roomCluster.Namespace, roomCluster.Name, &hubv1.ClusterRegistration{}, func(reg *hubv1.ClusterRegistration) {
		if !paused {
			apimeta.RemoveStatusCondition(&reg.Status.Conditions, hubv1.SuspendedCondition)
			return
		}
		apimeta.SetStatusCondition(&reg.Status.Conditions, metav1.Condition{
			Type: hubv1.SuspendedCondition, Status: metav1.ConditionTrue, Reason: hubv1.PausedReason, Message: "paused", LastTransitionTime: metav1.NewTime(m.clock.Now()),
		})
	})
}

// Nothing changes hands on a cluster that is paused, or whose breaker is open: the new object could not be made, and nobody would
// deliver what the old one has let go. When that is over, it changes hands without being uninstalled.
func TestHandOverWaitsForAPause(t *testing.T) {
	for name, addon := range map[string]func(string, ...map[string]any) map[string]any{"HelmRelease": releaseAddon, "Kustomization": kustomizationAddon} {
		t.Run(name, func(t *testing.T) {
			m := moving(t, addon("app"), addon("renamed"))
			m.pause(true)
			m.move()
			m.settle()
			if o := m.object(roomCluster, "app"); o == nil || o.GetDeletionTimestamp() != nil || m.object(roomCluster, "renamed") != nil {
				t.Fatalf("the old object: %v; let go: %v", o, m.released)
			}
			m.pause(false)
			m.settle()
			if m.object(roomCluster, "app") != nil || m.object(roomCluster, "renamed") == nil || len(m.released) != 1 || len(m.uninstalled) > 0 {
				t.Errorf("after the pause: let go %v, uninstalled %v", m.released, m.uninstalled)
			}
			m.settle()
			if got := m.orphans(roomCluster); len(got) > 0 {
				t.Errorf("what goes on is said to be an orphan: %v", got)
			}
		})
	}
}

// What a set is to take over stays while nobody knows what is in its revision, and goes on when somebody does. A cache that is behind is not
// enough for that: the revision is read live.
func TestHandOverToARevisionThatIsNotKnown(t *testing.T) {
	gone := func(m *room) {
		m.quietly(func() {
			m.must(m.api.Delete(t.Context(), &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: revisionOf("new", "1")}}))
		})
	}
	behind := func(m *room) {
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
		of    func(*room)
		known bool
	}{
		"Gone": {of: gone}, "Unreadable": {of: func(m *room) { m.unreadable("*v1.ControllerRevision " + revisionOf("new", "1")) }},
		"NotInTheCache": {of: behind, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := moving(t, releaseAddon("app"), releaseAddon("renamed"))
			tc.of(m)
			m.move()
			m.settle()
			if o := m.object(roomCluster, "app"); len(m.uninstalled) > 0 || (o == nil) != tc.known || (m.object(roomCluster, "renamed") != nil) != tc.known {
				t.Errorf("uninstalled %v, let go %v; the old object: %v", m.uninstalled, m.released, o)
			}
		})
	}
}

// What has left one hand and never came into the other is told of, however the sets go, and also by a hub that has started again.
func TestHandOverThatIsNotFinished(t *testing.T) {
	for name, addon := range map[string]func(string, ...map[string]any) map[string]any{"HelmRelease": releaseAddon, "Kustomization": kustomizationAddon} {
		t.Run(name, func(t *testing.T) {
			m := moving(t, addon("app"), addon("renamed"))
			m.failing = func(what string) (error, bool) {
				if strings.HasPrefix(what, "apply") {
					return errors.New("an admission webhook denies it"), false
				}
				return nil, false
			}
			m.move()
			m.settle()
			if o := m.object(roomCluster, "app"); o == nil || !fluxstate.Of(o).Finished || m.object(roomCluster, "renamed") != nil {
				t.Fatalf("it is still in one of two hands, or nothing remembers it: %v", o)
			}
			m.restart()
			m.withdraw(roomCluster, "old")
			m.withdraw(roomCluster, "new")
			m.settle()
			if m.delivery(roomCluster, "new") != nil {
				t.Fatalf("the delivery hangs: %+v", m.delivery(roomCluster, "new").Status)
			}
			got := m.orphans(roomCluster)
			if m.object(roomCluster, "app") != nil || len(got) != 1 || got[0].Addon != "app" || len(m.told) == 0 {
				t.Errorf("orphans: %+v, events: %v", got, m.told)
			}
		})
	}
}

// What has come into the other hand, and Flux has not looked at there, Flux would leave behind: it is given the time to look. If it cannot
// make it its own, that is told.
func TestHandOverThatFluxHasNotNoted(t *testing.T) {
	for name, addon := range map[string]func(string, ...map[string]any) map[string]any{"HelmRelease": releaseAddon, "Kustomization": kustomizationAddon} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fails: %t", name, fails), func(t *testing.T) {
				m := moving(t, addon("app"), addon("renamed"))
				m.busy = true
				m.move()
				m.settle()
				if o := m.object(roomCluster, "app"); o == nil || !fluxstate.Of(o).Finished || m.object(roomCluster, "renamed") == nil {
					t.Fatalf("it has not changed hands, or nothing remembers it: %v", o)
				}
				m.restart()
				m.withdraw(roomCluster, "new")
				m.settle()
				if o := m.object(roomCluster, "renamed"); o == nil || o.GetDeletionTimestamp() != nil {
					t.Fatal("it is gone, and Flux has noted nothing")
				}
				if m.busy = fails; fails {
					m.quietly(func() { m.must(m.api.Update(t.Context(), refusing(m.object(roomCluster, "renamed")))) })
				}
				m.settle()
				got := m.orphans(roomCluster)
				if m.object(roomCluster, "app") != nil || m.object(roomCluster, "renamed") != nil || m.delivery(roomCluster, "new") != nil {
					t.Fatalf("it stays: %+v", m.delivery(roomCluster, "new").Status)
				}
				if fails && (len(got) == 0 || len(m.told) == 0) || !fails && (len(got) > 0 || len(m.uninstalled) != 1) {
					t.Errorf("orphans: %+v, uninstalled: %v", got, m.uninstalled)
				}
			})
		}
	}
}

// refusing is what Flux makes of an object whose chart or source it cannot have.
func refusing(obj client.Object) client.Object {
	not := metav1.Condition{Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "ArtifactFailed", Message: "not found"}
	switch o := obj.(type) {
	case *helmv2.HelmRelease:
		apimeta.SetStatusCondition(&o.Status.Conditions, not)
	case *kustomizev1.Kustomization:
		apimeta.SetStatusCondition(&o.Status.Conditions, not)
	}
	return obj
}

// What was about to change hands, and has not, is in the old one: it is uninstalled from there, and nobody calls it an orphan.
func TestHandOverThatHasNotBegun(t *testing.T) {
	m := moving(t, releaseAddon("app"), releaseAddon("renamed"))
	m.failing = func(what string) (error, bool) {
		if strings.HasPrefix(what, "delete") || strings.HasPrefix(what, "patch *v2") {
			return errors.New("cut off"), false
		}
		return nil, false
	}
	m.move()
	m.settle()
	if m.object(roomCluster, "app") == nil {
		t.Fatal("it is gone")
	}
	m.failing = nil
	m.withdraw(roomCluster, "old")
	m.withdraw(roomCluster, "new")
	m.settle()
	if got := m.orphans(roomCluster); len(got) > 0 || len(m.uninstalled) != 2 || len(m.released) > 0 {
		t.Errorf("orphans: %+v; uninstalled: %v, let go: %v", got, m.uninstalled, m.released)
	}
	if left := m.object(roomCluster, "app"); left != nil {
		t.Errorf("left: %v", left)
	}
}

// TestRenamedOnANewCluster: a set that has another add-on under the name that one of its add-ons had before delivers both to a new cluster, also if the
// first try to make the renamed one fails.
func TestRenamedOnANewCluster(t *testing.T) {
	moved := map[string]any{"movedFrom": []any{map[string]any{"name": "web"}}}
	m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("web"), releaseAddon("nextname", moved))...)
	failed := false
	api := m.r.Client.(client.WithWatch)
	m.r.Client = interceptor.NewClient(api, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
		if !failed && obj.(interface{ GetName() string }).GetName() == identity.FluxObject("hub", roomCluster, "nextname") {
			failed = true
			return errors.New("overloaded")
		}
		return c.Apply(ctx, obj, opts...)
	}})
	m.settle()
	for _, a := range m.delivery(roomCluster, roomSet).Status.Addons {
		if !failed || a.State != hubv1.AddonReady || m.object(roomCluster, a.Name) == nil {
			t.Errorf("%s is %s: %s", a.Name, a.State, a.Message)
		}
	}
}
