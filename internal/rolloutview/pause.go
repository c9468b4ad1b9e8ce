// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

// Manager is the field manager of these orders. Flux undoes what `kubectl` has written, and leaves what others have.
const Manager = "chandler-rollout"

// Pause sets spec.pause. until is a time or a duration, or empty.
func Pause(in *Input, until, reason string) (*Order, error) {
	if in.Set.DeletionTimestamp != nil {
		return nil, in.refuse("the set is being deleted")
	}
	pause := spec(reason)
	text := "until you resume it: " + resume(in.Set)
	if until != "" {
		end, err := EndOf(until, in.Now)
		if err != nil {
			return nil, in.refuse("%s", err)
		}
		at := end.UTC().Format(time.RFC3339)
		pause["until"], text = at, "until "+at
	}
	order := &Order{
		Patch: map[string]any{"spec": map[string]any{"pause": pause}},
		Says:  in.says("paused; no cluster that has the set gets another revision %s. What is under way goes on", text),
	}
	order.Notes = in.ofGit("this pause is not in Git, and %s leaves it as it is", "%s has spec.pause in Git, and sets it back: write it there")
	return order, nil
}

// spec returns spec.pause with a reason, if there is one, and without an end.
func spec(reason string) map[string]any {
	pause := map[string]any{"reason": nil, "until": nil}
	if reason = excerpt.Line(reason); reason != "" {
		pause["reason"] = reason
	}
	return pause
}

// EndOf returns the time that somebody means by a time or a duration.
func EndOf(until string, now time.Time) (time.Time, error) {
	end, err := time.Parse(time.RFC3339, until)
	if d, notDuration := time.ParseDuration(until); err != nil && notDuration == nil {
		end, err = now.Add(d).Truncate(time.Second), nil
	}
	switch {
	case err != nil:
		return end, fmt.Errorf("--until %q is neither a time such as 2026-06-01T18:00:00Z nor a duration such as 12h", until)
	case !end.After(now):
		return end, fmt.Errorf("--until %s is over", end.UTC().Format(time.RFC3339))
	}
	return end, nil
}

// Resume removes spec.pause.
func Resume(in *Input) (*Order, error) {
	if in.Set.Spec.Pause == nil {
		return nil, in.refuse("it is not paused")
	}
	then := "nothing is left to roll out"
	if is := in.state(); !complete(&is) {
		then = "the rollout goes on"
	}
	return &Order{
		Patch: map[string]any{"spec": map[string]any{"pause": nil}},
		Says:  in.says("the pause is over; %s", then),
		Notes: in.ofGit("", "%s has spec.pause in Git, and sets it again: remove it there"),
	}, nil
}

// ofGit says what becomes of a change of spec.pause if Flux applies the set: not if Git has no spec.pause, and theirs if it has.
func (in *Input) ofGit(not, theirs string) []string {
	by := in.appliedBy()
	text := not
	if in.pausedByAnother() {
		text = theirs
	}
	if by == "" || text == "" {
		return nil
	}
	return []string{fmt.Sprintf(text, by)}
}

// appliedBy names the Flux object that applies the set; "" if there is none.
func (in *Input) appliedBy() string {
	for _, kind := range []struct{ kind, group string }{{"Kustomization", "kustomize"}, {"HelmRelease", "helm"}} {
		label := kind.group + ".toolkit.fluxcd.io/"
		if name := in.Set.Labels[label+"name"]; name != "" {
			return fmt.Sprintf("%s %s/%s", kind.kind, in.Set.Labels[label+"namespace"], name)
		}
	}
	return ""
}

// pausedByAnother returns whether somebody else has set spec.pause.
func (in *Input) pausedByAnother() bool {
	for _, m := range in.Set.ManagedFields {
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if m.Manager == Manager || m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields.Spec["f:pause"]; ok {
			return true
		}
	}
	return false
}
