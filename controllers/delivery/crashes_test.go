// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/expectations"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/plan"
)

var errCrashed = errors.New("the hub has crashed")

// crashAt has the hub die at its n-th write from now on, before or after that takes effect.
func (m *fixture) crashAt(n int, effect bool) {
	left := n
	m.failing = func(string) (error, bool) {
		left--
		switch {
		case left > 0:
			return nil, false
		case left == 0:
			return errCrashed, effect
		}
		return errCrashed, false // it is dead
	}
}

// dead returns whether the hub has crashed.
func (m *fixture) dead() bool {
	err, _ := m.failing("")
	return errors.Is(err, errCrashed)
}

// eachCrash has a hub die at each of its writes after begin, without and with the effect of that write. Flux goes on without the hub. Then
// change happens, a new hub starts, and check looks at what has come of all that.
func eachCrash(t *testing.T, begin func() *fixture, change func(*fixture), check func(m *fixture, where string)) {
	t.Helper()
	for n, crashed := 1, true; crashed; n++ {
		crashed = false
		for _, effect := range []bool{false, true} {
			m := begin()
			m.crashAt(n, effect)
			died := false
			for range 4 {
				died = died || errors.Is(m.reconcile(), errCrashed)
				m.flux()
			}
			crashed = crashed || m.dead()
			m.failing = nil
			change(m)
			m.restart()
			m.settle()
			m.settle()
			check(m, fmt.Sprintf("write %d, with effect %t", n, effect))
		}
	}
}

// TestCrashWhileOrphaning: wherever the hub dies between orphaning an add-on and saying so, the statuses and an event tell of the orphan in
// the end. Two events do, if the new hub cannot know whether the dead one had sent its own.
func TestCrashWhileOrphaning(t *testing.T) {
	orphan := map[string]any{"deletionPolicy": "Orphan"}
	for name, leave := range map[string]func(*fixture){
		"Dropped":   func(m *fixture) { m.roll(testSet, "2") },
		"Withdrawn": func(m *fixture) { m.withdraw(testSet) },
	} {
		t.Run(name, func(t *testing.T) {
			eachCrash(t, func() *fixture {
				objects := append(addonsOf(testSet, "1", releaseAddon("app", orphan), releaseAddon("other")),
					addonsOf(testSet, "2", releaseAddon("other"))[1:]...)
				m := newServedFixture(t, objects...)
				m.settle()
				leave(m)
				return m
			}, func(*fixture) {}, func(m *fixture, where string) {
				if got := m.orphans(); len(got) != 1 || got[0].Addon != "app" || len(m.told) == 0 || len(m.told) > 2 {
					t.Errorf("%s: orphans %+v, events %q", where, got, m.told)
				}
				if m.object("app") != nil || len(m.released) != 1 {
					t.Errorf("%s: orphaned %v, uninstalled %v", where, m.released, m.uninstalled)
				}
			})
		})
	}
}

// TestCrashWhileMakingAnObjectAgain: a user deletes a Flux object, and the hub dies wherever it may while it makes that again. A new hub
// makes the object, with the release that the add-on went on with under another name. One thing is lost: no status names the release, if
// the hub dies between the two writes and the add-on is dropped at that very moment.
func TestCrashWhileMakingAnObjectAgain(t *testing.T) {
	for name, tc := range map[string]struct{ suspended, dropped bool }{
		"Uninstalled": {}, "Suspended": {suspended: true}, "SuspendedAndDropped": {suspended: true, dropped: true},
	} {
		t.Run(name, func(t *testing.T) {
			untold := 0
			eachCrash(t, func() *fixture {
				m := newDeliveredFixture(t, releaseAddon("old"), releaseAddon("other"))
				m.next("2", releaseAddon("app", map[string]any{"movedFrom": []any{map[string]any{"name": "old"}}}), releaseAddon("other"))
				m.settle()
				m.next("3", releaseAddon("app"), releaseAddon("other"))
				m.settle()
				m.released = nil
				hr := m.release("app")
				edit(m, hr.Namespace, hr.Name, hr, func(h *helmv2.HelmRelease) { h.Spec.Suspend = tc.suspended })
				m.deleteObject(hr)
				m.flux()
				return m
			}, func(m *fixture) {
				if tc.dropped {
					m.next("4", releaseAddon("other"))
				}
			}, func(m *fixture, where string) {
				o, _ := m.object("app").(*helmv2.HelmRelease)
				switch {
				case tc.dropped && o == nil && len(m.told) == 0: // if the object is there, the removal guard is asked
					untold++
					t.Logf("%s: nothing tells of the release, and nothing removes it", where)
				case !tc.dropped && (o == nil || o.GetReleaseName() != "old"):
					t.Errorf("%s: %+v", where, o)
				}
			})
			if want := map[bool]int{true: 1}[tc.dropped]; untold != want {
				t.Errorf("%d times nothing tells of it, want %d", untold, want)
			}
		})
	}
}

