// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/ui/uitest"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

// page is a cluster page whose hub has all the objects of a fleet.
const (
	pageCluster = "cluster-0001"
	pagePath    = "/clusters/tenants-1/" + pageCluster
)

// serveCluster serves a fleet, and has its hub keep the objects that a page of cluster-0001 is about.
func serveCluster(t *testing.T, sets int) (*served, *view.Fleet) {
	t.Helper()
	f := uitest.Fleet(12, sets)
	var objects []client.Object
	for _, reg := range f.Registrations {
		objects = append(objects, reg.DeepCopy())
	}
	for _, s := range f.Sets {
		r := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{"spec":{"selectAll":true}}`)}}
		r.Namespace, r.Name = s.Namespace, s.Status.Revision
		objects = append(objects, s.DeepCopy(), r)
	}
	for _, d := range f.Deliveries {
		if key := d.Spec.RegistrationRef.Key(); key.Name == pageCluster {
			d = d.DeepCopy()
			d.Labels = map[string]string{hubv1.ClusterLabel: key.Name, hubv1.ClusterKeyLabel: identity.ClusterKey("chandler", key)}
			objects = append(objects, d)
		}
	}
	s := serve(t, f, objects...)
	for _, reg := range f.Registrations {
		stored := &hubv1.ClusterRegistration{}
		must.Do(t, s.hub.Get(t.Context(), client.ObjectKeyFromObject(reg), stored))
		reg.ResourceVersion = stored.ResourceVersion
	}
	s.asked.take()
	return s, f
}

// TestClusterPageCosts: the first look at a cluster reads all that is about it, and each later one reads what has changed.
func TestClusterPageCosts(t *testing.T) {
	s, f := serveCluster(t, 3)
	look := func() string {
		t.Helper()
		code, body, _ := s.get(pagePath)
		if code != 200 {
			t.Fatalf("%d: %s", code, body)
		}
		return body
	}
	look()
	first := []string{"get ClusterRegistration", "get ControllerRevision", "get ControllerRevision", "get ControllerRevision", "list AddonDelivery", "list AddonSet", "list Event", "list Event", "list Event", "list Event",
		"list HelmRelease", "list Kustomization", "list Team", "watch AddonDelivery", "watch AddonSet", "watch HelmRelease", "watch Kustomization", "watch Team"}
	if diff := cmp.Diff(first, s.asked.take()); diff != "" {
		t.Errorf("the first look: -want +got:\n%s", diff)
	}
	for range 5 {
		look()
	}
	if again := s.asked.take(); len(again) > 0 {
		t.Errorf("nothing has changed, and it asks the hub for %q", again)
	}
	d := &hubv1.AddonDelivery{}
	at := client.ObjectKey{Namespace: "flux-system", Name: identity.Delivery(f.Sets[1].Name, client.ObjectKeyFromObject(f.Registrations[1]))}
	must.Do(t, s.hub.Get(t.Context(), at, d))
	d.Status.Addons[0].State, d.Status.Addons[0].Message = hubv1.AddonFailed, "no such image"
	must.Do(t, s.hub.Update(t.Context(), d))
	s.asked.take()
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(look(), "no such image") {
		if time.Now().After(deadline) {
			t.Fatal("the page does not show the change")
		}
	}
	if diff := cmp.Diff([]string{"list Event"}, s.asked.take()); diff != "" {
		t.Errorf("one delivery has changed: -want +got:\n%s", diff)
	}
	if code, _, _ := s.get(pagePath + "/addons/" + f.Sets[0].Name); code != 200 {
		t.Errorf("the page of an add-on: %d", code)
	}
	if more := s.asked.take(); strings.Contains(fmt.Sprint(more), "list") {
		t.Errorf("the page of an add-on of the same cluster asks for %q", more)
	}
}

// TestClusterPageAfterACut: when the watches have ended, what they followed is read anew, so nobody sees a fleet that is no more.
func TestClusterPageAfterACut(t *testing.T) {
	s, _ := serveCluster(t, 1)
	if code, _, _ := s.get(pagePath); code != 200 {
		t.Fatal(code)
	}
	s.asked.take()
	s.asked.cut()
	found := ""
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if code, _, _ := s.get(pagePath); code != 200 {
			t.Fatal(code)
		}
		found += strings.Join(s.asked.take(), ", ")
		if !slices.ContainsFunc([]string{"AddonDelivery", "AddonSet", "HelmRelease", "Kustomization", "Team"}, func(kind string) bool {
			return !strings.Contains(found, "list "+kind) || !strings.Contains(found, "watch "+kind)
		}) {
			return
		}
	}
	t.Errorf("it asks the hub for %s", found)
}

// TestOpenClusterPage: it shows anew what changes of its cluster, says when it looked, and other clusters cost nothing.
func TestOpenClusterPage(t *testing.T) {
	s, f := serveCluster(t, 2)
	next := s.events(pagePath)
	next("view")
	if got := next("read"); got[1] != "data: 2026-06-01T12:00:00Z" {
		t.Errorf("it says that it was read at %s", got)
	}
	if first := s.asked.take(); len(first) < 10 {
		t.Fatalf("it asks the hub for %q", first)
	}
	changed := func(delivery int) {
		other := uitest.Fleet(12, 2)
		other.Registrations = f.Registrations
		other.Deliveries[delivery].Status.Addons[0].State = hubv1.AddonFailed
		s.fleet.set(other)
	}
	for i := range 3 {
		changed(i / 2) // of cluster-0000
	}
	changed(2) // of cluster-0001
	next("read")
	if again := s.asked.take(); len(again) > 0 {
		t.Errorf("the fleet changes, and it asks the hub for %q", again)
	}
}
