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
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
)

// platform is a configuration with a platform namespace.
var platform = &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}}

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
			d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base-w1", UID: "d1"}}
			api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(d).Build()
			r := &Reconciler{Client: api, Labels: func(context.Context, *hubv1.ClusterRegistration) (map[string]string, error) { return tc.labels, tc.err }}
			selector := labels.SelectorFromSet(labels.Set{"tier": "gold"})
			err := r.deselect(t.Context(), &hubv1.AddonSet{}, request{delivery: d, registration: &hubv1.ClusterRegistration{},
				deselected: func(l map[string]string) bool { return !selector.Matches(labels.Set(l)) }})
			if apply.Lagged(err) != tc.again || !tc.again && !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			err = api.Get(t.Context(), client.ObjectKeyFromObject(d), &hubv1.AddonDelivery{})
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == tc.stays {
				t.Errorf("it stays: %t, want %t; %v", !apierrors.IsNotFound(err), tc.stays, err)
			}
		})
	}
}

// A Team's selector and the labels of clusters change in one commit, and the labels are seen first: the Team's rights are not withdrawn where
// the Team stays.
func TestDeselectWaitsForTheTeam(t *testing.T) {
	gold := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	for name, tc := range map[string]struct {
		team  *hubv1.TeamSpec
		of    string
		goes  bool
		stays bool
	}{
		"ItHasAll":         {team: &hubv1.TeamSpec{SelectAll: true}, of: "shop", stays: true},
		"ItHasThoseLabels": {team: &hubv1.TeamSpec{ClusterSelector: gold}, of: "shop", stays: true},
		"ItHasOthers":      {team: &hubv1.TeamSpec{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}}, of: "shop"},
		"ItIsNotValid":     {team: &hubv1.TeamSpec{}, of: "shop"},
		"ItGoes":           {team: &hubv1.TeamSpec{SelectAll: true}, of: "shop", goes: true},
		"ItIsGone":         {of: "shop"},
		"NobodysSet":       {team: &hubv1.TeamSpec{SelectAll: true}},
		"AnothersSet":      {team: &hubv1.TeamSpec{SelectAll: true}, of: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "team-shop-w1", UID: "d1"}}
			b := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(d)
			if tc.team != nil {
				shop := &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop"}, Spec: *tc.team}
				if tc.goes {
					shop.Finalizers, shop.DeletionTimestamp = []string{hubv1.TeamFinalizer}, &metav1.Time{Time: time.Now()}
				}
				b = b.WithObjects(shop)
			}
			api := b.Build()
			set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "team-shop", Labels: map[string]string{hubv1.TeamLabel: tc.of}}}
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"tier": "gold"}}}
			r := &Reconciler{Client: api, Live: api, Config: platform}
			if err := r.deselect(t.Context(), set, request{delivery: d, registration: reg}); err != nil {
				t.Fatal(err)
			}
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
			byName := func(o client.Object) []string { return []string{o.GetName()} }
			api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(d, crd).
				WithIndex(&apiextensionsv1.CustomResourceDefinition{}, metav1.ObjectNameField, byName).
				WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if _, teams := list.(*hubv1.TeamList); teams && tc.gone {
						return apierrors.NewNotFound(hubv1.GroupVersion.WithResource("teams").GroupResource(), "")
					}
					return c.List(ctx, list, opts...)
				}}).Build()
			r := &Reconciler{Client: api, Live: api, Config: platform}
			set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "store"}}
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: tc.registered, Name: "w1"}}
			err := r.deselect(t.Context(), set, request{delivery: d, registration: reg, deselected: func(map[string]string) bool { return true }})
			if there := api.Get(t.Context(), client.ObjectKeyFromObject(d), d) == nil; there != tc.stays || (err != nil) != tc.stays {
				t.Errorf("it stays: %t, want %t; %v", there, tc.stays, err)
			}
		})
	}
}
