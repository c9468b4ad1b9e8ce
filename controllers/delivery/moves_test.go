// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// moving is a fixture in which set old delivers add-on app. move then has set new deliver it, as renamed.
func moving(t *testing.T, app, renamed map[string]any) *fixture {
	renamed["movedFrom"] = []any{map[string]any{"addonSet": "old", "name": "app"}}
	objects := append(delivered("old", app), addonsOf("old", "2", releaseAddon("other"))[1:]...)
	objects = append(objects, addonsOf("new", "1", renamed)...)
	m := newFixture(t, append(objects, registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))...)
	m.settle()
	if m.object("app") == nil {
		t.Fatal("it has not been delivered")
	}
	return m
}

func (m *fixture) move() {
	m.roll("old", "2")
	m.create(deliveredTo(testCluster, "new", "1"))
}

// TestMoveToARevisionThatIsNotKnown: what a set is to take over stays while the hub does not know what is in that set's revision, and goes
// on when the hub does. The hub reads the revision live: a cache may be behind.
func TestMoveToARevisionThatIsNotKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		of    func(m *fixture, revision string)
		known bool
	}{
		"Gone": {of: func(m *fixture, revision string) {
			m.deleteObject(find(m, "flux-system", revision, &appsv1.ControllerRevision{}))
		}},
		"Unreadable": {of: func(m *fixture, revision string) { m.unreadable("*v1.ControllerRevision " + revision) }},
		"NotInTheCache": {of: func(m *fixture, revision string) {
			m.r.Client = interceptor.NewClient(m.api, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if key.Name == revision {
						return apierrors.NewNotFound(appsv1.Resource("controllerrevisions"), key.Name)
					}
					return c.Get(ctx, key, obj, opts...)
				},
			})
		}, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := moving(t, releaseAddon("app"), releaseAddon("renamed"))
			tc.of(m, revisionOf("new", "1"))
			m.move()
			m.settle()
			if o := m.object("app"); len(m.uninstalled) > 0 || (o == nil) != tc.known || (m.object("renamed") != nil) != tc.known {
				t.Errorf("uninstalled %v, orphaned %v; the old object: %v", m.uninstalled, m.released, o)
			}
		})
	}
}

// TestMoveKeepsTheObject: an add-on that is moved to another set, under another name, goes on with the object that is there, also if its
// cluster is paused meanwhile. The next add-on of the old name has an object of its own.
func TestMoveKeepsTheObject(t *testing.T) {
	for name, addon := range map[string]func(string, ...map[string]any) map[string]any{
		"HelmRelease": releaseAddon, "Kustomization": kustomizationAddon,
	} {
		t.Run(name, func(t *testing.T) {
			m := moving(t, addon("app"), addon("renamed"))
			there := m.object("app")
			m.pause(true)
			m.move()
			m.settle()
			m.pause(false)
			m.settle()
			o := reread(m, there)
			if o.GetUID() != there.GetUID() || o.GetLabels()[hubv1.AddonLabel] != "renamed" || o.GetLabels()[hubv1.AddonSetLabel] != "new" {
				t.Errorf("it is %s, with labels %v", o.GetUID(), o.GetLabels())
			}
			if len(m.released)+len(m.uninstalled) > 0 || len(m.objects()) != 2 {
				t.Errorf("orphaned %v, uninstalled %v; there are %v", m.released, m.uninstalled, m.objects())
			}
			m.roll("old", "1")
			m.settle()
			again := m.object("app")
			if m.object("renamed") == nil || name == "Kustomization" && (again == nil || again.GetName() == there.GetName()) {
				t.Errorf("what has the old name now is %v", again)
			}
			if name == "HelmRelease" && again != nil { // its Helm release is the other one's
				t.Errorf("two have one release: %v", again)
			}
		})
	}
}

// TestRenamedOnANewCluster: a set that has another add-on under the name that one of its add-ons had before delivers both to a new cluster,
// also if the first try to make the renamed one fails.
func TestRenamedOnANewCluster(t *testing.T) {
	moved := map[string]any{"movedFrom": []any{map[string]any{"name": "web"}}}
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("web"), releaseAddon("nextname", moved))...)
	failed := false
	api := m.r.Client.(client.WithWatch)
	m.r.Client = interceptor.NewClient(api, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch,
		obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
		if !failed && obj.(interface{ GetName() string }).GetName() == identity.FluxObject("hub", testCluster, "nextname") {
			failed = true
			return errors.New("overloaded")
		}
		return c.Apply(ctx, obj, opts...)
	}})
	m.settle()
	for _, a := range m.delivery(testSet).Status.Addons {
		if !failed || a.State != hubv1.AddonReady || m.object(a.Name) == nil {
			t.Errorf("%s is %s: %s", a.Name, a.State, a.Message)
		}
	}
}

// heldByTenant is a fixture where a tenant's set has delivered add-on falco, which does not render any more, and stays as it is.
func heldByTenant(t *testing.T, more map[string]any) *fixture {
	t.Helper()
	m := newFixture(t, append(tenantSet("mine", releaseAddon("falco", map[string]any{
		"values":   map[string]any{"a": "<< cluster.labels['x'] >>"},
		"chartRef": map[string]any{"kind": "OCIRepository", "name": "mine", "namespace": testCluster.Namespace},
	}, more)), registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))...)
	m.editRegistration(func(r *hubv1.ClusterRegistration) { r.Labels["x"] = "1" })
	m.settle()
	m.editRegistration(func(r *hubv1.ClusterRegistration) { delete(r.Labels, "x") })
	m.settle()
	if m.releaseIn(testCluster.Namespace, "falco") == nil {
		t.Fatal("the tenant's is not there")
	}
	return m
}

