// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// orphaned returns the delivery of base to a cluster as it is when its add-on was orphaned just now.
func (w *World) orphaned(cluster, why string) apiserver.Object {
	d := w.deliveryOf(w.sets["base"], w.cluster(cluster).registration()).DeepCopy()
	now := metav1.NewTime(w.clock.Now())
	for i := range d.Status.Addons {
		d.Status.Addons[i].State, d.Status.Addons[i].Message, d.Status.Addons[i].Since = hubv1.AddonOrphaned, why, &now
	}
	return w.untyped(keyOf("AddonDelivery", d.Namespace, d.Name), d)
}

// orphan orphans what base has on a cluster, as a hub does that says why.
func (w *World) orphan(cluster, why string) {
	d := w.deliveryOf(w.sets["base"], w.cluster(cluster).registration())
	k := keyOf("AddonDelivery", d.Namespace, d.Name)
	w.at = w.hub
	w.checkWrite(apiserver.Write{Key: k, Changed: true, Old: w.server.Get(k), New: w.orphaned(cluster, why)})
}

// saysOf has the status of base's delivery to a cluster say something else of an add-on.
func (w *World) saysOf(cluster, addon string, what func(*hubv1.AddonStatus)) *hubv1.AddonDelivery {
	d := w.deliveryOf(w.sets["base"], w.cluster(cluster).registration()).DeepCopy()
	for i := range d.Status.Addons {
		if d.Status.Addons[i].Name == addon {
			what(&d.Status.Addons[i])
		}
	}
	k := keyOf("AddonDelivery", d.Namespace, d.Name)
	_, err := w.server.Update("chandler", "status", k, w.untyped(k, d), true)
	must(err)
	return d
}

// suspends suspends a cluster, as a hub does for which it does not answer.
func (w *World) suspends(cluster string) {
	reg := w.registered(w.cluster(cluster)).DeepCopy()
	status.Set(reg, hubv1.SuspendedCondition, metav1.ConditionTrue, hubv1.ClusterUnreachableReason, "", w.clock.Now())
	w.says(reg)
}

// says has a hub write the status of a registration.
func (w *World) says(reg *hubv1.ClusterRegistration) {
	k := keyOf("ClusterRegistration", reg.Namespace, reg.Name)
	w.at = w.hub
	w.checkWrite(apiserver.Write{Key: k, Changed: true, Old: w.server.Get(k), New: w.untyped(k, reg)})
}

// untyped returns an object as the API server has it, with another status.
func (w *World) untyped(k apiserver.Key, of any) apiserver.Object {
	o := apiserver.Clone(w.server.Get(k))
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	must(err)
	o["status"] = raw["status"]
	delete(o["metadata"].(map[string]any), "resourceVersion") // by which the server would know it
	return o
}

// TestDrawnOutages: some seeds have outages, and all others are what they were before there were any.
func TestDrawnOutages(t *testing.T) {
	with := 0
	for seed := range uint64(40) {
		script := Draw(seed, 80)
		if slices.Contains(script, "stop") || slices.ContainsFunc(script, func(line string) bool { return strings.HasPrefix(line, "kill ") }) {
			with++
		}
	}
	if with < 4 || with > 20 {
		t.Errorf("%d of 40 seeds have an outage", with)
	}
}

// TestKilled: a process that is killed stays away until another one is started.
func TestKilled(t *testing.T) {
	w := newWorld()
	w.startHub()
	defer w.stopHub()
	for line := range strings.SplitSeq("cluster w1 Secret tier=prod;set flux-system base tier=prod hello:helm;wait 5m;kill 2 after;"+
		"version base hello 1.1.0;wait 1h", ";") {
		must(w.do(line))
	}
	if w.hub != nil {
		t.Error("it was to be killed, and a hub is at work")
	}
	must(w.do("start"))
	w.wait(time.Minute)
	if w.hub == nil || w.hub.began != w.hubBegan || len(w.violations) > 0 {
		t.Errorf("it was started, and is not at work: %v", w.violations)
	}
}
