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
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
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
			if m.object(roomCluster, "app") != nil || m.object(roomCluster, "renamed") != nil {
				t.Fatal("it is still in one of two hands")
			}
			m.restart()
			m.withdraw(roomCluster, "old")
			m.withdraw(roomCluster, "new")
			m.settle()
			if m.delivery(roomCluster, "new") != nil {
				t.Fatalf("the delivery hangs: %+v", m.delivery(roomCluster, "new").Status)
			}
			got := m.orphans(roomCluster)
			if len(got) != 1 || got[0].Addon != "renamed" || !strings.Contains(got[0].Message, "app") || len(m.told) == 0 {
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
				if m.object(roomCluster, "app") != nil || m.object(roomCluster, "renamed") == nil {
					t.Fatal("it has not changed hands")
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
				if m.object(roomCluster, "renamed") != nil || m.delivery(roomCluster, "new") != nil {
					t.Fatalf("it stays: %+v", m.delivery(roomCluster, "new").Status)
				}
				if fails && (len(got) != 1 || got[0].Addon != "renamed") || !fails && (len(got) > 0 || len(m.uninstalled) != 1) {
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

// What was to change hands, and whose new hand is not wanted any more, is looked for where it is so, and not in the cache: it is lost when it is
// gone, and going as long as Flux would let it go. What is there is somebody's to remove.
func TestLostBetween(t *testing.T) {
	hello := plan.Key{Kind: fluxspec.HelmReleaseKind, Namespace: "flux-system", Name: "one-hello"}
	for name, tc := range map[string]struct {
		gone, deleting, suspended, cached bool
		wanted, elsewhere                 bool
		lost, going                       bool
	}{
		"gone":                                 {gone: true, lost: true},
		"gone, and the cache has it":           {gone: true, cached: true, lost: true},
		"gone, and to be made again":           {gone: true, wanted: true, going: true},
		"gone, and another set makes it again": {gone: true, elsewhere: true, lost: true},
		"let go":                               {deleting: true, suspended: true, going: true},
		"let go, and the cache has it":         {deleting: true, suspended: true, cached: true, going: true},
		"let go, and to be made again":         {deleting: true, suspended: true, cached: true, wanted: true, going: true},
		"being uninstalled":                    {deleting: true, cached: true},
		"somebody else's, and on its way out":  {deleting: true, going: true},
		"there":                                {cached: true},
		"there, and suspended":                 {suspended: true, cached: true},
		"there again":                          {cached: true, wanted: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: hello.Namespace, Name: hello.Name, Finalizers: []string{fluxFinalizer}}}
			o.Spec.Suspend = tc.suspended
			m := newRoom(t, o)
			if tc.deleting || tc.gone {
				m.must(m.api.Delete(t.Context(), o))
			}
			if tc.gone {
				m.must(m.api.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
			}
			d := &hubv1.AddonDelivery{}
			d.Status.Addons = []hubv1.AddonStatus{{Name: "newname", Kind: hello.Kind, Object: "one-newname", TakesOver: []string{hello.String()}}}
			mine, others := &delivery{AddonDelivery: d, before: d}, &delivery{AddonDelivery: &hubv1.AddonDelivery{}}
			c := &cluster{deliveries: []*delivery{mine, others}, objects: map[plan.Key]*object{}}
			if tc.cached {
				c.objects[hello] = &object{}
			}
			wanted := []assembly.Wanted{{Object: render.Object{Kind: hello.Kind, Namespace: hello.Namespace, Name: hello.Name}}}
			if tc.wanted {
				mine.Wanted = wanted
			}
			if tc.elsewhere {
				others.Wanted = wanted
			}
			m.must(m.r.lostBetween(t.Context(), c, mine))
			if got := len(mine.lost) > 0; got != tc.lost {
				t.Errorf("it is lost: %t, want %t", got, tc.lost)
			}
			if got := len(mine.going) > 0; got != tc.going {
				t.Errorf("it is going: %t, want %t", got, tc.going)
			}
		})
	}
}

// TestTakesOver: what has gone for an add-on stays written down until that has an object, also if a pause comes before the cache shows that it has gone.
func TestTakesOver(t *testing.T) {
	old := plan.Key{Kind: fluxspec.HelmReleaseKind, Namespace: "flux-system", Name: "one-old"}
	waits := plan.Step{Key: plan.Key{Kind: old.Kind, Namespace: old.Namespace, Name: "one-app"}, Addon: "app", Verb: plan.AwaitResume}
	for name, tc := range map[string]struct {
		cached *vanishingObject
		ours   bool
		steps  []plan.Step
		want   bool
	}{
		"gone":                              {want: true},
		"going":                             {cached: &vanishingObject{true, true}, want: true},
		"going, and the cache does not see": {cached: &vanishingObject{true, false}, ours: true, want: true},
		"there":                             {cached: &vanishingObject{}},
		"there, and about to go":            {cached: &vanishingObject{}, steps: []plan.Step{{Key: old, Verb: plan.HandOver, To: waits.Key}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			m, c, d := (&vanishing{last: hubv1.AddonStatus{Name: "app", TakesOver: []string{old.String()}}}).room(t)
			if o := tc.cached; o != nil {
				c.objects[old] = &object{Observed: plan.Observed{Key: old, Suspended: o.suspended, Deleting: o.deleting}}
			}
			if tc.ours {
				m.r.ledger.remove(old, "", m.clock.Now())
			}
			if got := m.r.takesOver(c, d, waits, tc.steps); len(got) > 0 != tc.want {
				t.Errorf("it takes over %v", got)
			}
		})
	}
}

// TestRenamedOnANewCluster: a set that has another add-on under the name that one of its add-ons had before delivers both to a new cluster, also if the
// first try to make the renamed one fails.
func TestRenamedOnANewCluster(t *testing.T) {
	moved := map[string]any{"movedFrom": []any{map[string]any{"name": "web"}}}
	m := newRoom(t, append(addonsOf(roomSet, "1", releaseAddon("web"), releaseAddon("nextname", moved)),
		registered(roomCluster, "c1"), kubeconfigSecret(roomCluster, "t0"), deliveredTo(roomCluster, roomSet, "1"))...)
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
