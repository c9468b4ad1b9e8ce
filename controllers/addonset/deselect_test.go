// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"errors"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/must"
)

// platform is a configuration with a platform namespace.
var platform = &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}}

func gold() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
}

// leaving is what a set asks for that leaves what it does not select.
func leaving(t *testing.T, set *hubv1.AddonSet) *removals {
	t.Helper()
	selector := must.Get(match.New(match.Reach{Namespace: set.Namespace, Platform: true}, &set.Spec)).Or(t)
	return (&Reconciler{}).newRemovals(t.Context(), set, match.Aim{Reach: selector.Reach(), Selector: selector})
}

// leaver is a reconciler that withdraws the delivery of set base from cluster one, and the request for it. The set selects gold.
func leaver(t *testing.T) (*Reconciler, *removals, request) {
	t.Helper()
	set, reg, d := setBase(), registrationOne("prod"), deliveryOne(nil)
	set.Spec.ClusterSelector = gold()
	fixture := newMatcherFixture(t, interceptor.Funcs{}, set, reg, d)
	return fixture.Reconciler, leaving(t, set), request{delivery: d, registration: reg, deselected: true}
}

// One commit changes the labels of clusters and the selector of a set, and the selector is seen first: what the set selects as
// soon as discovery has copied the labels is not withdrawn.
func TestDeselectWaitsForLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		err    error
		stays  bool
		again  bool
	}{
		"OnTheirWay":    {map[string]string{"tier": "gold"}, nil, true, true},
		"Others":        {map[string]string{"tier": "prod"}, nil, false, false},
		"NoOrigin":      {nil, nil, false, false},
		"CannotBeRead":  {nil, errors.New("the API server is overloaded"), true, false},
		"OriginHasNone": {map[string]string{}, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, asked, q := leaver(t)
			r.Labels = func(context.Context, *hubv1.ClusterRegistration) (map[string]string, error) { return tc.labels, tc.err }
			err := r.deselect(t.Context(), asked, q)
			if apply.Lagged(err) != tc.again || !tc.again && !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			d := &hubv1.AddonDelivery{}
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(q.delivery), d); err != nil || d.Withdrawn() == tc.stays {
				t.Errorf("it stays: %t, want %t; %v", !d.Withdrawn(), tc.stays, err)
			}
		})
	}
}

// The caches show that the set does not select the cluster. What decides is what the API server has: nothing is withdrawn by a
// label that is back, or a selector that has been edited again.
func TestDeselectReadsLive(t *testing.T) {
	for name, tc := range map[string]struct {
		live  func(set *hubv1.AddonSet, reg *hubv1.ClusterRegistration)
		stays bool
	}{
		"AsCached":      {func(*hubv1.AddonSet, *hubv1.ClusterRegistration) {}, false},
		"LabelIsBack":   {func(_ *hubv1.AddonSet, reg *hubv1.ClusterRegistration) { reg.Labels["tier"] = "gold" }, true},
		"EditedAgain":   {func(set *hubv1.AddonSet, _ *hubv1.ClusterRegistration) { set.Generation++ }, true},
		"AnotherOne":    {func(_ *hubv1.AddonSet, reg *hubv1.ClusterRegistration) { reg.UID = "another" }, true},
		"TheSetAnother": {func(set *hubv1.AddonSet, _ *hubv1.ClusterRegistration) { set.UID = "another" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, asked, q := leaver(t)
			set, reg := asked.set.DeepCopy(), q.registration.DeepCopy()
			tc.live(set, reg)
			r.Live = newMatcherFixture(t, interceptor.Funcs{}, set, reg).api
			err := r.deselect(t.Context(), asked, q)
			d := &hubv1.AddonDelivery{}
			if read := r.Client.Get(t.Context(), client.ObjectKeyFromObject(q.delivery), d); read != nil || d.Withdrawn() == tc.stays ||
				apply.Lagged(err) != tc.stays {
				t.Errorf("it stays: %t, want %t; %v, %v", !d.Withdrawn(), tc.stays, err, read)
			}
		})
	}
}

// A label that is gone for a moment withdraws nothing: the delivery says until when the label may come back.
func TestALabelIsGoneForAMoment(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 300_000_000, time.UTC)
	reg := registrationOne("prod")
	m := newMatcherFixture(t, interceptor.Funcs{}, reg, deliveryOne(func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID = "set" }))
	m.Config.DeselectionDelay, m.Clock = 5*time.Minute, clocktesting.NewFakePassiveClock(now)
	label := func(tier string) *hubv1.AddonDelivery {
		reg.Labels["tier"] = tier
		must.Do(t, m.api.Update(t.Context(), reg))
		return m.look()
	}
	for range 2 { // the second look does not begin anew
		d := label("dev")
		if want := now.Add(5*time.Minute + 700*time.Millisecond); d.DeletionTimestamp != nil || d.Spec.Withdrawal != "" || !d.Spec.WithdrawAfter.Equal(&metav1.Time{Time: want}) {
			t.Fatalf("withdrawn: %t, after %v, want %v", d.DeletionTimestamp != nil, d.Spec.WithdrawAfter, want)
		}
		m.Clock = clocktesting.NewFakePassiveClock(now.Add(time.Minute))
	}
	if d := label("prod"); d.Spec.WithdrawAfter != nil {
		t.Fatalf("it still leaves after %v, and it is selected again", d.Spec.WithdrawAfter)
	}
	label("dev")
	m.publish("base-2-e2", true)
	if d := m.look(); d.Spec.WithdrawAfter != nil {
		t.Errorf("it leaves after %v, and the set does not compile", d.Spec.WithdrawAfter)
	}
}

