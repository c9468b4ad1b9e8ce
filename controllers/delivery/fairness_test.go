// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/plan"
)

// TestForgedSuspensionsTakeNoTurns: a tenant's object says that the hub keeps it suspended. However often the hub looks at the object, the
// hub resumes other clusters as before. The hub does not even write an object that is not suspended.
func TestForgedSuspensionsTakeNoTurns(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "x", errors.New("it has changed"))
	for name, tc := range map[string]struct {
		suspend bool
		err     error // of the hub's write
		writes  bool
	}{"NotSuspended": {}, "Suspended": {suspend: true, writes: true},
		"SuspendedAndEditedAllTheTime": {suspend: true, err: conflict, writes: true}} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
			m.must(m.reconcile())
			m.r.resumes = rate.NewLimiter(resumedPerSecond, resumedAtOnce)
			m.failing = func(string) (error, bool) { return tc.err, false }
			hr := forgedRelease(testCluster.Namespace, "evil", "evil", helmv2.HelmReleaseSpec{Suspend: tc.suspend})
			hr.Annotations = map[string]string{hubv1.SuspendedAnnotation: "x"}
			m.create(hr)
			before := m.writes
			for range 3 {
				m.must(m.reconcile())
			}
			if left := m.r.resumes.TokensAt(m.clock.Now()); left != resumedAtOnce || m.writes > before != tc.writes {
				t.Errorf("%v turns are left, after %d writes", left, m.writes-before)
			}
		})
	}
}

// paused is a fixture whose cluster was paused and is paused no longer. Its add-ons are still suspended.
func paused(t *testing.T, addons ...map[string]any) *fixture {
	m := newServedFixture(t, addonsOf(testSet, "1", addons...)...)
	m.must(m.reconcile())
	m.pause(true)
	m.must(m.reconcile())
	m.pause(false)
	return m
}

// suspended returns how many HelmReleases are suspended.
func (m *fixture) suspended() (n int) {
	for _, o := range m.objects() {
		if o.(*helmv2.HelmRelease).Spec.Suspend {
			n++
		}
	}
	return n
}

// TestClusterIsResumedInOneTurn: the hub resumes all of a cluster in one turn. A cluster that has no turn waits.
func TestClusterIsResumedInOneTurn(t *testing.T) {
	m := paused(t, releaseAddon("app"), releaseAddon("web"))
	m.r.resumes = rate.NewLimiter(resumedPerSecond, 1)
	m.r.resumes.ReserveN(m.clock.Now(), 1)
	if after := m.again(); m.suspended() != 2 || after > time.Second {
		t.Errorf("out of turn, %d are suspended, and it is looked at after %s", m.suspended(), after)
	}
	m.clock.SetTime(m.clock.Now().Add(time.Second))
	m.must(m.reconcile())
	if left := m.r.resumes.TokensAt(m.clock.Now()); m.suspended() != 0 || left != 0 {
		t.Errorf("%d are suspended, and %v turns are left", m.suspended(), left)
	}
}

// TestNamespaceTakesItsShareOfTurns: the hub does not resume a cluster whose namespace has just had its share while another namespace
// waits. The hub does so a moment later, and at once if no other namespace waits.
func TestNamespaceTakesItsShareOfTurns(t *testing.T) {
	for name, want := range map[string]int{"AnotherWaits": 1, "NoOtherWaits": 0} {
		t.Run(name, func(t *testing.T) {
			m := paused(t, releaseAddon("app"))
			for range resumedPerSecond {
				m.r.shares.Take(testCluster.Namespace, m.clock.Now())
			}
			if want > 0 {
				m.r.shares.Wait("another", m.clock.Now())
			}
			if after := m.again(); m.suspended() != want || want > 0 && after > time.Second {
				t.Errorf("%d are suspended, and it is looked at after %s", m.suspended(), after)
			}
			m.clock.SetTime(m.clock.Now().Add(2 * time.Second))
			if m.must(m.reconcile()); m.suspended() > 0 {
				t.Error("it is never resumed")
			}
		})
	}
}

