// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/faultyapi"
	"github.com/chandler-hub/chandler/test/localfleet"
)

const (
	// faultyRounds is how many rounds are made with a faulty API server, after one with a good one.
	faultyRounds = 2
	// oneIn is how many requests there are for one that goes wrong.
	oneIn = 10
	// dearer is by how much a faulty API server may multiply what the hub asks of it. One request in ten goes wrong, and each
	// that does is one more; the rest is that a retry of a cluster begins at its beginning.
	dearer = 1.5
)

// TestFaultyAPIServer has the hub's own API server fail, delay or lose one request in ten, some of them after they took effect,
// answer conflicts where there are none, and end every watch after seconds. Add-ons arrive, change and leave all the same; the
// hub asks not much more than it asks of a good one; and when all is done, it is quiet.
func TestFaultyAPIServer(t *testing.T) {
	expect.AtNight(t, "the faults of the simulation, in each of its days; rollout-status-is-written-and-its-answer-is-lost and other scripts")
	beside(t)
	lots := seed(t)
	o := startOrdeal(t, "faulty")
	good := o.requests(t, func() { o.round(t) })

	mischief := faultyapi.Mischief(lots, oneIn)
	o.suffer(mischief)
	o.restart(t)
	for range faultyRounds {
		o.costs(t, "one request in ten goes wrong", good, dearer, oneIn)
	}
	o.suffer(faultyapi.Reluctance(lots))
	o.costs(t, "every write has to be asked for twice", good, 2*dearer, 4)
	o.suffer(mischief)

	all := []string{"one", "three", "two"}
	o.sets(t, "red", true)
	o.label(t, "prod", all...)
	o.settle(t, "fan-out", wanted{color: "red", more: true, on: all})
	soon(t, "the hub asks nothing but what has changed", func() error { return o.idle(8 * time.Second) }) // longer than between two probes
	o.deleteSets(t)
	o.leave(t)
}

// suffer makes the API server follow a plan, and counts what goes wrong.
func (o *ordeal) suffer(plan faultyapi.Plan) {
	o.faults.Store(0)
	o.api.Follow(func(r faultyapi.Request) faultyapi.Fault {
		f := plan(r)
		if f.Reset || f.Status != 0 || f.Delay != 0 {
			o.faults.Add(1)
		}
		return f
	})
}

// costs goes a round, and compares what the hub asks for with what it asked for of a good API server.
func (o *ordeal) costs(t *testing.T, what string, good map[string]int, most float64, share int) {
	t.Helper()
	before := o.faults.Load()
	faulty := o.requests(t, func() { o.round(t) })
	n, all := int(o.faults.Load()-before), sum(faulty, func(string) bool { return true })
	t.Logf("%s: %d of %d; the requests of a round, good and faulty:\n%s", what, n, all, table(good, faulty))
	if n < all/share/2 {
		t.Errorf("%s: %d of %d are too few to mean anything", what, n, all)
	}
	for which, count := range map[string]func(string) bool{"requests": notWatch, "writes": isWrite} {
		if g, f := sum(good, count), sum(faulty, count); float64(f) > most*float64(g) {
			t.Errorf("%s: that made %d %s of %d, want at most %.1f times as many", what, f, which, g, most)
		}
	}
}

// restart stops the hub and starts it again. It may end when it cannot read what it must before it begins; a kubelet starts it
// again then.
func (o *ordeal) restart(t *testing.T) {
	t.Helper()
	o.stop()
	within(t, ordealLimit, "the hub starts", func() (err error) {
		o.process, err = o.RunHub(t.Context(), localfleet.HubOptions{Binary: hubBinary, Kubeconfig: o.kubeconfig, Args: o.args})
		return err
	})
}

// requests counts the requests of the hub while something goes on, by verb and resource.
func (o *ordeal) requests(t *testing.T, during func()) map[string]int {
	t.Helper()
	start := time.Now()
	during()
	out := map[string]int{}
	for _, r := range o.api.Requests(start) {
		out[r.Verb+" "+r.Resource]++
	}
	return out
}

// idle returns an error if the hub has asked anything of late but to watch, and to list what it watches.
func (o *ordeal) idle(while time.Duration) error {
	var asked []string
	for _, r := range o.api.Requests(time.Now().Add(-while)) {
		if r.Verb != "watch" && r.Verb != "list" && r.Resource != "leases" { // which a leader renews
			asked = append(asked, r.String())
		}
	}
	if len(asked) > 0 {
		return fmt.Errorf("%d requests in %s: %s", len(asked), while, strings.Join(asked, ", "))
	}
	return nil
}

func isWrite(request string) bool {
	verb, resource, _ := strings.Cut(request, " ")
	return faultyapi.Request{Verb: verb, Resource: resource}.Writes()
}

func notWatch(request string) bool { return !strings.HasPrefix(request, "watch ") }

func sum(requests map[string]int, which func(string) bool) int {
	n := 0
	for r, k := range requests {
		if which(r) {
			n += k
		}
	}
	return n
}

func table(a, b map[string]int) string {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	var out strings.Builder
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&out, "%-40s %4d %4d\n", k, a[k], b[k])
	}
	fmt.Fprintf(&out, "%-40s %4d %4d\n%-40s %4d %4d", "all but watches", sum(a, notWatch), sum(b, notWatch), "writes", sum(a, isWrite), sum(b, isWrite))
	return out.String()
}
