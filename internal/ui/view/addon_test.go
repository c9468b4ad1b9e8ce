// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/ui/uitest"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

// TestAddonStory: where it is otherwise, and why, and nothing of the clusters where it is as on most.
func TestAddonStory(t *testing.T) {
	f := uitest.Fleet(30, 2)
	f.Sets[0].Spec.Overlays = []hubv1.Overlay{
		{Name: "edge", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "us-east"}}, Addons: []hubv1.AddonOverlay{{Name: "cert-manager", Exclude: new(true)}}},
		{Name: "small", When: "cluster.nodes < 3", Addons: []hubv1.AddonOverlay{{Name: "cert-manager"}}},
		{Name: "of-another", Addons: []hubv1.AddonOverlay{{Name: "cilium"}}},
	}
	of := func(cluster int) *hubv1.AddonDelivery { return f.Deliveries[2*cluster] }
	of(1).Status.Addons[0].Version = "1.16.0"
	of(2).Spec.RevisionName = "cert-manager-1111111111-e3"
	f.Registrations[5].Spec.Overrides = []hubv1.Override{{Name: "cert-manager", Reason: "until\nFriday"}, {Name: "cilium"}}
	s := view.NewIndex(f).Addon("cert-manager", view.ParseQuery("/addons/cert-manager", url.Values{}))
	got := map[string]string{}
	for _, d := range s.Different {
		got[d.Name] = strings.Join(d.What, "; ")
	}
	for name, want := range map[string]string{
		"cluster-0001": "most have version 1.17.2",
		"cluster-0002": "it has revision cert-manager-1111111111-e3, and most have cert-manager-2222222222-e3",
		"cluster-0003": "the cluster does not answer",
		"cluster-0004": "spec.pause: maintenance",
		"cluster-0005": "its cluster overrides it: until Friday",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("others are not otherwise: %v", got)
	}
	if len(s.Versions) != 2 || !s.Versions[0].Most || s.Versions[0].N != 29 || s.Versions[1].URL != "/?addon=cert-manager&version=1.16.0" {
		t.Errorf("versions: %+v", s.Versions)
	}
	if len(s.Overlays) != 2 || s.Overlays[0].N != 6 || !s.Overlays[0].Excludes || !s.Overlays[0].Known || s.Overlays[1].Known {
		t.Errorf("overlays: %+v", s.Overlays)
	}
	if x := view.NewIndex(f); x.Addon("nothing", view.Query{}) != nil {
		t.Error("an add-on that nobody has")
	}
}