// TestSourcesOfOthersHaveNothingRenderedAgain: a user deletes a source that his own Kustomization uses, which says that it is of another
// user's cluster. The hub does not render again what is delivered there from other namespaces. It does when a source goes that is used from
// there.
func TestSourcesOfOthersHaveNothingRenderedAgain(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", kustomizationAddon("app")), tenantSet("mine", releaseAddon("his"))...)...)
	m.must(m.reconcile())
	k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "k",
		Labels:      map[string]string{hubv1.ClusterKeyLabel: "any"},
		Annotations: map[string]string{hubv1.RegistrationAnnotation: testCluster.String()}}}
	k.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: "git"}
	m.create(k)
	for _, tc := range []struct {
		namespace string
		want      int
	}{{"evil", 2}, {"flux-system", 1}} {
		source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "git"}}
		woken := m.r.userOf(sourcev1.GitRepositoryKind)(t.Context(), source)
		if kept, _ := m.r.Renderings(); kept != tc.want || len(woken) != 1 {
			t.Errorf("a source of %s goes: %d renderings are kept, want %d; woken are %v", tc.namespace, kept, tc.want, woken)
		}
	}
}

// TestNewClusterGoesFirst: a cluster that comes does not wait for all the clusters to which an edited set delivers.
func TestNewClusterGoesFirst(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
	set := &hubv1.AddonSet{}
	m.must(m.api.Get(t.Context(), types.NamespacedName{Namespace: "flux-system", Name: testSet}, set))
	edited := set.DeepCopy()
	edited.ResourceVersion, edited.Spec.Priority = "9999", 7
	q := priorityqueue.New[reconcile.Request]("clusters")
	defer q.ShutDown()
	m.r.ofSet().Update(t.Context(), event.UpdateEvent{ObjectOld: set, ObjectNew: edited}, q)
	comes := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "fleet", Name: "new"}}
	q.Add(comes)
	if first, _ := q.Get(); first != comes {
		t.Errorf("%v comes first", first)
	}
	if second, _ := q.Get(); second.NamespacedName != testCluster {
		t.Errorf("then comes %v", second)
	}
}

// compiling has a hub that has compiled nothing compile a set of the tenant's for long. It returns how to end that.
func (m *fixture) compiling() (end func()) {
	begun, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	m.restart()
	m.r.Programs = &programs.Cache{Slots: 2, Compile: func(raw []byte, a compile.Author) (*compile.Program, error) {
		if a.Set == "other" {
			close(begun)
			<-release
		}
		return compile.Revision(raw, a)
	}}
	go func() {
		defer close(done)
		_, _ = m.r.Programs.Get("", compile.Author{Namespace: testCluster.Namespace, Set: "other"},
			func() ([]byte, error) { return []byte("{}"), nil })
	}()
	<-begun
	return func() { close(release); <-done }
}

// TestBusyCompilerHoldsUpOneDelivery: while a tenant's set cannot be compiled because others are, the platform's add-ons come to his
// cluster. His delivery says nothing of that, and what it has delivered stays.
func TestBusyCompilerHoldsUpOneDelivery(t *testing.T) {
	for name, delivered := range map[string]bool{"NotDeliveredYet": false, "Delivered": true} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), tenantSet("mine", releaseAddon("his"))...)...)
			if delivered {
				m.settle()
				m.deleteObject(m.object("app"))
				m.flux()
			}
			end := m.compiling()
			before := m.deliveryIn(testCluster.Namespace, "mine")
			for range 3 {
				result, err := m.look(testCluster)
				if err != nil || result.RequeueAfter == 0 || result.RequeueAfter > programs.Wait {
					t.Errorf("again after %s: %v", result.RequeueAfter, err)
				}
				m.flux()
			}
			if app := m.object("app"); app == nil || app.GetDeletionTimestamp() != nil || (m.object("his") != nil) != delivered ||
				len(m.released) > 0 {
				t.Errorf("the platform's is %v, his is %v, orphaned %v", app, m.object("his"), m.released)
			}
			if d := cmp.Diff(before, m.deliveryIn(testCluster.Namespace, "mine")); d != "" {
				t.Errorf("his delivery says (-want +got):\n%s", d)
			}
			end()
			m.settle()
			if a := m.deliveryIn(testCluster.Namespace, "mine").Status.Addons; len(a) != 1 || a[0].State != hubv1.AddonReady {
				t.Errorf("when it is compiled: %+v", a)
			}
		})
	}
}

