// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubscheme"
)

func TestFind(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(hubscheme.New()).
		WithIndex(&hubv1.ClusterRegistration{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
	for _, full := range []string{"w/a", "x/a", "w/b"} {
		namespace, name, _ := strings.Cut(full, "/")
		api.WithObjects(&hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	r := &Reader{Client: api.Build()}
	for name, tc := range map[string]struct{ name, namespace, want string }{
		"Name":        {"b", "", "w/b"},
		"Full":        {"w/a", "", "w/a"},
		"Namespace":   {"a", "x", "x/a"},
		"Several":     {"a", "", `there are 2 clusters called "a": w/a, x/a; write one of these, or -n NAMESPACE`},
		"None":        {"c", "", `there is no cluster "c" on this hub; there are w/a, w/b, x/a`},
		"Kubectl":     {"clusterregistration.chandler.dev/b", "", "w/b"},
		"KubectlIn":   {"clusterregistration.chandler.dev/a", "x", "x/a"},
		"OtherKind":   {"addonset.chandler.dev/b", "", `"addonset.chandler.dev/b" is not a cluster: write NAME or NAMESPACE/NAME`},
		"NoneThere":   {"c", "x", `there is no cluster "c" in namespace "x"; there are x/a`},
		"Elsewhere":   {"b", "x", `there is no cluster "b" in namespace "x": there is one in namespace w`},
		"Elsewheres":  {"a", "z", `there is no cluster "a" in namespace "z": there is one in namespace w, x`},
		"Empty":       {"c", "z", `there is no ClusterRegistration in namespace "z": label an origin chandler.dev/register: "true", or leave out the namespace to look in all`},
		"Contradicts": {"x/a", "w", `cluster x/a is not in namespace "w": leave out -n, or write the name alone`},
		"NoName":      {"x/", "", `"x/" is not a cluster: write NAME or NAMESPACE/NAME`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if reg, err := r.Find(t.Context(), tc.name, tc.namespace); err != nil {
				got = err.Error()
			} else {
				got = reg.Namespace + "/" + reg.Name
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestFindWithoutHub(t *testing.T) {
	for want, refused := range map[string]error{
		"not a Chandler hub": &meta.NoKindMatchError{GroupKind: hubv1.GroupVersion.WithKind("ClusterRegistration").GroupKind()},
		"write -n NAMESPACE": apierrors.NewForbidden(schema.GroupResource{Group: hubv1.GroupVersion.Group, Resource: "clusterregistrations"}, "", nil),
	} {
		api := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refused }})
		_, err := (&Reader{Client: api.Build()}).Find(t.Context(), "a", "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
