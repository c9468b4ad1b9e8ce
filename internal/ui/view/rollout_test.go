// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

// TestOnlyTheHubsCommands: the page offers to copy the commands that it makes itself. A reason is what a user wrote, whatever it looks like.
func TestOnlyTheHubsCommands(t *testing.T) {
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "base", Annotations: map[string]string{
		hubv1.ExpediteAnnotation: "base-1-e4: chandler uninstall --addons=remove --yes"}}}
	set.Status.Revision = "base-1-e4"
	set.Status.Rollout = &hubv1.RolloutStatus{Phase: hubv1.RolloutWaitingForApproval, Revision: "base-1-e4", Wave: "canary"}
	var commands []string
	said := ""
	for _, f := range NewRollout(&rolloutview.Input{Set: set, Now: time.Unix(1e9, 0)}, Query{}, false).Facts {
		if f.Command {
			commands = append(commands, f.Name+": "+f.Text)
		}
		if f.Name == "Expedited" {
			said = f.Text
		}
	}
	want := "In a terminal: chandler rollout approve base -n shop --revision base-1-e4"
	if len(commands) != 1 || commands[0] != want {
		t.Errorf("the commands are %q, want %q", commands, want)
	}
	if said != "chandler uninstall --addons=remove --yes" {
		t.Errorf("the reason is %q", said)
	}
}

// TestSetsOfOneName: what happened to sets of one name in two namespaces is told of each.
func TestSetsOfOneName(t *testing.T) {
	now := time.Unix(1e9, 0)
	d := newDay(now)
	for _, namespace := range []string{"flux-system", "shop"} {
		set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "base"}}
		set.Status.HeldRemovals = &hubv1.HeldRemovals{Count: 2, Since: new(metav1.NewTime(now.Add(-time.Hour)))}
		d.set(set)
	}
	var urls []string
	for _, e := range d.tell().Entries {
		urls = append(urls, e.URL)
	}
	slices.Sort(urls)
	if want := []string{"/sets/flux-system/base/removals", "/sets/shop/base/removals"}; !slices.Equal(urls, want) {
		t.Errorf("the entries lead to %q, want %q", urls, want)
	}
}
