// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"strings"
	"testing"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/controllers/sharedobjects"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
)

// pinFixture is the sets' controller with a set that follows a chart's range and a ConfigMap, and one cluster.
type pinFixture struct {
	*Reconciler
	t   *testing.T
	api client.WithWatch
	// again says that the last look asked for another one.
	again bool
}

func newPinFixture(t *testing.T) *pinFixture {
	t.Helper()
	set, _ := rollingSet(t)
	set.Spec.Addons[0].HelmRelease = &apiextensionsv1.JSON{Raw: []byte(`{"chart":{"spec":{"chart":"hello","version":"1.x","sourceRef":{"kind":"HelmRepository","name":"charts"}}},"values":{"color":"<< vars.color >>"}}`)}
	set.Spec.VariablesFrom = []hubv1.VariablesSource{{ConfigMap: "colors"}}
	reg, _ := clusterOf("one", nil, "")
	colors := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "colors"}, Data: map[string]string{"color": "blue"}}
	api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithStatusSubresource(set, &sourcev1.HelmChart{}).WithObjects(set, reg, colors).Build()
	config := &hubconfig.Config{Shared: hubconfig.Shared{HubID: "chandler", PlatformNamespaces: []string{"flux-system"}}}
	clock := clocktesting.NewFakeClock(fleetTime)
	r := &Reconciler{Client: api, Live: api, Config: config, Clock: clock, Recorder: events.NewFakeRecorder(100),
		Shared: &sharedobjects.Keeper{Client: api, Live: api, Config: config, Clock: clock}}
	r.changed, r.starts = enqueue.NewBell(enqueue.Itself), enqueue.NewBell(enqueue.Itself)
	return &pinFixture{Reconciler: r, t: t, api: api}
}

// look reconciles the set and returns it, with what its newest revision pins.
func (r *pinFixture) look() (*hubv1.AddonSet, *compile.Pins) {
	r.t.Helper()
	set := &hubv1.AddonSet{}
	key := client.ObjectKey{Namespace: "flux-system", Name: "base"}
	if err := r.api.Get(r.t.Context(), key, set); err != nil {
		r.t.Fatal(err)
	}
	result, err := r.Reconcile(r.t.Context(), set)
	if err != nil {
		r.t.Fatal(err)
	}
	r.again = result.RequeueAfter > 0
	if err := r.api.Get(r.t.Context(), key, set); err != nil || set.Status.Revision == "" {
		return set, nil
	}
	revision := &appsv1.ControllerRevision{}
	if err := r.api.Get(r.t.Context(), client.ObjectKey{Namespace: "flux-system", Name: set.Status.Revision}, revision); err != nil {
		r.t.Fatal(err)
	}
	_, pins, err := compile.Content(revision.Data.Raw)
	if err != nil {
		r.t.Fatal(err)
	}
	return set, pins
}

// chart is the HelmChart that follows the range.
func (r *pinFixture) chart() *sourcev1.HelmChart {
	r.t.Helper()
	list := &sourcev1.HelmChartList{}
	if err := r.api.List(r.t.Context(), list); err != nil || len(list.Items) != 1 {
		r.t.Fatalf("%d charts: %v", len(list.Items), err)
	}
	return &list.Items[0]
}

// upstream has Flux read a version.
func (r *pinFixture) upstream(version string) {
	r.t.Helper()
	chart := r.chart()
	chart.Status.Artifact = &fluxmeta.Artifact{Revision: version}
	if err := r.api.Status().Update(r.t.Context(), chart); err != nil {
		r.t.Fatal(err)
	}
}

// phase writes a phase of the rollout, as if clusters were at work.
func (r *pinFixture) phase(set *hubv1.AddonSet, phase hubv1.RolloutPhase) {
	r.t.Helper()
	set.Status.Rollout.Phase = phase
	if err := r.api.Status().Update(r.t.Context(), set); err != nil {
		r.t.Fatal(err)
	}
}

// delivered has the only cluster be Ready on the newest revision.
func (r *pinFixture) delivered(set *hubv1.AddonSet) {
	r.t.Helper()
	_, d := clusterOf("one", nil, set.Status.Revision)
	if err := r.api.Create(r.t.Context(), d); err != nil {
		r.t.Fatal(err)
	}
}

func (r *pinFixture) wantVersion(pins *compile.Pins, version, color string) {
	r.t.Helper()
	want := &compile.Pins{Sources: map[string]string{compile.SourceKey("HelmChart", "flux-system", r.chart().Name): version},
		ConfigMaps: map[string]map[string]string{"colors": {"color": color}}}
	if !want.Equal(pins) {
		r.t.Errorf("the revision pins %+v, want %+v", pins, want)
	}
}

