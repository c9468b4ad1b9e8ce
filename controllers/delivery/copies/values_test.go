// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/delivery/planned"
)

// An error that persists fails no pass: the cluster would be tried again for ever, and a NotFound tells what is not shared apart.
func TestCopiesOriginalGoneInBetween(t *testing.T) {
	values := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "values", Annotations: map[string]string{hubv1.ShareAnnotation: "flux-system"}}}
	r := &Keeper{Live: fake.NewClientBuilder().WithObjects(values).Build()}
	c := &Cluster{Cluster: planned.Begin(&observed.Cluster{Key: types.NamespacedName{Namespace: "fleet", Name: "one"}})}
	_, gone := r.original(t.Context(), c, &copied{kind: "Secret", namespace: "flux-system", original: "none"}, nil)
	_, unshared := r.original(t.Context(), c, &copied{kind: "Secret", namespace: "elsewhere", original: "values"}, nil)
	if gone.Error() != unshared.Error() {
		t.Errorf("%q and %q tell whether it is there", gone, unshared)
	}
}
