// SPDX-License-Identifier: Apache-2.0

package precedence_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/precedence"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// reg is a registration that was made at noon, and has been of its cluster for so long then.
func reg(namespace, name string, since time.Duration, with ...func(*hubv1.ClusterRegistration)) hubv1.ClusterRegistration {
	r := hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), CreationTimestamp: metav1.NewTime(noon),
	}}
	at := metav1.NewTime(noon.Add(-since))
	r.Status.ClusterSince, r.Status.Credential = &at, &hubv1.CredentialStatus{AuthorityFingerprint: "ca"}
	for _, w := range with {
		w(&r)
	}
	return r
}

func goes(r *hubv1.ClusterRegistration) { r.DeletionTimestamp = &metav1.Time{Time: noon} }

func made(ago time.Duration) func(*hubv1.ClusterRegistration) {
	return func(r *hubv1.ClusterRegistration) { r.CreationTimestamp = metav1.NewTime(noon.Add(-ago)) }
}

func signed(by string) func(*hubv1.ClusterRegistration) {
	return func(r *hubv1.ClusterRegistration) { r.Status.Credential.AuthorityFingerprint = by }
}

func named(r *hubv1.ClusterRegistration) {
	r.Status.Credential = &hubv1.CredentialStatus{WorkloadIdentity: "aws", TargetFingerprint: "t"}
}

func unasked(r *hubv1.ClusterRegistration) { r.Status.Credential = nil }

func undated(r *hubv1.ClusterRegistration) { r.Status.ClusterSince = nil }

// TestHolder: of several registrations of one cluster one has it, and all of them agree on which.
func TestHolder(t *testing.T) {
	for name, tc := range map[string]struct {
		why    string
		regs   []hubv1.ClusterRegistration
		served []string
	}{
		"Alone":             {"nobody is in its way", []hubv1.ClusterRegistration{reg("a", "x", 0)}, []string{"a/x"}},
		"First":             {"who came first goes first", []hubv1.ClusterRegistration{reg("a", "x", time.Minute), reg("a", "y", time.Hour)}, []string{"a/y"}},
		"LedThere":          {"what was made long ago, and led there now, comes last", []hubv1.ClusterRegistration{reg("a", "x", 0, made(time.Hour)), reg("a", "y", time.Minute)}, []string{"a/y"}},
		"AtOnce":            {"what was made first goes first", []hubv1.ClusterRegistration{reg("a", "x", 0), reg("a", "y", 0, made(time.Hour))}, []string{"a/y"}},
		"AllAtOnce":         {"then the name decides", []hubv1.ClusterRegistration{reg("a", "y", 0), reg("a", "x", 0)}, []string{"a/x"}},
		"OfAnOlderHub":      {"it has been of its cluster since it was made", []hubv1.ClusterRegistration{reg("a", "x", time.Minute), reg("a", "y", 0, undated, made(time.Hour))}, []string{"a/y"}},
		"Platform":          {"a tenant's cluster that lies stops no delivery of the platform's", []hubv1.ClusterRegistration{reg("a", "x", time.Hour), reg("fleet", "y", 0)}, []string{"fleet/y"}},
		"FirstGoes":         {"it has the cluster until it is gone", []hubv1.ClusterRegistration{reg("a", "x", 0), reg("a", "y", time.Hour, goes)}, []string{"a/y"}},
		"PlatformGoes":      {"it has the cluster until it is gone", []hubv1.ClusterRegistration{reg("a", "x", 0), reg("fleet", "y", 0, goes)}, []string{"fleet/y"}},
		"TwoTenants":        {"nor one of another tenant's", []hubv1.ClusterRegistration{reg("a", "x", time.Hour), reg("b", "y", 0)}, []string{"a/x", "b/y"}},
		"TenantsOwn":        {"his own count", []hubv1.ClusterRegistration{reg("a", "x", time.Hour), reg("b", "y", 0), reg("b", "z", time.Minute)}, []string{"a/x", "b/z"}},
		"Lies":              {"who administers a cluster does not get rid of what it gets", []hubv1.ClusterRegistration{reg("fleet", "x", time.Hour), reg("fleet", "y", 0, signed("other"))}, []string{"fleet/x", "fleet/y"}},
		"NothingIsProven":   {"so nobody stands back", []hubv1.ClusterRegistration{reg("a", "x", time.Hour, signed("")), reg("a", "y", 0, signed(""))}, []string{"a/x", "a/y"}},
		"NotAskedYet":       {"so nobody stands back", []hubv1.ClusterRegistration{reg("a", "x", time.Hour, unasked), reg("a", "y", 0), reg("a", "z", 0, unasked)}, []string{"a/x", "a/y", "a/z"}},
		"NamedAlike":        {"nobody has asked it", []hubv1.ClusterRegistration{reg("a", "x", time.Hour, named), reg("a", "y", 0, named)}, []string{"a/x"}},
		"GoesAndCameLater":  {"nothing comes through it", []hubv1.ClusterRegistration{reg("a", "x", time.Hour), reg("a", "y", 0, goes)}, []string{"a/x"}},
		"TwoOfThePlatforms": {"who came first goes first", []hubv1.ClusterRegistration{reg("fleet", "x", 0), reg("fleet", "y", time.Hour), reg("a", "z", 2*time.Hour)}, []string{"fleet/y"}},
	} {
		t.Run(name, func(t *testing.T) {
			platform := func(namespace string) bool { return namespace == "fleet" }
			for range 2 { // in whichever order they are listed
				var served []string
				for i := range tc.regs {
					instead := precedence.Holder(&tc.regs[i], tc.regs, platform)
					if instead == nil {
						served = append(served, string(tc.regs[i].UID))
					} else if precedence.Holder(instead, tc.regs, platform) != nil {
						t.Errorf("%s stands back for %s, which is not served itself", tc.regs[i].UID, instead.UID)
					}
				}
				if slices.Sort(served); !slices.Equal(served, tc.served) {
					t.Errorf("served: %v, want %v: %s", served, tc.served, tc.why)
				}
				slices.Reverse(tc.regs)
			}
		})
	}
}