func TestPins(t *testing.T) {
	r := newPinFixture(t)
	set, _ := r.look()
	if c := status.Find(set, hubv1.ReadyCondition); set.Status.Revision != "" || c.Reason != hubv1.SourcesNotReadyReason ||
		!strings.HasPrefix(c.Message, "the next revision waits for Flux to read chart hello 1.x of HelmRepository charts") {
		t.Fatalf("revision %q before Flux has read the chart; it says %+v", set.Status.Revision, c)
	}
	if sets := r.registry.sets.All(); !sets[client.ObjectKeyFromObject(set)].held {
		t.Errorf("the matcher may give something: %+v", sets)
	}

	chart := r.chart()
	chart.Status.Conditions = []metav1.Condition{{Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Message: "no chart version found"}}
	must.Do(t, r.api.Status().Update(t.Context(), chart))
	if set, _ = r.look(); status.Find(set, hubv1.ReadyCondition).Status != metav1.ConditionFalse ||
		!strings.Contains(status.Find(set, hubv1.ReadyCondition).Message, "chart hello 1.x of HelmRepository charts: no chart version found") {
		t.Errorf("it says %+v", status.Find(set, hubv1.ReadyCondition))
	}

	r.upstream("1.0.0")
	set, pins := r.look()
	r.wantVersion(pins, "1.0.0", "blue")
	first := set.Status.Revision
	r.delivered(set)

	// News of every kind is one more revision; while one is on its way, it waits.
	r.phase(set, hubv1.RolloutSoaking)
	r.upstream("1.1.0")
	if set, pins = r.look(); set.Status.Revision != first {
		t.Errorf("news has begun the rollout anew: %+v", pins)
	}
	if set.Status.Rollout.Phase != hubv1.RolloutDone || !r.again {
		t.Errorf("the rollout is %s, and nobody looks again for the news: %t", set.Status.Rollout.Phase, r.again)
	}
	if c := status.Find(set, hubv1.RolloutEnforcedCondition); c == nil || !strings.HasSuffix(c.Message, "waits for the end of this rollout: chart hello 1.x of HelmRepository charts") {
		t.Errorf("it says %+v", c)
	}
	if is := set.Status.Sources; len(is) != 2 || is[1].Pinned != "1.0.0" || is[1].Upstream != "1.1.0" {
		t.Errorf("sources: %+v", is)
	}
	colors := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "colors"}, Data: map[string]string{"color": "red"}}
	must.Do(t, r.api.Update(t.Context(), colors))
	r.phase(set, hubv1.RolloutDone)
	set, pins = r.look()
	r.wantVersion(pins, "1.1.0", "red")

	// Upstream goes: nothing changes.
	second := set.Status.Revision
	chart = r.chart()
	chart.Status = sourcev1.HelmChartStatus{Conditions: []metav1.Condition{{Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Message: "503"}}}
	must.Do(t, r.api.Status().Update(t.Context(), chart))
	must.Do(t, r.api.Delete(t.Context(), colors))
	r.phase(set, hubv1.RolloutDone)
	if set, pins = r.look(); set.Status.Revision != second || status.Find(set, hubv1.ReadyCondition).Reason == hubv1.SourcesNotReadyReason {
		t.Errorf("upstream is down, and the revision pins %+v; it says %+v", pins, status.Find(set, hubv1.ReadyCondition))
	}
}

// edit changes the set's spec.
func (r *pinFixture) edit(change func(*hubv1.AddonSet)) {
	r.t.Helper()
	set := &hubv1.AddonSet{}
	if err := r.api.Get(r.t.Context(), client.ObjectKey{Namespace: "flux-system", Name: "base"}, set); err != nil {
		r.t.Fatal(err)
	}
	change(set)
	if err := r.api.Update(r.t.Context(), set); err != nil {
		r.t.Fatal(err)
	}
}

// TestPinsOfATenant: a set outside the platform namespaces has nothing made elsewhere, whatever its expressions give.
func TestPinsOfATenant(t *testing.T) {
	r := newPinFixture(t)
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "evil", UID: "evil", Generation: 1, Finalizers: []string{hubv1.Finalizer}}}
	set.Spec.SelectAll, set.Spec.Rollout = true, &hubv1.Rollout{}
	set.Spec.Addons = []hubv1.Addon{{Name: "hello", AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(
		`{"chart":{"spec":{"chart":"hello","version":"1.x","sourceRef":{"kind":"HelmRepository","name":"private","namespace":"<< 'flux-system' >>"}}}}`)}}}}
	must.Do(t, r.api.Create(t.Context(), set))
	must.Get(r.Reconcile(t.Context(), set)).Or(t)
	list := &sourcev1.HelmChartList{}
	if err := r.api.List(t.Context(), list); err != nil || len(list.Items) > 0 {
		t.Errorf("%d charts: %v", len(list.Items), err)
	}
	if c := status.Find(set, hubv1.RolloutEnforcedCondition); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("it says %+v", c)
	}
}

