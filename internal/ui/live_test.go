// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/ui/uitest"
)

// TestOpenClusterPage: it asks the hub anew when something of its cluster changes, and not at each change of the fleet; and it tells when.
func TestOpenClusterPage(t *testing.T) {
	f := uitest.Fleet(12, 2)
	var objects []client.Object
	for _, reg := range f.Registrations {
		objects = append(objects, reg.DeepCopy())
	}
	s := serve(t, f, objects...)
	next := s.events("/clusters/tenants-1/cluster-0001")
	next("view")
	if got := next("read"); got[1] != "data: 2026-06-01T12:00:00Z" {
		t.Errorf("it says that it was read at %s", got)
	}
	first := s.asked.Load()
	if first < 5 {
		t.Fatalf("it asks the hub %d times", first)
	}
	for range 3 {
		other := uitest.Fleet(12, 2)
		other.Deliveries[0].Status.Addons[0].State = hubv1.AddonFailed // of cluster-0000
		s.fleet.set(other)
		time.Sleep(1500 * time.Millisecond) // longer than the page waits between two looks
	}
	if again := s.asked.Load(); again != first {
		t.Errorf("other clusters change, and it asks the hub %d times more", again-first)
	}
	own := uitest.Fleet(12, 2)
	own.Deliveries[2].Status.Addons[0].State = hubv1.AddonFailed
	s.fleet.set(own)
	next("read")
	if again := s.asked.Load(); again <= first {
		t.Error("its own cluster changes, and it does not look")
	}
}
