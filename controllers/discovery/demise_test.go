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
			live := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
				crd := metav1.PartialObjectMetadata{}
				if tc.going {
					crd.DeletionTimestamp = &metav1.Time{}
				}
				list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{crd}
				return nil
			}})
			if err := (&Reconciler{Live: live}).mayRegister(t.Context(), tc.fresh); (err != nil) != tc.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}