// TestUpstreamFailsAndRecovers: a source that Flux has read before fails, and then does not. The set says so, and events wake it.
func TestUpstreamFailsAndRecovers(t *testing.T) {
	r := newPinFixture(t)
	r.look()
	r.upstream("1.0.0")
	r.look()
	becomes := func(says string, conditions ...metav1.Condition) {
		t.Helper()
		before, after := r.chart(), r.chart()
		after.Status.Conditions = conditions
		must.Do(t, r.api.Status().Update(t.Context(), after))
		if !hasNews().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
			t.Errorf("nobody is woken to say %q", says)
		}
		if set, _ := r.look(); set.Status.Sources[1].Message != says {
			t.Errorf("it says %q, want %q", set.Status.Sources[1].Message, says)
		}
	}
	fails := metav1.Condition{Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "Failed", Message: "503"}
	becomes("503", fails)
	before, after := r.chart(), r.chart()
	after.Status.Conditions[0].Message = "504"
	if hasNews().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("each try of Flux wakes the set, which has what it had")
	}
	becomes("")
}

// TestASourceThatIsThereAlready: another set follows the same source. Flux may read it between the first look of a set and the moment in
// which events of the source find that one by its status. So it looks again, once.
func TestASourceThatIsThereAlready(t *testing.T) {
	r := newPinFixture(t)
	set, _ := r.look()
	set.Status.Sources = nil // as that of another set with the same content
	must.Do(t, r.api.Status().Update(t.Context(), set))
	if woken := r.followersOf("HelmChart")(t.Context(), r.chart()); len(woken) > 0 {
		t.Fatalf("events of the source find %v", woken)
	}
	if set, _ = r.look(); set.Status.Revision != "" || !r.again {
		t.Errorf("Flux has read nothing yet, and nobody looks again: revision %q", set.Status.Revision)
	}
	if r.look(); r.again {
		t.Error("it looks again for good")
	}
}

// TestPinsThatAreNotThereYet: while the newest revision holds nothing, the set does not say that everything goes through the waves.
func TestPinsThatAreNotThereYet(t *testing.T) {
	r := newPinFixture(t)
	r.edit(func(s *hubv1.AddonSet) { s.Spec.Rollout.Sources = hubv1.FollowSources })
	r.look()
	r.edit(func(s *hubv1.AddonSet) { s.Spec.Rollout.Sources = hubv1.PinSources })
	want := func(set *hubv1.AddonSet) {
		t.Helper()
		if c := status.Find(set, hubv1.RolloutEnforcedCondition); c == nil || c.Status != metav1.ConditionFalse {
			t.Errorf("it says %+v", c)
		}
	}
	set, _ := r.look()
	want(set)
	r.phase(set, hubv1.RolloutSoaking)
	r.upstream("1.0.0")
	set, _ = r.look()
	want(set)
}

// TestPinsAndPeople: who pauses a set wants no news; who undoes it to what does not exist wants nothing.
func TestPinsAndPeople(t *testing.T) {
	r := newPinFixture(t)
	r.look()
	r.upstream("1.0.0")
	set, _ := r.look()
	r.delivered(set)
	r.edit(func(s *hubv1.AddonSet) { s.Spec.Pause = &hubv1.RolloutPause{Reason: "freeze"} })
	r.upstream("1.1.0")
	_, pins := r.look()
	r.wantVersion(pins, "1.0.0", "blue")
	r.edit(func(s *hubv1.AddonSet) {
		s.Spec.Pause, s.Annotations = nil, map[string]string{hubv1.UndoAnnotation: set.Status.Revision + "/nowhere"}
	})
	set, _ = r.look() // the rollout is paused until now
	_, pins = r.look()
	r.wantVersion(pins, "1.1.0", "blue")
}

