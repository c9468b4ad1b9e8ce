// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubscheme"
)

// One commit changes the labels of clusters and the selector of a set, and the selector is seen first: what the set selects as
// soon as discovery has copied the labels is not withdrawn.
func TestDeselectWaitsForLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		err    error
		stays  bool
	}{
		"OnTheirWay":    {map[string]string{"tier": "gold"}, nil, true},
		"Others":        {map[string]string{"tier": "prod"}, nil, false},
		"NoOrigin":      {nil, nil, false},
		"CannotBeRead":  {nil, errors.New("the API server is overloaded"), true},
		"OriginHasNone": {map[string]string{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base-w1", UID: "d1"}}
			api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(d).Build()
			r := &Reconciler{Client: api, Labels: func(context.Context, *hubv1.ClusterRegistration) (map[string]string, error) { return tc.labels, tc.err }}
			selector := labels.SelectorFromSet(labels.Set{"tier": "gold"})
			err := r.deselect(t.Context(), request{delivery: d, registration: &hubv1.ClusterRegistration{},
				deselected: func(l map[string]string) bool { return !selector.Matches(labels.Set(l)) }})
			if !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			err = api.Get(t.Context(), client.ObjectKeyFromObject(d), &hubv1.AddonDelivery{})
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == tc.stays {
				t.Errorf("it stays: %t, want %t; %v", !apierrors.IsNotFound(err), tc.stays, err)
			}
		})
	}
}
