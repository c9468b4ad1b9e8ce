// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestNothingIsRegisteredWhileTheCRDGoes: a CRD goes when its last object has gone, so that one that is made meanwhile keeps it.
func TestNothingIsRegisteredWhileTheCRDGoes(t *testing.T) {
	for name, tc := range map[string]struct {
		going, fresh, refused bool
	}{
		"ItGoes":               {going: true, fresh: true, refused: true},
		"ItGoesAndOneIsThere":  {going: true},
		"ItStays":              {fresh: true},
		"ItStaysAndOneIsThere": {},
	} {
		t.Run(name, func(t *testing.T) {
			live := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, crd client.Object, _ ...client.GetOption) error {
				if key.Name != "clusterregistrations.chandler.dev" {
					t.Errorf("it reads %s", key)
				}
				if tc.going {
					crd.SetDeletionTimestamp(&metav1.Time{})
				}
				return nil
			}})
			if err := (&Reconciler{Live: live}).mayRegister(t.Context(), tc.fresh); (err != nil) != tc.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}