// TestLargeConfigMap: what a revision cannot hold is said, and holds up nothing else.
func TestLargeConfigMap(t *testing.T) {
	r := newPinFixture(t)
	r.edit(func(s *hubv1.AddonSet) {
		s.Spec.VariablesFrom = append(s.Spec.VariablesFrom, hubv1.VariablesSource{ConfigMap: "second"})
	})
	for name, text := range map[string]string{"colors": strings.Repeat("<", maxPinned/4), "second": "x"} {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}, Data: map[string]string{"color": text}}
		if err := r.api.Update(t.Context(), m); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		} else if err != nil {
			must.Do(t, r.api.Create(t.Context(), m))
		}
	}
	r.look()
	r.upstream("1.0.0")
	set, pins := r.look()
	if _, ok := pins.ConfigMap("colors"); ok {
		t.Error("the large one is in the revision")
	}
	if data, _ := pins.ConfigMap("second"); data["color"] != "x" {
		t.Errorf("the other one: %v", data)
	}
	if c := status.Find(set, hubv1.RolloutEnforcedCondition); c == nil || !strings.Contains(c.Message, "ConfigMap colors, whose data are too large") {
		t.Errorf("it says %+v", c)
	}
}

// TestPinsOfAForger: a revision that the hub did not make says nothing of what the next one holds.
func TestPinsOfAForger(t *testing.T) {
	r := newPinFixture(t)
	r.look()
	r.upstream("1.0.0")
	set, _ := r.look()
	revision := &appsv1.ControllerRevision{}
	must.Do(t, r.api.Get(t.Context(), client.ObjectKey{Namespace: "flux-system", Name: set.Status.Revision}, revision))
	must.Do(t, r.api.Delete(t.Context(), revision))
	revision.ResourceVersion, revision.UID = "", ""
	revision.Data = runtime.RawExtension{Raw: []byte(strings.Replace(string(revision.Data.Raw), `"1.0.0"`, `"0.0.1"`, 1))}
	must.Do(t, r.api.Create(t.Context(), revision))
	must.Do(t, r.api.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	r.phase(set, hubv1.RolloutSoaking)
	_, _ = r.Reconcile(t.Context(), set) // it removes what is forged, and fails
	all := &appsv1.ControllerRevisionList{}
	must.Do(t, r.api.List(t.Context(), all))
	for i := range all.Items {
		if there := &all.Items[i]; strings.Contains(string(there.Data.Raw), `"0.0.1"`) {
			t.Errorf("revision %s holds what the forger wrote", there.Name)
		}
	}
	_, pins := r.look()
	r.wantVersion(pins, "1.0.0", "blue")
}

// TestFollow: with sources: Follow, nothing is pinned, and the set says what floats.
func TestFollow(t *testing.T) {
	r := newPinFixture(t)
	set := &hubv1.AddonSet{}
	must.Do(t, r.api.Get(t.Context(), client.ObjectKey{Namespace: "flux-system", Name: "base"}, set))
	set.Spec.Rollout.Sources = hubv1.FollowSources
	must.Do(t, r.api.Update(t.Context(), set))
	set, pins := r.look()
	if set.Status.Revision == "" || !pins.Empty() || len(set.Status.Sources) > 0 {
		t.Errorf("revision %q pins %+v, and the set follows %+v", set.Status.Revision, pins, set.Status.Sources)
	}
	want := "these may change without a new revision, on all clusters at once: ConfigMap colors, chart hello 1.x of HelmRepository charts"
	if c := status.Find(set, hubv1.RolloutEnforcedCondition); c == nil || c.Message != want {
		t.Errorf("it says %+v", c)
	}
}

// TestNamesOfOldEditsAreForgotten: somebody edits one set again and again. What it does not name any more wakes nobody, and is not noted.
func TestNamesOfOldEditsAreForgotten(t *testing.T) {
	r := newPinFixture(t)
	wakes := func(name string) bool {
		return len(r.documents.ReadersOf("ConfigMap")(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}})) > 0
	}
	name := func(names ...string) {
		r.edit(func(set *hubv1.AddonSet) {
			set.Spec.VariablesFrom = nil
			for _, n := range names {
				set.Spec.VariablesFrom = append(set.Spec.VariablesFrom, hubv1.VariablesSource{ConfigMap: n, Optional: true})
			}
			set.Generation++
		})
		r.look()
	}
	name("colors", "a")
	name("colors", "b")
	if !wakes("colors") || wakes("a") || !wakes("b") {
		t.Error("what it names does not wake it, or what it named before does")
	}
	r.edit(func(set *hubv1.AddonSet) { set.Spec.Rollout = nil; set.Generation++ })
	if r.look(); wakes("colors") || wakes("b") {
		t.Error("a set that needs no revision of them is woken for its ConfigMaps")
	}
}
