// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// What the bench creates and edits is what the API server and the hub take.
func TestRolloutSets(t *testing.T) {
	schema := crdschema.Ours("AddonSet")
	for name, tc := range map[string]struct {
		strategy map[string]any
		atOnce   bool
		waves    int
	}{"AtOnce": {atOnce, true, 1}, "Three": {threeWaves, false, 3}, "Four": {fourWaves, false, 4}} {
		t.Run(name, func(t *testing.T) {
			u := newSet("set", []string{"one"}, "http://charts", "http://git")
			must.Do(t, unstructured.SetNestedMap(u.Object, tc.strategy, "spec", "rollout"))
			raw := must.Get(json.Marshal(u)).Or(t)
			if err := schema.Refuses(raw); err != nil {
				t.Error(err)
			}
			set := &hubv1.AddonSet{}
			must.Do(t, json.Unmarshal(raw, set))
			strategy := must.Get(rollout.New(set.Spec.Rollout)).Or(t)
			// The last wave that the bench names has all the rest, so there is no other.
			if n := len(strategy.Waves()); strategy.AtOnce() != tc.atOnce || n != tc.waves {
				t.Errorf("at once: %t, %d waves", strategy.AtOnce(), n)
			}
		})
	}
}

// The rollouts of which the bench takes the time are those of the edit, and not of the generation before.
func TestSetWatch(t *testing.T) {
	w := &setWatch{sets: map[string]completion{}}
	see := func(generation, observed int64, complete metav1.ConditionStatus) {
		set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Name: "one", Generation: generation}}
		set.Status.Conditions = []metav1.Condition{{Type: hubv1.RolloutCompleteCondition, Status: complete, ObservedGeneration: observed}}
		u := must.Get(runtime.DefaultUnstructuredConverter.ToUnstructured(set)).Or(t)
		w.see(&unstructured.Unstructured{Object: u})
	}
	complete := func() bool { return len(w.of(map[string]int64{"one": 2})) == 1 }
	see(1, 1, metav1.ConditionTrue)
	see(2, 1, metav1.ConditionTrue)
	see(2, 2, metav1.ConditionFalse)
	if complete() {
		t.Error("it is said to be complete too early")
	}
	see(2, 2, metav1.ConditionTrue)
	if !complete() {
		t.Error("it is complete, and not seen")
	}
	first := w.sets["one"].at
	see(2, 2, metav1.ConditionTrue)
	if w.sets["one"].at != first {
		t.Error("the first time does not count")
	}
}