// TestOrphanIsToldAgain: a hub tells again of what the status says that it is orphaned, until this hub has begun with that: the hub before
// may have died before it did.
func TestOrphanIsToldAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		// removed is what the hub has noted of the object when it had it go lately; nil if it has not.
		removed *string
		want    bool
	}{
		"not by this hub, or not at all":    {nil, true},
		"was being uninstalled by this hub": {new(""), true},
		"orphaned by this hub":              {new("what it applied"), false},
	} {
		t.Run(name, func(t *testing.T) {
			k := plan.Key{Kind: fluxspec.HelmReleaseKind, Namespace: "flux-system", Name: "one-app"}
			m, d := newFixture(t), leaving(hubv1.AddonStatus{Name: "app", Kind: k.Kind, Object: k.Name, State: hubv1.AddonOrphaned})
			c := passOf(&observed.Cluster{Key: testCluster,
				Objects: map[plan.Key]*observed.Object{k: {Delivery: d.Name, Observed: plan.Observed{Key: k, Addon: "app"}}}}, d)
			if tc.removed != nil {
				m.r.ledger.Remove(k, *tc.removed, m.clock.Now())
			}
			m.r.announceAgain(t.Context(), c, d, plan.Step{Key: k, Addon: "app", Verb: plan.Orphan})
			if got := m.orphanEvents(); len(got) > 0 != tc.want {
				t.Errorf("told: %v", got)
			}
		})
	}
}

