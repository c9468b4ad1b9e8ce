// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/team"
)

// TestReach: which cluster the sets of a namespace reach by its Team, and by no Team.
func TestReach(t *testing.T) {
	valid := func(name, env string, edit func(*hubv1.Team)) hubv1.Team {
		out := claimant("flux-system", name, 10)
		out.Spec.Namespaces = []hubv1.TeamNamespace{{Name: name + "-apps"}}
		out.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}
		if edit != nil {
			edit(&out)
		}
		return out
	}
	all := []hubv1.Team{
		valid("dev", "qa", nil), valid("far", "prod", nil),
		valid("going", "qa", func(t *hubv1.Team) { t.DeletionTimestamp = new(metav1.NewTime(noon)) }),
		valid("reserved", "qa", func(t *hubv1.Team) { t.Spec.Namespaces[0].Name = "kube-system" }),
		valid("aimless", "qa", func(t *hubv1.Team) { t.Spec.ClusterSelector = nil }),
		valid("platform", "qa", nil),
	}
	qa := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "q1", Labels: map[string]string{"env": "qa"}}}
	for namespace, want := range map[string]struct{ platform, team, deleted, broken, to bool }{
		"flux-system": {platform: true, to: true},
		"platform":    {platform: true, to: true},
		"fleet":       {to: true},
		"tenant":      {},
		"dev":         {team: true, to: true},
		"far":         {team: true},
		"going":       {team: true, deleted: true},
		"reserved":    {team: true, broken: true},
		"aimless":     {team: true, broken: true},
	} {
		t.Run(namespace, func(t *testing.T) {
			r := team.Reach(namespace, all, platform)
			deleted := r.Team != nil && r.Team.Deleted
			if r.Platform != want.platform || (r.Team != nil) != want.team || deleted != want.deleted || (r.Broken() != "") != want.broken || r.To(qa) != want.to {
				t.Errorf("%+v reaches the cluster: %t, and is broken: %q; want %+v", r, r.To(qa), r.Broken(), want)
			}
		})
	}
}
