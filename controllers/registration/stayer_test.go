// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
)

// TestStayer: one that leaves uninstalls nothing if another one of its cluster stays. What the cache says of that one counts only if the API
// server says the same.
func TestStayer(t *testing.T) {
	for name, tc := range map[string]struct {
		says, live types.UID
		goes, gone bool
		stays      bool
	}{
		"SaysSo":              {says: "c1", live: "c1", stays: true},
		"HasNotAnswered":      {},
		"OfAnotherCluster":    {says: "c2", live: "c2"},
		"AnswersElsewhereNow": {says: "c1", live: "c2"},
		"Goes":                {says: "c1", live: "c1", goes: true},
		"IsGone":              {says: "c1", gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			api := func(cluster types.UID, goes, gone bool) client.Client {
				b := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New()))
				two := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "two", UID: "two"}}
				two.Status.ClusterUID = cluster
				if goes {
					two.DeletionTimestamp, two.Finalizers = &metav1.Time{Time: moment}, []string{hubv1.Finalizer}
				}
				if gone {
					return b.Build()
				}
				return b.WithObjects(two).Build()
			}
			r := &Reconciler{Client: api(tc.says, false, false), Live: api(tc.live, tc.goes, tc.gone), Config: &hubconfig.Config{}}
			one := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one", UID: "one"}}
			one.Status.ClusterUID = "c1"
			if why, err := r.stayer(t.Context(), one); err != nil || (why != "") != tc.stays {
				t.Errorf("%q, %v; stays: want %t", why, err, tc.stays)
			}
		})
	}
}
