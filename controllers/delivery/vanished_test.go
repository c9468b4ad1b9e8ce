// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
)

// vanishing is an add-on's object, as the cache has it and as it is, and what the delivery's status said last.
type vanishing struct {
	last hubv1.AddonStatus
	// cached and live are nil if it is not there.
	cached, live *vanishingObject
	// ours is true if the hub had it go lately.
	ours bool
}

type vanishingObject struct{ suspended, deleting bool }

var vanishingKey = plan.Key{Kind: fluxspec.HelmReleaseKind, Namespace: "flux-system", Name: "one-app"}

func pausedApp() hubv1.AddonStatus {
	return hubv1.AddonStatus{Name: "app", Kind: vanishingKey.Kind, Object: vanishingKey.Name, State: hubv1.AddonPaused, Suspended: true, AppliedGeneration: 1}
}

// room makes of it a room, a cluster and its delivery.
func (v *vanishing) room(t *testing.T) (*room, *cluster, *delivery) {
	t.Helper()
	m := newRoom(t)
	d := leaving(v.last)
	d.DeletionTimestamp, d.Spec.RevisionName, d.before.Status.ObservedRevision = nil, "base-2-e2", "base-1-e2"
	c := &cluster{key: roomCluster, now: m.clock.Now(), deliveries: []*delivery{d}, objects: map[plan.Key]*object{}}
	if o := v.cached; o != nil {
		c.objects[vanishingKey] = &object{delivery: d.Name, Observed: plan.Observed{Key: vanishingKey, Addon: "app", Suspended: o.suspended, Deleting: o.deleting}}
	}
	if o := v.live; o != nil {
		hr := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: vanishingKey.Namespace, Name: vanishingKey.Name, Finalizers: []string{fluxFinalizer}}}
		hr.Spec.Suspend = o.suspended
		m.must(m.api.Create(t.Context(), hr))
		if o.deleting {
			m.must(m.api.Delete(t.Context(), hr))
		}
	}
	if v.ours {
		m.r.ledger.remove(vanishingKey, "", m.clock.Now())
	}
	return m, c, d
}

// events returns what has been told of orphans.
func (m *room) orphanEvents() []string {
	var out []string
	for {
		select {
		case e := <-m.events.Events:
			if strings.Contains(e, hubv1.AddonOrphanedEvent) {
				out = append(out, e)
			}
		default:
			return out
		}
	}
}

// TestOnClusterHalfApplied: a Kustomization that failed half way has noted nothing of what is there.
func TestOnClusterHalfApplied(t *testing.T) {
	k := plan.Key{Kind: fluxspec.KustomizationKind, Namespace: "flux-system", Name: "one-app"}
	failed := hubv1.AddonStatus{Name: "app", Kind: k.Kind, Object: k.Name, State: hubv1.AddonFailed, AppliedGeneration: 1}
	for reason, want := range map[string]bool{"ReconciliationFailed": true, "BuildFailed": false, "HealthCheckFailed": false} {
		a := failed
		_, c, d := (&vanishing{last: a}).room(t)
		c.objects[k] = &object{delivery: d.Name, state: fluxstate.State{Ready: metav1.ConditionFalse, Reason: reason}, Observed: plan.Observed{Key: k, Addon: "app", Content: plan.Content{Folder: "/a"}}}
		a.OnCluster = c.onCluster(d, a)
		if got := len(a.OnCluster) > 0; got != want {
			t.Errorf("%s: on the cluster: %q", reason, a.OnCluster)
		}
		delete(c.objects, k)
		d.before.Status.Addons = []hubv1.AddonStatus{a}
		out := d.orphans(nil, c.objects, &ledger{})
		if got := len(out) == 1 && strings.Contains(out[0].Message, "before Flux had noted"); got != want {
			t.Errorf("%s: orphans %+v", reason, out)
		}
	}
}

