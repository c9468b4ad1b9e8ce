// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandler-hub/chandler/internal/identity"
)

func TestNamesFitAndDiffer(t *testing.T) {
	long := strings.Repeat("very-long-name.", 16) + "x"
	regs := []types.NamespacedName{
		{Namespace: "tenants", Name: "t"},
		{Namespace: "tenants", Name: "tenant1"},
		{Namespace: "tenants-tenant1", Name: "t"},
		{Namespace: "tenants", Name: long},
		{Namespace: "tenants", Name: long + "y"},
		{Namespace: "tenants", Name: "ends-with-dash-at-cut-" + strings.Repeat("a", 3) + "-.-.-" + strings.Repeat("b", 60)},
	}
	seen := map[string]string{}
	check := func(what, name string) {
		t.Helper()
		if len(name) > 63 {
			t.Errorf("%s: %q has %d characters, at most 63 fit a label value", what, name, len(name))
		}
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
			t.Errorf("%s: %q: %v", what, name, errs)
		}
		if errs := validation.IsValidLabelValue(name); len(errs) > 0 {
			t.Errorf("%s: %q: %v", what, name, errs)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s share the name %q", what, other, name)
		}
		seen[name] = what
	}
	for _, hub := range []string{"hub-a", "hub-b"} {
		for _, reg := range regs {
			for _, addon := range []string{"cert-manager", "a", strings.Repeat("a", 53), strings.Repeat("a", 52) + "b"} {
				check("object "+hub+"/"+reg.String()+"/"+addon, identity.FluxObject(hub, reg, addon))
			}
			check("kubeconfig "+hub+"/"+reg.String(), identity.KubeconfigCopy(hub, reg))
			check("key "+hub+"/"+reg.String(), identity.ClusterKey(hub, reg))
		}
	}
	for _, reg := range regs {
		for _, set := range []string{"base", long} {
			check("delivery "+set+"/"+reg.String(), identity.Delivery(set, reg))
		}
	}
	for _, chart := range []string{"podinfo", "./charts/podinfo", "charts/Pod_Info/", "..."} {
		check("chart "+chart, identity.Chart(chart, identity.Hash(10, chart)))
	}
}

// TestNamesThatCanBeSearchedFor: the namespace of a registration is in the hash alone, so whoever chooses the name of a namespace can
// search for one whose hash is another's. No name rests on fewer than 64 bits. Dots and cuts leave a registration's name unsaid too, and
// so leave more to search through.
func TestNamesThatCanBeSearchedFor(t *testing.T) {
	for _, tc := range []struct {
		name, addon string
		digits      int
	}{
		{"w1", "web", 16},
		{"w.1", "web", 24},
		{"w1...x", "web", 24},
		{strings.Repeat("a", 42), "web", 16},
		{strings.Repeat("a", 43), "web", 24},
		{strings.Repeat("a", 253), "web", 24},
	} {
		reg := types.NamespacedName{Namespace: "team", Name: tc.name}
		got := identity.FluxObject("chandler", reg, tc.addon)
		if hash := got[strings.LastIndex(got, "-")+1:]; len(hash) != tc.digits {
			t.Errorf("%s, %s: %s ends in %d digits, want %d", tc.name, tc.addon, got, len(hash), tc.digits)
		}
	}
}

// TestDeliveriesOfACluster: a name alone says to which registration a delivery is, if it holds its parts in full.
func TestDeliveriesOfACluster(t *testing.T) {
	edge := types.NamespacedName{Namespace: "shop", Name: "edge"}
	for _, tc := range []struct {
		name string
		want bool
	}{
		{identity.Delivery("base", edge), true},
		{identity.Delivery("my-edge", edge), true},
		{identity.Delivery("base", types.NamespacedName{Namespace: "other", Name: "edge"}), false},
		{identity.Delivery("base", types.NamespacedName{Namespace: "shop", Name: "my-edge"}), false},
		{identity.Delivery(strings.Repeat("a", 60), edge), false},
		{"edge", false}, {"base-edge-0123456789abcdef", false}, {"", false}, {"-", false},
	} {
		if got := identity.IsDelivery(tc.name, edge); got != tc.want {
			t.Errorf("%q is of %s: %t", tc.name, edge, got)
		}
	}
}

// TestNamesAreStable pins names that live objects have: to change one is to reinstall every add-on everywhere.
func TestNamesAreStable(t *testing.T) {
	reg := types.NamespacedName{Namespace: "tenants", Name: "tenant1"}
	for _, tc := range []struct{ got, want string }{
		{identity.FluxObject("chandler", reg, "cert-manager"), "tenant1-cert-manager-3d6beaa206ee9a3a"},
		{identity.KubeconfigCopy("chandler", reg), "tenant1-kubeconfig-d712bf3242e75a3b"},
		{identity.Delivery("base", reg), "base-tenant1-410e392b509fc1e1"},
		{identity.Account("chandler", types.NamespacedName{Namespace: "fleet", Name: "edge1"}), "chandler-fleet-edge1-380b5024e9158d80"},
		{identity.ClusterKey("chandler", reg), "d89def33f0a934a4"},
		{identity.Revision("base", "0123456789", 1), "base-0123456789-e1"},
		{identity.LabelValue("short"), "short"},
		{identity.LabelValue(strings.Repeat("very-long-name.", 20)), "very-long-name-very-long-name-very-lon-b3294ee63577964d4cb1250c"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

// TestEpochs: what a name says of its content and of its renderer, in comparison with a regular expression, which takes
// twenty times as long.
func TestEpochs(t *testing.T) {
	suffix := regexp.MustCompile(`-e[0-9]+$`)
	names := []string{"", "-e1", "e1", "1", "-e", "base-0123-e1", "base-0123-e12", "base-0123", "base-0123-e", "base-0123e1", "base-e2-e1", "base-0123-e1x"}
	for _, a := range names {
		for _, b := range names {
			if got, want := identity.SameContent(a, b), a != "" && suffix.ReplaceAllString(a, "") == suffix.ReplaceAllString(b, ""); got != want {
				t.Errorf("SameContent(%q, %q) is %t", a, b, got)
			}
			if got, want := identity.SameEpoch(a, b), suffix.FindString(a) == suffix.FindString(b); got != want {
				t.Errorf("SameEpoch(%q, %q) is %t", a, b, got)
			}
		}
		if got, want := identity.OfEpoch(a, 7), suffix.ReplaceAllString(a, "-e7"); got != want {
			t.Errorf("OfEpoch(%q, 7) is %q, want %q", a, got, want)
		}
	}
}

// TestNamesThatWereFound: a namespace that was found in four minutes, by search for one whose names have the 32 bits of another's.
func TestNamesThatWereFound(t *testing.T) {
	victim, attacker := types.NamespacedName{Namespace: "fleet", Name: "w1"}, types.NamespacedName{Namespace: "team-6u0b9ab", Name: "w1"}
	if a, b := identity.FluxObject("chandler", victim, "hello"), identity.FluxObject("chandler", attacker, "hello"); a == b {
		t.Errorf("two clusters have the name %s", a)
	}
}
