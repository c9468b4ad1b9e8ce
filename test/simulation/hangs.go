// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/breaker"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// A cluster may answer the hub's probe, and hold Flux's first request, which has no deadline. Flux then says that it has begun, and
// observes nothing that is written to its objects for the cluster. What goes meanwhile, goes later.

// waited is since when Flux waits for a first answer: to any reconcile of an object, and to that of the present generation.
type waited struct {
	since, anew time.Time
	generation  int64
}

// errHolds is what Flux gets of such a cluster: nothing.
var errHolds = errors.New("it holds the request")

// hangs has Flux say with these words that it has begun, and nothing more.
func (f *flux) hangs(w *World, k apiserver.Key, words string) {
	now, o := w.clock.Now(), w.server.Get(k)
	is, before := f.waiting[k]
	if !before {
		is.since = now
	}
	if is.generation != generationOf(o) {
		is.generation, is.anew = generationOf(o), now
	}
	f.waiting[k] = is
	condition := func(typ, status, reason, words string) any {
		return map[string]any{"type": typ, "status": status, "reason": reason, "message": words, "observedGeneration": is.generation,
			"lastTransitionTime": is.since.UTC().Format(time.RFC3339)} // that of the first one: status and reason are the same
	}
	next := apiserver.Clone(o)
	conditions, _ := nested(next, "status", "conditions").([]any)
	if len(conditions) == 0 {
		conditions = []any{condition(fluxmeta.ReadyCondition, string(metav1.ConditionUnknown), fluxmeta.ProgressingReason, words)}
	}
	next["status"].(map[string]any)["conditions"] = append(conditions[:1:1],
		condition(fluxmeta.ReconcilingCondition, string(metav1.ConditionTrue), fluxmeta.ProgressingReason, words))
	_, err := w.server.Update("flux", "status", k, next, true)
	must(err)
	f.due[k] = now.Add(time.Minute)
	key, _ := index.Registration(registrationIn(o))
	for _, h := range w.hubs() {
		h.ring(key) // no event tells that nothing has happened: a goroutine of the registration controller looks each minute
	}
}

// goOn has a cluster answer what it has held, and Flux go on.
func (w *World) goOn(c *cluster) {
	c.holds = false
	for k := range w.flux.waiting {
		w.flux.due[k] = w.clock.Now()
	}
}

// checkWaiting: Flux does not wait for a cluster that lets it wait, for longer than the breaker takes to open.
func (w *World) checkWaiting() {
	const inTime = 2 * breaker.HangsAfter
	now := w.clock.Now()
	if w.hub == nil || now.Sub(w.hubBegan) < inTime {
		return
	}
	for k, is := range w.flux.waiting {
		o := w.server.Get(k)
		c := w.registrationOf(o)
		if c == nil || now.Sub(is.anew) < inTime || nested(o, "metadata", "deletionTimestamp") != nil || nested(o, "spec", "suspend") == true {
			continue
		}
		if reg := w.registered(c); reg != nil && !status.Goes(reg) && status.Find(reg, hubv1.MaintenanceCondition) == nil {
			w.violated("breaker", "Flux has waited for %s since %s, and %s is not suspended", c.name, is.anew.Sub(start), k)
		}
	}
}