// TestBeside: those are named that are served whether or not one is.
func TestBeside(t *testing.T) {
	all := []hubv1.ClusterRegistration{reg("a", "x", 0), reg("a", "y", 0), reg("a", "z", 0, signed("other")), reg("b", "w", 0), reg("fleet", "v", 0), reg("b", "u", 0, goes)}
	if got := precedence.Beside(&all[0], all, func(namespace string) bool { return namespace == "fleet" }); !slices.Equal(got, []string{"a/z", "b/w"}) {
		t.Errorf("got %v", got)
	}
}

// TestOneself: no registration stands back for itself as the cache had it a moment ago, and none goes on beside itself.
func TestOneself(t *testing.T) {
	platform := func(string) bool { return true }
	now, before := reg("a", "x", 0, unasked), reg("a", "x", time.Hour)
	if by := precedence.Holder(&before, []hubv1.ClusterRegistration{reg("a", "x", 2*time.Hour)}, platform); by != nil {
		t.Errorf("it stands back for %s", by.UID)
	}
	if beside := precedence.Beside(&now, []hubv1.ClusterRegistration{now, before}, platform); len(beside) > 0 {
		t.Errorf("beside itself are %v", beside)
	}
}

// TestStayers: who only has a cluster's name does not go on with what is there.
func TestStayers(t *testing.T) {
	counts := func(r *hubv1.ClusterRegistration) { r.Status.AddonCounts = &hubv1.ObjectCounts{Total: 1} }
	ready := func(r *hubv1.ClusterRegistration) { r.Status.AddonCounts = &hubv1.ObjectCounts{Ready: 1} }
	platform := func(namespace string) bool { return namespace == "fleet" }
	for name, tc := range map[string]struct {
		all  []hubv1.ClusterRegistration // the first one goes
		want []string
	}{
		"SameNamespace":        {[]hubv1.ClusterRegistration{reg("a", "x", 0), reg("a", "y", 0, signed("other"))}, []string{"a/y"}},
		"ThePlatforms":         {[]hubv1.ClusterRegistration{reg("a", "x", 0), reg("fleet", "y", 0, signed("other"))}, []string{"fleet/y"}},
		"SameCA":               {[]hubv1.ClusterRegistration{reg("fleet", "x", 0), reg("a", "y", 0)}, []string{"a/y"}},
		"AnotherCA":            {[]hubv1.ClusterRegistration{reg("fleet", "x", 0), reg("a", "y", 0, signed("other"))}, nil},
		"AnotherCAButItServes": {[]hubv1.ClusterRegistration{reg("fleet", "x", 0), reg("a", "y", 0, signed("other"), ready)}, []string{"a/y"}},
		"NamedAlike":           {[]hubv1.ClusterRegistration{reg("fleet", "x", 0, named), reg("a", "y", 0, named)}, nil},
		"NamedAlikeAndServes":  {[]hubv1.ClusterRegistration{reg("fleet", "x", 0, named), reg("a", "y", 0, named, ready)}, []string{"a/y"}},
		"ServesNothing":        {[]hubv1.ClusterRegistration{reg("fleet", "x", 0), reg("a", "y", 0, signed("other"), counts)}, nil},
		"Goes":                 {[]hubv1.ClusterRegistration{reg("fleet", "x", 0), reg("a", "y", 0, goes)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := precedence.Stayers(&tc.all[0], tc.all, platform); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