// TestResumedRightBeforeItIsDeleted: the hub first suspends what it orphans, and then deletes that. If a user resumes the object between
// the two, Flux would uninstall it: the hub suspends it again.
func TestResumedRightBeforeItIsDeleted(t *testing.T) {
	adopted := func(t *testing.T, change func(*helmv2.HelmRelease)) (*fixture, client.Object) {
		old := byHand(change)
		return adoptFixture(t, old), old
	}
	for name, start := range map[string]func(t *testing.T) (m *fixture, object client.Object){
		"ItsAddonsStay": func(t *testing.T) (*fixture, client.Object) {
			m := newDeliveredFixture(t, releaseAddon("app"))
			m.editSet(func(s *hubv1.AddonSet) { s.Spec.DeletionPolicy = hubv1.DeletionPolicyOrphan })
			m.withdraw(testSet)
			return m, m.object("app")
		},
		"ItIsHandedOver": func(t *testing.T) (*fixture, client.Object) {
			return adopted(t, func(hr *helmv2.HelmRelease) { hr.Namespace = testCluster.Namespace })
		},
		"AHubThatDiedHasSuspendedIt": func(t *testing.T) (*fixture, client.Object) {
			return adopted(t, func(hr *helmv2.HelmRelease) {
				hr.Namespace, hr.Spec.Suspend = testCluster.Namespace, true
				hr.Annotations = map[string]string{hubv1.SuspendedAnnotation: hubv1.TakenOverSuspension}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, object := start(t)
			resumed := m.onWrite("delete *v2.HelmRelease", func() error {
				edit(m, object.GetNamespace(), object.GetName(), &helmv2.HelmRelease{}, func(hr *helmv2.HelmRelease) {
					hr.Spec.Suspend, hr.Generation = false, hr.Generation+1
				})
				return nil
			})
			m.settle()
			m.settle()
			if !*resumed || len(m.uninstalled) > 0 || len(m.released) != 1 {
				t.Errorf("resumed %t, uninstalled %v, orphaned %v", *resumed, m.uninstalled, m.released)
			}
		})
	}
}

// TestSuspendedBeforeItIsDeleted: if the hub suspends an object and cannot delete it, an annotation on the object says that the hub has
// suspended it. The hub resumes the object later if the set wants it again.
func TestSuspendedBeforeItIsDeleted(t *testing.T) {
	for _, verb := range []plan.Verb{plan.Orphan, plan.HandOver} {
		for _, kind := range []string{fluxspec.HelmReleaseKind, fluxspec.KustomizationKind} {
			k := plan.Key{Kind: kind, Namespace: "flux-system", Name: "one"}
			obj := observed.NewObject(k)
			obj.SetUID("this")
			m := newFixture(t, obj)
			m.onWrite("delete ", func() error { return errors.New("the API server is away") })
			seen := &observed.Object{UID: "this", Version: reread(m, obj).GetResourceVersion(), Observed: plan.Observed{Key: k}}
			c := passOf(&observed.Cluster{Objects: map[plan.Key]*observed.Object{k: seen}})
			if err := m.r.remove(t.Context(), c, plan.Step{Key: k, Verb: verb}, "all of it"); err == nil {
				t.Fatal("it was deleted")
			}
			is := fluxstate.Of(reread(m, obj)).Suspended
			if why := reread(m, obj).GetAnnotations()[hubv1.SuspendedAnnotation]; why != hubv1.TakenOverSuspension || !is {
				t.Errorf("%s of a %s: suspended %t, since %q", verb, kind, is, why)
			}
		}
	}
}

// TestObjectMadeAgainIsReady: the status of an add-on knows the generation of the object that was there before. An object that a user
// deletes is made again, and its generations begin anew. The add-on is Ready when Flux says so, whether or not the hub has been restarted
// since.
func TestObjectMadeAgainIsReady(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"DeletedByAUser": func(m *fixture) { m.deleteObject(m.object("app")) },
		"AfterARestart":  func(m *fixture) { m.restart() },
	} {
		t.Run(name, func(t *testing.T) {
			m := newDeliveredFixture(t, releaseAddon("app"))
			m.editDelivery(testSet, func(d *hubv1.AddonDelivery) { d.Status.Addons[0].AppliedGeneration = 3 })
			change(m)
			m.settle()
			if a := m.firstAddon(); a.State != hubv1.AddonReady || a.AppliedGeneration != 1 {
				t.Errorf("%s, %d: %s", a.State, a.AppliedGeneration, a.Message)
			}
			m.wantNoWrites()
		})
	}
}

// follow has the hub look at the cluster for as long as the hub asks for that itself, and no event comes.
func (m *fixture) follow() {
	m.t.Helper()
	for range 100 {
		after := m.again()
		if after == 0 || after > time.Minute {
			return
		}
		m.clock.SetTime(m.clock.Now().Add(after))
	}
}

// TestDependencyIsReadyAfterARestart: the hub died after it had written a change of hello, and before it said so. hello was Ready before,
// and is Ready with the change. The hub looks again at what depends on hello and waits for that change, though the status said Ready all
// the time.
func TestDependencyIsReadyAfterARestart(t *testing.T) {
	for name, fails := range map[string]bool{"Alone": false, "BesideOneThatFails": true} {
		t.Run(name, func(t *testing.T) {
			after := dependsOn(kustomizationAddon("policies"), "hello")
			m := newDeliveredFixture(t, releaseAddon("hello"), after, releaseAddon("other"))
			m.next("2", releaseAddon("hello", map[string]any{"values": map[string]any{"a": 1}}),
				dependsOn(kustomizationAddon("policies", map[string]any{"path": "./next"}), "hello"), releaseAddon("other"))
			m.must(m.reconcile()) // the hub writes hello, and its status waits for more progress
			m.restart()
			says := func(addon string, generation int64, c metav1.Condition) {
				o := m.object(addon)
				edit(m, o.GetNamespace(), o.GetName(), &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) {
					o.Generation, o.Status.ObservedGeneration = generation, generation
					apimeta.SetStatusCondition(&o.Status.Conditions, c)
				})
			}
			says("hello", 2, readyCondition(metav1.ConditionTrue, "Succeeded", "", 2))
			if fails {
				says("other", 1, readyCondition(metav1.ConditionFalse, "UpgradeFailed", "no", 1))
			}
			m.follow()
			if got := m.object("policies").(*kustomizev1.Kustomization); got.Spec.Path != "./next" {
				t.Errorf("it has path %s: it waits for ever; %+v", got.Spec.Path, m.delivery(testSet).Status.Addons)
			}
		})
	}
}

