// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/must"
)

// teamOf is the reach of the sets in namespace shop, which a Team governs.
func teamOf(clusters labels.Selector, edit func(*match.Team)) match.Reach {
	team := &match.Team{Namespace: "flux-system", Name: "shop", Clusters: clusters, Rules: &fluxspec.TeamRules{}}
	if edit != nil {
		edit(team)
	}
	return match.Reach{Namespace: "shop", Team: team}
}

// TestAim: who a set reaches and leaves, and which cluster it leaves without a delay, because no label brings the cluster back.
func TestAim(t *testing.T) {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "one", Labels: map[string]string{"tier": "dev"}}}
	dev, prod := labels.SelectorFromSet(labels.Set{"tier": "dev"}), labels.SelectorFromSet(labels.Set{"tier": "prod"})
	broken := func(team *match.Team) { team.Broken = "spec.clusterSelector is empty" }
	deleted := func(team *match.Team) { team.Deleted = true }
	all, devOnly := &hubv1.AddonSetSpec{SelectAll: true}, selects("dev")
	for name, tc := range map[string]struct {
		reach          match.Reach
		spec           *hubv1.AddonSetSpec // nil: it does not compile
		to             bool
		leaves, atOnce bool
	}{
		"PlatformSelects":   {match.Reach{Namespace: "flux-system", Platform: true}, devOnly, true, false, false},
		"PlatformDeselects": {match.Reach{Namespace: "flux-system", Platform: true}, selects("prod"), true, true, false},
		"PlatformInvalid":   {match.Reach{Namespace: "flux-system", Platform: true}, nil, true, false, false},
		"OwnNamespace":      {match.Reach{Namespace: "tenants"}, all, true, false, false},
		"OtherNamespace":    {match.Reach{Namespace: "shop"}, all, false, true, true},
		"OtherInvalid":      {match.Reach{Namespace: "shop"}, nil, false, true, true},
		"TeamSelects":       {teamOf(dev, nil), all, true, false, false},
		"TeamSetDeselects":  {teamOf(dev, nil), selects("prod"), true, true, false},
		"TeamDeselects":     {teamOf(prod, nil), all, false, true, false},
		"TeamDeleted":       {teamOf(labels.Nothing(), deleted), all, false, true, true},
		"TeamBroken":        {teamOf(labels.Nothing(), broken), all, false, false, false},
		"TeamBrokenInvalid": {teamOf(labels.Nothing(), broken), nil, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			aim := match.Aim{Reach: tc.reach}
			if tc.spec != nil {
				aim.Selector = must.Get(match.New(tc.reach, tc.spec)).Or(t)
				if got := aim.Selector.Reaches(reg); got != tc.to {
					t.Errorf("its selector reaches the cluster: %t, want %t", got, tc.to)
				}
			}
			if to, leaves, atOnce := tc.reach.To(reg), aim.Leaves(reg), aim.AtOnce(reg); to != tc.to || leaves != tc.leaves || atOnce != tc.atOnce {
				t.Errorf("reaches %t, leaves %t, at once %t; want %t, %t, %t", to, leaves, atOnce, tc.to, tc.leaves, tc.atOnce)
			}
		})
	}
	aim := match.Aim{Reach: match.Reach{Namespace: "flux-system", Platform: true}}
	aim.Selector = must.Get(match.New(aim.Reach, devOnly)).Or(t)
	if aim.LeavesWith(reg, labels.Set{"tier": "dev", "a": "b"}) || !aim.LeavesWith(reg, labels.Set{"tier": "prod"}) || aim.Leaves(reg) {
		t.Error("with other labels it is to leave the cluster, and with its own to stay")
	}
}

func selects(tier string) *hubv1.AddonSetSpec {
	return &hubv1.AddonSetSpec{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}}}
}

// TestReach: what is said of how far the sets of a namespace reach, and as whom they deliver.
func TestReach(t *testing.T) {
	team := teamOf(labels.SelectorFromSet(labels.Set{"tier": "dev"}), func(team *match.Team) { team.Broken = "it has no namespace" })
	stricter := teamOf(team.Team.Clusters, func(team *match.Team) { team.Rules = &fluxspec.TeamRules{MaxAddons: 1} })
	for name, tc := range map[string]struct {
		reach         match.Reach
		limit, broken string
		byTeam        bool
	}{
		"Platform": {match.Reach{Namespace: "flux-system", Platform: true}, "", "", false},
		"None":     {match.Reach{Namespace: "shop"}, `is not in a platform namespace and reaches only clusters in "shop"`, "", false},
		"Team":     {team, "is governed by Team flux-system/shop and reaches only its clusters (tier=dev)", "it has no namespace", true},
	} {
		t.Run(name, func(t *testing.T) {
			if limit, broken, byTeam := tc.reach.Limit(), tc.reach.Broken(), tc.reach.ByTeam(); limit != tc.limit || broken != tc.broken || byTeam != tc.byTeam {
				t.Errorf("it says %q, broken %q, by a Team %t", limit, broken, byTeam)
			}
			author := tc.reach.Author("base")
			if author.Namespace != tc.reach.Namespace || author.Set != "base" || author.Platform != tc.reach.Platform || (author.Team != nil) != tc.byTeam {
				t.Errorf("the author is %+v", author)
			}
		})
	}
	texts := map[string]bool{}
	for _, r := range []match.Reach{{Namespace: "shop"}, {Namespace: "shop", Platform: true}, team, stricter} {
		texts[r.String()] = true
	}
	if len(texts) != 4 {
		t.Errorf("four reaches have the texts %v", texts)
	}
}