// TestKeepsFor says for how long a cluster keeps what it has of a set that does not select it.
func TestKeepsFor(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		delay time.Duration
		after time.Duration
		since time.Duration // the process began so long ago
		held  bool
		want  time.Duration
	}{
		"NotNotedYet":    {5 * time.Minute, 0, time.Hour, false, 5 * time.Minute},
		"Waits":          {5 * time.Minute, 2 * time.Minute, time.Hour, false, 2 * time.Minute},
		"Over":           {5 * time.Minute, -2 * time.Minute, time.Hour, false, 0},
		"TheHubStarted":  {5 * time.Minute, -2 * time.Minute, time.Minute, false, 4 * time.Minute},
		"AndWasHeld":     {5 * time.Minute, -2 * time.Minute, time.Minute, true, 0},
		"WithoutADelay":  {0, 0, time.Hour, false, 0},
		"TheFlagChanged": {0, 2 * time.Minute, time.Hour, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Config: &hubconfig.Config{DeselectionDelay: tc.delay}, Clock: clocktesting.NewFakePassiveClock(now), Tenure: &tenure.Tenure{}}
			r.Tenure.Renew(now.Add(-tc.since))
			set, d := &hubv1.AddonSet{}, &hubv1.AddonDelivery{}
			if tc.after != 0 {
				d.Spec.WithdrawAfter = &metav1.Time{Time: now.Add(tc.after)}
			}
			if tc.held {
				set.Status.HeldRemovals = &hubv1.HeldRemovals{Count: 1}
			}
			if got := r.keepsFor(set, d); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// A Team's selector and the labels of clusters change in one commit, and the labels are seen first: the Team's rights are not withdrawn
// where the Team stays.
func TestDeselectWaitsForTheTeam(t *testing.T) {
	for name, tc := range map[string]struct {
		team  *hubv1.TeamSpec
		of    string
		goes  bool
		stays bool
	}{
		"ItHasAll":         {team: &hubv1.TeamSpec{SelectAll: true}, of: "shop", stays: true},
		"ItHasThoseLabels": {team: &hubv1.TeamSpec{ClusterSelector: gold()}, of: "shop", stays: true},
		"ItHasOthers":      {team: &hubv1.TeamSpec{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}}, of: "shop"},
		"ItIsNotValid":     {team: &hubv1.TeamSpec{}, of: "shop"},
		"ItGoes":           {team: &hubv1.TeamSpec{SelectAll: true}, of: "shop", goes: true},
		"ItIsGone":         {of: "shop"},
		"NobodysSet":       {team: &hubv1.TeamSpec{SelectAll: true}},
		"AnothersSet":      {team: &hubv1.TeamSpec{SelectAll: true}, of: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "team-shop-w1", UID: "d1"}}
			set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "team-shop", Labels: map[string]string{hubv1.TeamLabel: tc.of}}}
			set.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "silver"}}
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "w1", Labels: map[string]string{"tier": "gold"}}}
			b := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(d, set, reg)
			if tc.team != nil {
				shop := &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop"}, Spec: *tc.team}
				if tc.goes {
					shop.Finalizers, shop.DeletionTimestamp = []string{hubv1.Finalizer}, &metav1.Time{Time: time.Now()}
				}
				b = b.WithObjects(shop)
			}
			api := b.Build()
			r := &Reconciler{Client: api, Live: api, Config: platform}
			must.Do(t, r.deselect(t.Context(), leaving(t, set), request{delivery: d, registration: reg, deselected: true}))
			err := api.Get(t.Context(), client.ObjectKeyFromObject(d), &hubv1.AddonDelivery{})
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == tc.stays {
				t.Errorf("it stays: %t, want %t; %v", !apierrors.IsNotFound(err), tc.stays, err)
			}
		})
	}
}

// A set that reaches a cluster by a Team alone does not leave it because the Teams are gone with their CRD: nobody has asked for that.
func TestDeselectWaitsForTheCRDOfTeams(t *testing.T) {
	for name, tc := range map[string]struct {
		registered  string
		going, gone bool
		stays       bool
	}{
		"Here":      {registered: "fleet"},
		"Going":     {registered: "fleet", going: true, stays: true},
		"Gone":      {registered: "fleet", gone: true, stays: true},
		"OfItsOwn":  {registered: "shop", gone: true},
		"GoingToo":  {registered: "shop", going: true},
		"BothAtOne": {registered: "fleet", going: true, gone: true, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "store-w1", UID: "d1"}}
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "teams." + hubv1.GroupVersion.Group}}
			if tc.going {
				crd.Finalizers, crd.DeletionTimestamp = []string{"customresourcecleanup.apiextensions.k8s.io"}, &metav1.Time{Time: time.Now()}
			}
			set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "store"}}
			set.Spec.ClusterSelector = gold()
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: tc.registered, Name: "w1"}}
			byName := func(o client.Object) []string { return []string{o.GetName()} }
			api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(d, crd, set, reg).
				WithIndex(&apiextensionsv1.CustomResourceDefinition{}, metav1.ObjectNameField, byName).
				WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if _, teams := list.(*hubv1.TeamList); teams && tc.gone {
						return apierrors.NewNotFound(hubv1.GroupVersion.WithResource("teams").GroupResource(), "")
					}
					return c.List(ctx, list, opts...)
				}}).Build()
			r := &Reconciler{Client: api, Live: api, Config: platform}
			err := r.deselect(t.Context(), leaving(t, set), request{delivery: d, registration: reg, deselected: true})
			if there := api.Get(t.Context(), client.ObjectKeyFromObject(d), d) == nil; there != tc.stays || (err != nil) != tc.stays {
				t.Errorf("it stays: %t, want %t; %v", there, tc.stays, err)
			}
		})
	}
}