// platformComes has a platform set deliver add-on falco.
func (m *fixture) platformComes() {
	m.t.Helper()
	m.create(delivered(testSet, releaseAddon("falco"))...)
	m.settle()
}

// wantPlatforms wants the platform's falco only, after Flux has uninstalled so many objects.
func (m *fixture) wantPlatforms(uninstalled int) {
	m.t.Helper()
	ours, theirs := m.releaseIn("flux-system", "falco"), m.releaseIn(testCluster.Namespace, "falco")
	if ours == nil || theirs != nil || len(m.uninstalled) != uninstalled {
		m.t.Errorf("the platform's is %v, the tenant's %v; uninstalled: %v", ours, theirs, m.uninstalled)
	}
}

// TestTenantsAddonYieldsToThePlatforms: a tenant delivers an add-on, and then has it not render any more: its object stays as it is. When a
// platform set delivers the same add-on, one Flux object has the release, the platform's. Nothing is uninstalled, also when the tenant then
// deletes his set.
func TestTenantsAddonYieldsToThePlatforms(t *testing.T) {
	m := heldByTenant(t, nil)
	m.platformComes()
	m.wantPlatforms(0)
	m.wantReady("falco")
	m.wantNoWrites()
	m.withdrawIn(testCluster.Namespace, "mine")
	m.settle()
	m.wantPlatforms(0)
}

// TestTenantsAddonOfAnotherReleaseYieldsToThePlatforms: the tenant's object goes as any that is lost, asked of his set's guard, and the
// platform's waits for it.
func TestTenantsAddonOfAnotherReleaseYieldsToThePlatforms(t *testing.T) {
	m := heldByTenant(t, map[string]any{"releaseName": "other"})
	m.platformComes()
	if m.releaseIn("flux-system", "falco") != nil {
		t.Fatal("the platform's was made beside the tenant's")
	}
	d := m.deliveryIn(testCluster.Namespace, "mine")
	a := d.Status.Addons
	if len(a) != 1 || a[0].State != hubv1.AddonHeld || a[0].Reason != hubv1.DroppedReason || a[0].Removal == "" {
		t.Fatalf("the tenant's add-on: %+v", a)
	}
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.Removals = []string{a[0].Removal} })
	m.settle()
	m.wantPlatforms(1)
}

// TestTwoAddonsOfOneReleaseBecomeOne: where a user had both before, with one release, the tenant's goes without being uninstalled: that
// would take the platform's away.
func TestTwoAddonsOfOneReleaseBecomeOne(t *testing.T) {
	m := heldByTenant(t, nil)
	theirs := m.releaseIn(testCluster.Namespace, "falco")
	m.deleteObject(theirs.DeepCopy())
	m.flux()
	m.uninstalled = nil
	m.platformComes()
	theirs.ResourceVersion, theirs.UID = "", "t2"
	m.create(theirs)
	m.settle()
	m.wantPlatforms(0)
}

// TestFrozenAddonStaysWithItsSet: among platform sets an add-on that is there and stays as it is wins, whatever the priority.
func TestFrozenAddonStaysWithItsSet(t *testing.T) {
	m := newFrozenFixture(t)
	other := delivered("other", releaseAddon("app"))
	other[0].(*hubv1.AddonSet).Spec.Priority = 10
	m.create(other...)
	m.settle()
	m.frozen("app", "git")
	if a := m.says("other", "app"); a.State != hubv1.AddonLostTo || !strings.Contains(a.Message, "stays as it is for now") {
		t.Errorf("the other set's add-on: %+v", a)
	}
}

// TestReleaseOfAUserIsFree: a user has a HelmRelease of his own with the release of an add-on. When he gives it another release or cluster,
// the add-on comes, and an event wakes the cluster.
func TestReleaseOfAUserIsFree(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*helmv2.HelmRelease)
		free bool
	}{
		"OtherRelease":   {func(hr *helmv2.HelmRelease) { hr.Spec.ReleaseName = "other" }, true},
		"OtherNamespace": {func(hr *helmv2.HelmRelease) { hr.Spec.StorageNamespace = "other" }, true},
		"OtherCluster":   {func(hr *helmv2.HelmRelease) { hr.Spec.KubeConfig.SecretRef.Name = "two" }, true},
		"SameCluster":    {func(hr *helmv2.HelmRelease) { hr.Spec.KubeConfig = nil }, true},
		"FluxIsAtWork":   {func(hr *helmv2.HelmRelease) { hr.Status.ObservedGeneration = 1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := byHand(func(hr *helmv2.HelmRelease) {
				hr.Namespace, hr.Generation, hr.Finalizers, hr.Status = testCluster.Namespace, 1, nil, helmv2.HelmReleaseStatus{}
				hr.Spec.TargetNamespace, hr.Spec.StorageNamespace = "app", "app"
			}), &helmv2.HelmRelease{}
			m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), before.DeepCopy())...)
			m.settle()
			if a := m.firstAddon(); a.State != hubv1.AddonNotOwned {
				t.Fatalf("it is the user's: %+v", a)
			}
			edit(m, before.Namespace, before.Name, after, func(hr *helmv2.HelmRelease) {
				if tc.edit(hr); tc.free {
					hr.Generation = 2
				}
			})
			if wakes := foreignChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); wakes != tc.free {
				t.Errorf("it wakes the cluster: %t, want %t", wakes, tc.free)
			}
			if m.settle(); (m.object("app") != nil) != tc.free {
				t.Errorf("it is there: %t, want %t", !tc.free, tc.free)
			}
		})
	}
}