// TestCacheBehindItsOwnWrites: the hub decides nothing by a cache that does not show yet what the hub has written. The hub looks again
// soon, but waits no longer than a while.
func TestCacheBehindItsOwnWrites(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	m.next("2", releaseAddon("app"), releaseAddon("other"))
	written := m.delivery(testSet)
	written.ResourceVersion = "999999" // the cache has an older one
	m.r.expectations.Expect(testCluster, observed.DeliveryKind, written, m.clock.Now())
	before := m.writes
	if after := m.again(); after != expectations.Wait || m.writes != before {
		t.Errorf("it looks again after %s, has written %d times; want %s and nothing written", after, m.writes-before, expectations.Wait)
	}
	m.clock.SetTime(m.clock.Now().Add(time.Minute))
	if m.settle(); m.object("other") == nil {
		t.Error("it waits without end")
	}
}

// TestCacheShowsAnObjectThatIsGone: the cache still shows a Flux object that is gone, and that is to be changed. The hub's update makes no
// new object.
func TestCacheShowsAnObjectThatIsGone(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	shown := m.release("app")
	m.strip(shown.DeepCopy())
	shown.UID, shown.Generation = "was", shown.Generation+1 // a user has edited it
	m.r.Client = interceptor.NewClient(m.api, m.lists(func(list client.ObjectList) bool {
		l, ok := list.(*helmv2.HelmReleaseList)
		if ok {
			l.Items = []helmv2.HelmRelease{*shown}
		}
		return ok
	}))
	if err := m.reconcile(); err != nil || m.object("app") != nil {
		t.Errorf("it was made again (%v)", err)
	}
}

// byUID has the API server refuse what names another UID than an object has. The fake API server does not look at that.
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

// TestCacheShowsAnObjectThatWasMadeAgain: the cache still shows an object that is to go, by its UID, and that has gone. Another hub has
// uninstalled it, and made another object for an add-on of that name, since the set has the add-on again. That object stays, and what it
// tells Flux as well.
func TestCacheShowsAnObjectThatWasMadeAgain(t *testing.T) {
	for name, suspended := range map[string]bool{"Deleted": false, "ResumedFirst": true} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app"), releaseAddon("other")),
				addonsOf(testSet, "2", releaseAddon("other"))[1:]...)...)
			m.settle()
			there := m.release("app")
			is := there.DeepCopy()
			is.UID, is.Spec.Suspend = "again", suspended
			m.quietly(func() { m.must(m.api.Update(t.Context(), is)) })
			there.UID, there.Spec.Suspend = "was", suspended
			shown := m.delivery(testSet)
			shown.Spec.RevisionName, shown.Spec.Removals = revisionOf(testSet, "2"), []string{guard.Dropped("was")}
			funcs := m.byUID(is)
			funcs.List = m.lists(func(list client.ObjectList) bool {
				switch l := list.(type) {
				case *hubv1.AddonDeliveryList:
					l.Items = []hubv1.AddonDelivery{*shown}
				case *helmv2.HelmReleaseList:
					l.Items = []helmv2.HelmRelease{*there, *m.release("other")}
				default:
					return false
				}
				return true
			}).List
			m.r.Client = interceptor.NewClient(m.api, funcs)
			for range 5 {
				m.must(m.reconcile())
				shown.Status = m.delivery(testSet).Status
				m.clock.SetTime(m.clock.Now().Add(3500 * time.Millisecond))
			}
			if o := m.release("app"); o.DeletionTimestamp != nil || o.Spec.Suspend != suspended {
				t.Errorf("it is on its way out, or Flux is to do something else with it: %+v", o)
			}
		})
	}
}
