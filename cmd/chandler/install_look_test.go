// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandler-hub/chandler/internal/hubscheme"
)

// TestLookAroundForgedDeployment: whoever may write a Deployment in his namespace may give it the label of a hub. One whose account may not
// do a hub's work is none, and does not hold up the installation, the upgrade and the removal of the hub.
func TestLookAroundForgedDeployment(t *testing.T) {
	deployment := func(namespace, name, account string, replicas *int32) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": "chandler"}}}
		d.Spec.Replicas, d.Spec.Template.Spec.ServiceAccountName = replicas, account
		return d
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", errors.New("no"))
	for name, tc := range map[string]struct {
		there *appsv1.Deployment
		asked error
		want  []string
	}{
		"a hub":                      {there: deployment("other", "hub", "hub", nil), want: []string{"Deployment other/hub"}},
		"a hub that is scaled down":  {there: deployment("other", "hub", "hub", ptr.To[int32](0))},
		"a tenant's":                 {there: deployment("tenant", "forged", "hub", nil)},
		"a tenant's, of no account":  {there: deployment("tenant", "forged", "", ptr.To[int32](1))},
		"nobody says whose it is":    {there: deployment("tenant", "forged", "", nil), asked: forbidden, want: []string{"Deployment tenant/forged"}},
		"the one that is looked for": {there: deployment("chandler-system", "chandler", "nobody", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			may := func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				r := o.(*authorizationv1.SubjectAccessReview)
				r.Status.Allowed = r.Spec.User == "system:serviceaccount:other:hub"
				return tc.asked
			}
			api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(tc.there).WithInterceptorFuncs(interceptor.Funcs{Create: may}).
				WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
			there, err := lookAround(t.Context(), api, "chandler-system")
			if err != nil || !slices.Equal(there.Elsewhere, tc.want) {
				t.Errorf("%v, %v; want %v", there.Elsewhere, err, tc.want)
			}
		})
	}
}