// TestBusyCompilerKeepsTheOrderOfSets: what depends on an add-on of another set waits while that set cannot be compiled: the add-on is
// about to be delivered, and not missing.
func TestBusyCompilerKeepsTheOrderOfSets(t *testing.T) {
	after := kustomizationAddon("after")
	after["dependsOn"] = []any{map[string]any{"addonSet": "a", "name": "first"}}
	m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")),
		append(tenantSet("a", releaseAddon("first")), tenantSet("b", after)...)...)...)
	end, gets := m.compiling(), 0
	m.r.Programs.Schemas = func() *crdschema.Library { // which each program is asked for with
		if gets++; gets == 2 { // a's could not be compiled, and b's can
			end()
		}
		return nil
	}
	m.must(m.reconcile())
	if first, o := m.object("first"), m.object("after"); first != nil || o != nil || gets != 3 {
		t.Errorf("first is %v, what comes after it %v; %d programs", first, o, gets)
	}
	m.settle()
	if m.object("first") == nil || m.object("after") == nil {
		t.Errorf("there are %v", m.objects())
	}
}

// TestObjectsAreWrittenBesideEachOther: the hub writes the Flux objects of a new cluster beside each other: none waits for the API server's
// answer to another one. One that fails stops no other, and each add-on has what its own write came to.
func TestObjectsAreWrittenBesideEachOther(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"), releaseAddon("web"), releaseAddon("db"))...)
	m.r.Config.WritesOfCluster = 8
	refused := errors.New("refused")
	var mu sync.Mutex
	var underWay []string
	all := make(chan struct{})
	m.r.Client = interceptor.NewClient(m.api, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			o, ok := obj.(interface{ GetLabels() map[string]string })
			if ok && o.GetLabels()[hubv1.AddonLabel] != "" {
				mu.Lock()
				if underWay = append(underWay, o.GetLabels()[hubv1.AddonLabel]); len(underWay) == 3 {
					close(all)
				}
				mu.Unlock()
				select {
				case <-all:
				case <-time.After(10 * time.Second):
					t.Error("the writes wait for each other")
				}
				if o.GetLabels()[hubv1.AddonLabel] == "web" {
					return refused
				}
			}
			mu.Lock()
			defer mu.Unlock()
			return c.Apply(ctx, obj, opts...)
		},
	})
	if err := m.reconcile(); !errors.Is(err, refused) {
		t.Errorf("got error %v, want the refusal of one write", err)
	}
	for _, name := range []string{"app", "web", "db"} {
		if got, want := m.object(name) != nil, name != "web"; got != want {
			t.Errorf("%s: made %t, want %t", name, got, want)
		}
		a := m.delivery(testSet).Status.Addons
		for i := range a {
			if a[i].Name == name && (a[i].State == hubv1.AddonFailed) != (name == "web") {
				t.Errorf("%s is %s: %s", name, a[i].State, a[i].Message)
			}
		}
	}
	m.r.Client = m.api
	m.settle()
	for _, a := range m.delivery(testSet).Status.Addons {
		if a.State != hubv1.AddonReady || a.AppliedGeneration != 1 {
			t.Errorf("%s is %s at %d: %s", a.Name, a.State, a.AppliedGeneration, a.Message)
		}
	}
}

// TestWritesInARow: the hub carries out together only writes that come in a row.
func TestWritesInARow(t *testing.T) {
	key := func(name string) plan.Key {
		return plan.Key{Kind: fluxspec.HelmReleaseKind, Namespace: "flux-system", Name: name}
	}
	step := func(verb plan.Verb, name string) plan.Step { return plan.Step{Verb: verb, Key: key(name)} }
	cases := map[string]struct {
		steps []plan.Step
		most  int
		want  int
	}{
		"AllWrites":       {[]plan.Step{step(plan.Create, "a"), step(plan.Update, "there"), step(plan.Create, "b")}, 8, 3},
		"NoMoreThanMay":   {[]plan.Step{step(plan.Create, "a"), step(plan.Create, "b"), step(plan.Create, "c")}, 2, 2},
		"NoSettingIsOne":  {[]plan.Step{step(plan.Create, "a"), step(plan.Create, "b")}, 0, 1},
		"ARemovalBetween": {[]plan.Step{step(plan.Create, "a"), step(plan.HandOver, "there"), step(plan.Create, "b")}, 8, 1},
		"ARemovalFirst":   {[]plan.Step{step(plan.Uninstall, "there"), step(plan.Create, "a")}, 8, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := together(tc.steps, tc.most); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
