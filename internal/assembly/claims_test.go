// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/plan"
)

func TestDecide(t *testing.T) {
	release, object := compile.Release{Namespace: "cm", Name: "cert-manager"}, plan.Key{Kind: "Kustomization", Namespace: "ns", Name: "o"}
	cases := map[string]struct {
		claims []claim
		// winners are the sets that may deliver; why is in the reason of each loser.
		winners []string
		why     string
	}{
		"NoConflict":          {[]claim{{Set: "a", Addon: "x"}, {Set: "b", Addon: "y"}}, []string{"a", "b"}, ""},
		"PlatformBeatsAll":    {[]claim{{Set: "a", Addon: "x", Priority: 1000, Incumbent: true}, {Set: "b", Addon: "x", Platform: true, Priority: -5}}, []string{"b"}, "platform sets win"},
		"PriorityBeatsFirst":  {[]claim{{Set: "a", Addon: "x", Incumbent: true}, {Set: "b", Addon: "x", Priority: 1}}, []string{"b"}, "its priority is 1"},
		"FirstStays":          {[]claim{{Set: "a", Addon: "x"}, {Set: "b", Addon: "x", Incumbent: true}}, []string{"b"}, "there first"},
		"WhoLeavesGetsNoMore": {[]claim{{Set: "a", Addon: "x", Platform: true, Priority: 1, Over: true}, {Set: "b", Addon: "x"}}, []string{"b"}, "is leaving the cluster"},
		"WhoEndsGivesUp":      {[]claim{{Set: "a", Addon: "x", Priority: 1, Incumbent: true, Ends: true}, {Set: "b", Addon: "x"}}, []string{"b"}, "is being deleted"},
		"NotToATenant":        {[]claim{{Set: "a", Addon: "x", Platform: true, Ends: true}, {Set: "b", Addon: "x", Priority: 1}}, []string{"a"}, "platform sets win"},
		"HeldStays":           {[]claim{{Set: "a", Addon: "x", Held: true}, {Set: "b", Addon: "x", Priority: 1}}, []string{"a"}, "stays as it is for now"},
		"PlatformBeatsHeld":   {[]claim{{Set: "a", Addon: "x", Held: true, Incumbent: true}, {Set: "b", Addon: "x", Platform: true}}, []string{"b"}, "platform sets win"},
		"OfHeldThePriority":   {[]claim{{Set: "a", Addon: "x", Held: true}, {Set: "b", Addon: "x", Held: true, Priority: 1}}, []string{"b"}, "its priority is 1"},
		"WhatTakesComesFirst": {[]claim{{Set: "a", Addon: "x", Key: object}, {Set: "b", Addon: "y", Key: object, Takes: true}}, []string{"b"}, `Kustomization ns/o, as its add-on "y": what runs under that name has been moved there`},
		"OneObjectEach":       {[]claim{{Set: "a", Addon: "x", Key: object, Incumbent: true}, {Set: "b", Addon: "y", Key: object}}, []string{"a"}, "there first"},
		"NameBreaksTies":      {[]claim{{Set: "b", Addon: "x"}, {Set: "a", Addon: "x"}}, []string{"a"}, `AddonSet /a delivers add-on "x"`},
		"TwoOfOneName":        {[]claim{{Set: "a", Addon: "x"}, {Set: "a", Addon: "x"}}, []string{"a"}, "so the name decides"},
		"SameRelease":         {[]claim{{Set: "a", Addon: "x", Release: release}, {Set: "b", Addon: "y", Release: release}}, []string{"a"}, `Helm release "cert-manager" in namespace "cm", as its add-on "x"`},
		"KustomizationsShare": {[]claim{{Set: "a", Addon: "x"}, {Set: "b", Addon: "y"}, {Set: "c", Addon: "z"}}, []string{"a", "b", "c"}, ""},
		// b loses x to a, so its claim on the release does not stand in c's way.
		"LosersHoldNothing": {[]claim{{Set: "a", Addon: "x", Priority: 2}, {Set: "b", Addon: "x", Release: release, Priority: 1}, {Set: "c", Addon: "z", Release: release}}, []string{"a", "c"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for i := range tc.claims { // each has an object of its own, if the case does not say otherwise
				if tc.claims[i].Key == (plan.Key{}) {
					tc.claims[i].Key.Name = fmt.Sprint(i)
				}
			}
			for range len(tc.claims) {
				tc.claims = append(tc.claims[1:], tc.claims[0]) // every rotation: the order must not matter
				var winners []string
				for i, v := range decide(tc.claims) {
					if v.Won {
						winners = append(winners, tc.claims[i].Set)
					} else if !strings.Contains(v.Reason, tc.why) {
						t.Errorf("%s lost with %q, which does not say %q", tc.claims[i].Set, v.Reason, tc.why)
					}
				}
				slices.Sort(winners)
				if !slices.Equal(winners, tc.winners) {
					t.Errorf("winners %v, want %v", winners, tc.winners)
				}
			}
		})
	}
}