// TestVanished: Flux removes nothing when an object goes that is suspended, and nobody but the delivery's status knows then that it was there. What
// the hub has had go itself, it has told of, or somebody goes on with it.
func TestVanished(t *testing.T) {
	running := pausedApp()
	running.State, running.Suspended = hubv1.AddonReady, false
	unreachable := pausedApp()
	unreachable.State, unreachable.Suspended = hubv1.AddonUnreachable, false
	told := pausedApp()
	told.State = hubv1.AddonOrphaned
	unnamed := pausedApp()
	unnamed.Object = ""
	for name, tc := range map[string]struct {
		vanishing
		want bool
	}{
		"gone":                           {vanishing{last: pausedApp()}, true},
		"going":                          {vanishing{last: pausedApp(), cached: &vanishingObject{true, true}}, true},
		"there":                          {vanishing{last: pausedApp(), cached: &vanishingObject{true, false}}, false},
		"resumed, and being uninstalled": {vanishing{last: pausedApp(), cached: &vanishingObject{false, true}}, false},
		"gone by the hub":                {vanishing{last: pausedApp(), ours: true}, false},
		"gone while it ran, so it is uninstalled": {vanishing{last: running}, false},
		"the hub has just suspended it":           {vanishing{last: unreachable}, true},
		"told of already":                         {vanishing{last: told}, false},
		"never had an object":                     {vanishing{last: unnamed}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, c, d := tc.room(t)
			if got := m.r.vanished(c, d, tc.last); got != tc.want {
				t.Errorf("it has vanished: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestTellLeftBehind: what an object that is gone has left is told, but for what the next one goes on with.
func TestTellLeftBehind(t *testing.T) {
	const same, changed = "base-2-e2", "base-1-e2"
	app, other := hubv1.HelmReleaseIdentity{Name: "app", Namespace: "app", StorageNamespace: "app"}, "Helm release app/old"
	for name, tc := range map[string]struct {
		observed  string
		onCluster []string
		// cached is nil if its object is not there, and noted what Flux says of that.
		cached *vanishingObject
		noted  string
		want   bool
	}{
		"it is the same release":                             {same, []string{"Helm release app/app"}, nil, "", false},
		"it was another release":                             {same, []string{other}, nil, "", true},
		"it was the same, and the set has changed":           {changed, []string{"Helm release app/app"}, nil, "", false},
		"nobody knows what it was, and the set has changed":  {changed, nil, nil, "", true},
		"nobody knows what it was, and the set is as it was": {same, nil, nil, "", false},
		"it stays": {changed, []string{other}, &vanishingObject{true, false}, "1.0.0", false},
		"it was made again, and Flux has not come to it yet": {changed, []string{other}, &vanishingObject{}, "", true},
		"it was made again, and Flux has moved it by itself": {changed, []string{other}, &vanishingObject{}, "1.0.0", false},
		"it was made again, and goes on with the same":       {changed, []string{"Helm release app/app"}, &vanishingObject{}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			last := pausedApp()
			last.OnCluster = tc.onCluster
			m, c, d := (&vanishing{last: last, cached: tc.cached}).room(t)
			if o := c.objects[vanishingKey]; o != nil {
				o.state.Version = tc.noted
			}
			d.before.Status.ObservedRevision = tc.observed
			w := &assembly.Wanted{Object: render.Object{Addon: "app", Kind: vanishingKey.Kind, Namespace: vanishingKey.Namespace, Name: vanishingKey.Name, Release: app}}
			m.r.tellLeftBehind(t.Context(), c, d, w)
			got := m.orphanEvents()
			if len(got) > 0 != tc.want || tc.want && (!strings.Contains(got[0], `"app"`) || !strings.Contains(got[0], roomCluster.String())) {
				t.Errorf("told: %v", got)
			}
			if tc.want && len(tc.onCluster) > 0 && !strings.Contains(got[0], other) {
				t.Errorf("it does not say what is left: %s", got[0])
			}
			w.Addon, w.Name = "another", "one-another"
			if m.r.tellLeftBehind(t.Context(), c, d, w); len(m.orphanEvents()) > 0 {
				t.Error("told of an add-on that the status does not know")
			}
		})
	}
}

// TestOnCluster: what is on the cluster is written down while no Flux object would remove it.
func TestOnCluster(t *testing.T) {
	app, old := "Helm release app/app", "Helm release app/old"
	identity := func(name string) hubv1.HelmReleaseIdentity {
		return hubv1.HelmReleaseIdentity{Name: name, Namespace: "app", StorageNamespace: "app"}
	}
	running, made := pausedApp(), pausedApp()
	running.State, running.Suspended = hubv1.AddonReady, false
	made.State, made.Suspended, made.AppliedGeneration = hubv1.AddonProgressing, false, 1
	gone := pausedApp()
	gone.AppliedGeneration = 0
	told := gone
	told.State = hubv1.AddonOrphaned
	for name, tc := range map[string]struct {
		before []string
		cached *vanishingObject
		// installed is what Flux has installed, if that is not what is asked for; noted is its version.
		installed, noted string
		now              hubv1.AddonStatus
		want             string
	}{
		"it runs":                           {nil, &vanishingObject{}, "", "1.0.0", running, ""},
		"suspended":                         {nil, &vanishingObject{true, false}, "", "1.0.0", pausedApp(), app},
		"suspended before it was moved":     {nil, &vanishingObject{true, false}, "old", "1.0.0", pausedApp(), old},
		"suspended before it was there":     {nil, &vanishingObject{true, false}, "", "", pausedApp(), ""},
		"resumed":                           {[]string{app}, &vanishingObject{}, "", "1.0.0", running, ""},
		"gone":                              {[]string{old}, nil, "", "", gone, old},
		"made again, and told of":           {[]string{old}, nil, "", "", made, ""},
		"made again, and to go on with it":  {[]string{app}, nil, "", "", made, app},
		"seen, and Flux has not come to it": {[]string{app}, &vanishingObject{}, "", "", made, app},
		"seen, and Flux has come to it":     {[]string{app}, &vanishingObject{}, "", "1.0.0", running, ""},
		"let go, and told of":               {[]string{app}, nil, "", "", told, ""},
	} {
		t.Run(name, func(t *testing.T) {
			last := pausedApp()
			last.OnCluster = tc.before
			_, c, d := (&vanishing{last: last, cached: tc.cached}).room(t)
			d.Wanted = []assembly.Wanted{{Object: render.Object{Addon: "app", Kind: vanishingKey.Kind, Namespace: vanishingKey.Namespace, Name: vanishingKey.Name, Release: identity("app")}}}
			if o := c.objects[vanishingKey]; o != nil {
				o.state.Version, o.Release = tc.noted, identity("app")
				if tc.installed != "" {
					o.InstalledAs = identity(tc.installed)
				}
			}
			if got := strings.Join(c.onCluster(d, tc.now), ", "); got != tc.want {
				t.Errorf("on the cluster: %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTellForgotten: a delivery goes, and with it what its status alone remembers. What is there at that moment counts, and not the cache.
func TestTellForgotten(t *testing.T) {
	again := pausedApp()
	again.OnCluster = []string{"Helm release app/app"}
	for name, tc := range map[string]struct {
		vanishing
		want bool
	}{
		"gone":                           {vanishing{last: pausedApp()}, true},
		"gone, and the cache has it":     {vanishing{last: pausedApp(), cached: &vanishingObject{true, false}}, true},
		"going":                          {vanishing{last: pausedApp(), live: &vanishingObject{true, true}}, true},
		"there":                          {vanishing{last: pausedApp(), live: &vanishingObject{true, false}}, false},
		"made again, and not noted yet":  {vanishing{last: again, live: &vanishingObject{false, false}}, true},
		"resumed, and being uninstalled": {vanishing{last: pausedApp(), live: &vanishingObject{false, true}}, false},
		"gone by the hub":                {vanishing{last: pausedApp(), ours: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, c, d := tc.room(t)
			m.must(m.r.tellForgotten(t.Context(), c, d))
			if got := m.orphanEvents(); len(got) > 0 != tc.want {
				t.Errorf("told: %v", got)
			}
		})
	}
	m, c, d := (&vanishing{last: pausedApp()}).room(t)
	m.r.Live = interceptor.NewClient(m.api, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("overloaded")
	}})
	if err := m.r.tellForgotten(t.Context(), c, d); err == nil || len(m.orphanEvents()) > 0 {
		t.Errorf("what could not be read is taken for gone, or for there: %v", err)
	}
}

// TestTellOvertaken: what Flux has applied in part, and not in whole, it never notes if it is to apply something else then.
func TestTellOvertaken(t *testing.T) {
	marked := plan.Observed{AppliedAs: "a", Mark: "1 a"}
	never := kustomizev1.KustomizationStatus{History: fluxmeta.History{{TotalReconciliations: 1}}}
	failed := func(of, succeeded int64) kustomizev1.KustomizationStatus {
		return kustomizev1.KustomizationStatus{ObservedGeneration: succeeded, LastAppliedRevision: "main@sha1:0", Conditions: []metav1.Condition{
			{Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "ReconciliationFailed", ObservedGeneration: of}}}
	}
	stalled := failed(3, 3)
	stalled.Conditions[0].Reason = fluxmeta.InvalidCELExpressionReason
	for name, tc := range map[string]struct {
		there   plan.Observed
		version string
		live    *kustomizev1.KustomizationStatus
		to      string
		want    bool
	}{
		"it failed with the folder before":                {marked, "main@sha1:0", new(failed(2, 1)), "./c", true},
		"it has stalled, and may have failed before that": {marked, "main@sha1:0", &stalled, "./c", true},
		"it goes back":                          {marked, "main@sha1:0", new(failed(2, 1)), "./a", true},
		"the folder stays":                      {marked, "main@sha1:0", new(failed(2, 1)), "./b", false},
		"Flux has not come to that":             {marked, "main@sha1:0", new(failed(1, 1)), "./c", false},
		"it has succeeded, as the cache lags":   {marked, "main@sha1:0", new(failed(3, 2)), "./c", false},
		"it has never succeeded":                {plan.Observed{}, "", &never, "./c", true},
		"it has never been tried":               {plan.Observed{}, "", &kustomizev1.KustomizationStatus{}, "./c", false},
		"it has succeeded":                      {plan.Observed{}, "main@sha1:0", &never, "./c", false},
		"it is gone, and nothing is made of it": {marked, "main@sha1:0", nil, "./c", false},
	} {
		t.Run(name, func(t *testing.T) {
			m, c, d := (&vanishing{last: pausedApp()}).room(t)
			k := plan.Key{Kind: fluxspec.KustomizationKind, Namespace: "flux-system", Name: "one-app"}
			tc.there.Key, tc.there.Addon, tc.there.Folder = k, "app", plan.FolderOf("./b")
			if tc.live != nil {
				m.must(m.api.Create(t.Context(), &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}, Status: *tc.live}))
			}
			w := &assembly.Wanted{Object: render.Object{Addon: "app", Kind: k.Kind, Path: tc.to}}
			m.must(m.r.tellOvertaken(t.Context(), c, d, w, &object{Observed: tc.there, state: fluxstate.State{Version: tc.version}}))
			if got := m.orphanEvents(); len(got) > 0 != tc.want || tc.want && (!strings.Contains(got[0], `"app"`) || !strings.Contains(got[0], roomCluster.String())) {
				t.Errorf("told: %v", got)
			}
		})
	}
}

// TestNeverTaken: what an add-on was to take over is left behind if it is not to come any more, unless its own delivery makes that again.
func TestNeverTaken(t *testing.T) {
	k := plan.Key{Kind: fluxspec.HelmReleaseKind, Namespace: "flux-system", Name: "one-before"}
	again := []assembly.Wanted{{Object: render.Object{Addon: "before", Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}}}
	for name, tc := range map[string]struct {
		lost, going []string
		wanted      []assembly.Wanted
		now         hubv1.AddonStatus
		want        bool
	}{
		"gone, and another set has the name": {lost: []string{k.String()}, now: hubv1.AddonStatus{State: hubv1.AddonLostTo}, want: true},
		"going, and it is excluded":          {going: []string{k.String()}, now: hubv1.AddonStatus{State: hubv1.AddonExcluded}, want: true},
		"going, and it is made again":        {going: []string{k.String()}, wanted: again, now: hubv1.AddonStatus{State: hubv1.AddonExcluded}},
		"there":                              {now: hubv1.AddonStatus{State: hubv1.AddonLostTo}},
		"it has an object":                   {lost: []string{k.String()}, now: hubv1.AddonStatus{State: hubv1.AddonReady, Object: "one-app"}},
		"it waits still":                     {lost: []string{k.String()}, now: hubv1.AddonStatus{State: hubv1.AddonFailed, TakesOver: []string{k.String()}}},
		"the status says so":                 {lost: []string{k.String()}, now: hubv1.AddonStatus{State: hubv1.AddonOrphaned}},
	} {
		t.Run(name, func(t *testing.T) {
			last := hubv1.AddonStatus{Name: "app", Kind: k.Kind, Object: "one-app", State: hubv1.AddonProgressing, TakesOver: []string{k.String()}}
			m, c, d := (&vanishing{last: last}).room(t)
			tc.now.Name = "app"
			d.lost, d.going, d.Wanted, d.Status.Addons = tc.lost, tc.going, tc.wanted, []hubv1.AddonStatus{tc.now}
			m.r.tellReplaced(t.Context(), c, d)
			if got := m.orphanEvents(); len(got) > 0 != tc.want || tc.want && (!strings.Contains(got[0], `"app"`) || !strings.Contains(got[0], k.String())) {
				t.Errorf("told: %v", got)
			}
		})
	}
}

// TestVanishedAndDoesNotComeOut: nobody makes it again before it comes out, which may be never, so that is told, once.
func TestVanishedAndDoesNotComeOut(t *testing.T) {
	again := pausedApp()
	again.State, again.AppliedGeneration, again.Suspended = hubv1.AddonFailed, 0, true
	there := again
	there.AppliedGeneration = 2
	for name, tc := range map[string]struct {
		last hubv1.AddonStatus
		want bool
	}{
		"it came out before":                       {pausedApp(), true},
		"it did not come out, and its object went": {there, true},
		"the status says it already":               {again, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, c, d := (&vanishing{last: tc.last}).room(t)
			now := again
			d.Status.Addons = []hubv1.AddonStatus{now}
			m.r.tellReplaced(t.Context(), c, d)
			if got := m.orphanEvents(); len(got) > 0 != tc.want || tc.want && !strings.Contains(got[0], "does not come out") {
				t.Errorf("told: %v", got)
			}
		})
	}
}
