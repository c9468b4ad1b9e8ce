// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fleet is a set as the guard sees it, over time: Decide is asked again and again, and what it says is kept.
type fleet struct {
	t        *testing.T
	now      time.Time
	clusters int
	wanted   []Removal
	held     *hubv1.HeldRemovals
	removals *hubv1.Removals
	approval string
	off      bool
	edits    int
}

func newFleet(t *testing.T, clusters int) *fleet { return &fleet{t: t, now: noon, clusters: clusters} }

func cluster(i int) string { return fmt.Sprintf("tenants/c%03d", i) }

// want asks for the removal of add-ons from clusters.
func (f *fleet) want(from, to int, addons ...string) {
	for i := from; i < to; i++ {
		f.edits++
		f.wanted = append(f.wanted, Removal{Cluster: cluster(i), Digest: Withdrawal(fmt.Sprint(f.edits)), Addons: addons})
	}
}

// decide asks the guard, and returns how many removals went for the first time.
func (f *fleet) decide() int {
	f.t.Helper()
	in := Input{Wanted: f.wanted, Held: f.held, Removals: f.removals, Clusters: f.clusters, Window: time.Hour, Approval: f.approval, Off: f.off, Now: f.now}
	v := Decide(in)
	slices.Reverse(in.Wanted)
	if again := Decide(in); fmt.Sprint(again.Held, again.Removals) != fmt.Sprint(v.Held, v.Removals) {
		f.t.Errorf("the order of what is wanted decides: %v and %v", v, again)
	}
	before := f.removals
	f.held, f.removals = v.Held, v.Removals
	fresh := 0
	for _, r := range v.Go {
		if before == nil || !slices.Contains(before.UnderWay, r.Digest) {
			fresh++
		}
	}
	return fresh
}

// done carries out what the guard let go.
func (f *fleet) done() {
	f.wanted = slices.DeleteFunc(f.wanted, func(r Removal) bool {
		gone := f.removals != nil && slices.Contains(f.removals.UnderWay, r.Digest) || len(r.Addons) == 0 || f.off
		if gone && len(r.Addons) > 0 {
			f.clusters--
		}
		return gone
	})
}

func (f *fleet) count() int {
	if f.held == nil {
		return 0
	}
	return int(f.held.Count)
}

func TestLimits(t *testing.T) {
	for clusters, want := range map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 5: 1, 6: 2, 8: 2, 9: 3, 20: 3, 39: 3, 40: 4, 100: 10, 5000: 500} {
		f := newFleet(t, clusters)
		f.want(0, clusters, "a")
		want = min(want, clusters)
		if got := f.decide(); got != want || f.count() != clusters-want {
			t.Errorf("of %d clusters %d go and %d are held, want %d", clusters, got, f.count(), want)
		}
	}
}

// TestNothingTwice: what went is counted once, however often it is asked for before it is gone.
func TestNothingTwice(t *testing.T) {
	f := newFleet(t, 20)
	f.want(0, 3, "a")
	if got := f.decide(); got != 3 {
		t.Fatalf("%d go, want 3", got)
	}
	for range 3 {
		if got := f.decide(); got != 0 || f.count() != 0 {
			t.Fatalf("%d go and %d are held when what went is asked for again", got, f.count())
		}
	}
	f.done()
	f.want(3, 4, "a")
	if got := f.decide(); got != 0 || f.count() != 1 {
		t.Errorf("%d go and %d are held: a fourth in the same hour", got, f.count())
	}
}

func TestOneByOne(t *testing.T) {
	f := newFleet(t, 20)
	went := 0
	for i := range 20 {
		f.want(i, i+1, "a")
		went += f.decide()
		f.done()
		f.now = f.now.Add(2 * time.Minute)
	}
	if went != 3 || f.count() != 17 {
		t.Errorf("of twenty single edits %d go and %d are held, want 3 and 17", went, f.count())
	}
}

// TestShare: the limit is a share of the clusters that are left.
func TestShare(t *testing.T) {
	f := newFleet(t, 100)
	went := 0
	for i := range 20 {
		f.want(i, i+1, "a")
		went += f.decide()
		f.done()
	}
	if went != 9 {
		t.Errorf("%d of 100 go one by one, want 9", went)
	}
}

// TestCountedOnce: a removal counts when it is granted, whatever comes of it. A cluster that gets its add-ons back and loses them again counts
// again, and so does one that loses one add-on and then another.
func TestCountedOnce(t *testing.T) {
	f := newFleet(t, 20)
	f.want(0, 2, "a")
	f.decide()
	f.done()
	f.clusters += 2
	f.want(0, 1, "b")
	f.want(1, 2, "a")
	if got := f.decide(); got != 1 || f.count() != 1 {
		t.Errorf("%d go and %d are held, want the third to go and the fourth not", got, f.count())
	}
	if n := f.removals.Counts; len(n) != 1 || n[0].Count != 3 {
		t.Errorf("counted: %+v", n)
	}
}

// TestOneCluster: a set of one cluster is no fleet, so its add-ons go as they are dropped. What is left of a larger one is.
func TestOneCluster(t *testing.T) {
	f := newFleet(t, 1)
	for range 3 {
		f.want(0, 1, "a")
		if got := f.decide(); got != 1 || f.held != nil {
			t.Errorf("%d go, and %v is held", got, f.held)
		}
		f.done()
		f.clusters = 1
	}
	f = newFleet(t, 2)
	f.want(0, 1, "a")
	f.decide()
	f.done()
	f.want(1, 2, "a")
	if got := f.decide(); got != 0 || f.count() != 1 {
		t.Errorf("of two, %d go within an hour, and %d are held", got+1, f.count())
	}
}

// TestStatusIsBounded: however many removals are granted, a status has a number for each twelfth of the window.
func TestStatusIsBounded(t *testing.T) {
	f := newFleet(t, 5000)
	for i := range 200 {
		f.want(i, i+1, "a")
		f.decide()
		f.done()
		f.now = f.now.Add(time.Minute)
	}
	if n := len(f.removals.Counts); n > buckets+1 {
		t.Errorf("%d counts", n)
	}
}

// TestWindow: the window of the set comes before that of the hub.
func TestWindow(t *testing.T) {
	spec := &hubv1.AddonSetSpec{}
	if got := WindowOf(spec, 0); got != DefaultWindow {
		t.Errorf("%s", got)
	}
	if got := WindowOf(spec, 2*time.Hour); got != 2*time.Hour {
		t.Errorf("%s", got)
	}
	spec.RemovalGuard = &hubv1.RemovalGuard{Window: &metav1.Duration{Duration: time.Minute}}
	if got := WindowOf(spec, 2*time.Hour); got != time.Minute {
		t.Errorf("%s", got)
	}
}

func TestHour(t *testing.T) {
	f := newFleet(t, 20)
	f.now = noon.Add(4 * time.Minute)
	f.want(0, 3, "a")
	f.decide()
	f.done()
	for _, after := range []time.Duration{59 * time.Minute, time.Hour} {
		f.now = noon.Add(4*time.Minute + after)
		f.wanted, f.held = nil, nil
		f.want(3, 4, "a")
		if got := f.decide(); got != 0 {
			t.Errorf("a fourth goes after %s", after)
		}
	}
	f.now = noon.Add(65 * time.Minute)
	f.wanted, f.held = nil, nil
	f.want(3, 7, "a")
	if got := f.decide(); got != 3 || f.count() != 1 {
		t.Errorf("%d go and %d are held after more than an hour, want 3 and 1", got, f.count())
	}
	if n := len(f.removals.Counts); n != 1 {
		t.Errorf("%d counts are kept, want the newest only", n)
	}
}

// TestHeldStaysHeld: nothing that is held goes by itself, not even when the hour is over, and nothing new goes past it.
func TestHeldStaysHeld(t *testing.T) {
	f := newFleet(t, 20)
	f.want(0, 20, "a")
	f.decide()
	f.done()
	f.now = f.now.Add(24 * time.Hour)
	f.want(30, 31, "b")
	if got := f.decide(); got != 0 || f.count() != 18 {
		t.Errorf("%d go and %d are held a day later", got, f.count())
	}
	f.wanted = nil
	f.decide()
	f.want(30, 31, "b")
	if got := f.decide(); got != 1 || f.held != nil {
		t.Errorf("%d go and %v is held when nobody asks any more for what was held", got, f.held)
	}
}

func TestApproval(t *testing.T) {
	f := newFleet(t, 20)
	f.want(0, 20, "a")
	f.decide()
	f.done()
	hash := f.held.Hash
	f.want(20, 21, "a")
	f.approval = hash
	if got := f.decide(); got != 0 || f.held.Hash == hash {
		t.Fatalf("%d go by the approval of another list", got)
	}
	f.approval = f.held.Hash
	if got := f.decide(); got != 18 || f.held != nil {
		t.Fatalf("%d go when they are approved, want 18", got)
	}
	// A hub that was killed half way goes on with exactly these.
	f.wanted = f.wanted[:5]
	f.want(40, 41, "a")
	if got := f.decide(); got != 0 || f.count() != 1 {
		t.Errorf("%d more go and %d are held after an approval, want 0 and 1", got, f.count())
	}
	if len(f.removals.UnderWay) != 5 {
		t.Errorf("%d are under way, want 5", len(f.removals.UnderWay))
	}
}

func TestWhatIsFree(t *testing.T) {
	f := newFleet(t, 20)
	f.want(0, 4, "a")
	f.decide()
	f.want(10, 15)
	if got := f.decide(); got != 5 || f.count() != 1 {
		t.Errorf("%d removals of nothing go, want 5", got)
	}
	f.off = true
	f.want(15, 20, "a")
	if got := f.decide(); f.held != nil || f.removals != nil || got < 5 {
		t.Errorf("off: %d go, held %v, remembered %v", got, f.held, f.removals)
	}
}

// TestQuiet: a guard that nobody asks for anything has nothing to say, and time changes nothing.
func TestQuiet(t *testing.T) {
	f := newFleet(t, 20)
	if f.decide(); f.held != nil || f.removals != nil {
		t.Errorf("held %v, remembered %v", f.held, f.removals)
	}
	f.want(0, 5, "a")
	f.decide()
	f.done()
	f.decide()
	held, removals := fmt.Sprint(f.held), fmt.Sprint(f.removals)
	f.now = f.now.Add(100 * time.Hour)
	if f.decide(); fmt.Sprint(f.held) != held || fmt.Sprint(f.removals) != removals {
		t.Errorf("time changed %s %s to %v %v", held, removals, f.held, f.removals)
	}
}

func TestSample(t *testing.T) {
	f := newFleet(t, 20)
	f.want(0, 9, "d", "a", "c", "b")
	f.decide()
	want := []string{"tenants/c003 (a, b, c and 1 more)", "tenants/c004 (a, b, c and 1 more)", "tenants/c005 (a, b, c and 1 more)",
		"tenants/c006 (a, b, c and 1 more)", "tenants/c007 (a, b, c and 1 more)"}
	if !slices.Equal(f.held.Sample, want) || f.held.Count != 6 {
		t.Errorf("held %+v", f.held)
	}
}

// TestAnApprovalIsForOneTime: the annotation stays on the set, in Git as well, and a reinstall does not change the UID that its digest is of. So
// the same edit, months later, has to be approved anew.
func TestAnApprovalIsForOneTime(t *testing.T) {
	var wanted []Removal
	for i := range 20 {
		wanted = append(wanted, Removal{Cluster: cluster(i), Digest: Change([]string{Reinstalled(cluster(i), "there")}), Addons: []string{"web"}})
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	decide := func(in Input) Verdict {
		in.Clusters, in.Window, in.Now = 20, time.Hour, now
		return Decide(in)
	}
	v := decide(Input{Wanted: wanted})
	approval := v.Held.Hash
	v = decide(Input{Wanted: wanted, Held: v.Held, Removals: v.Removals, Approval: approval})
	if len(v.Go) != 20 || !v.Approved {
		t.Fatalf("approved: %d of 20", len(v.Go))
	}
	now = now.Add(60 * 24 * time.Hour) // done, and the edit is taken back
	v = decide(Input{Removals: v.Removals, Approval: approval})
	for range 3 {
		if v = decide(Input{Wanted: wanted, Held: v.Held, Removals: v.Removals, Approval: approval}); len(v.Go) > 3 || v.Held == nil || v.Held.Hash == approval {
			t.Fatalf("the same edit, two months later: %d of 20 go, held is %+v", len(v.Go), v.Held)
		}
	}
	if v = decide(Input{Wanted: wanted, Held: v.Held, Removals: v.Removals, Approval: v.Held.Hash}); len(v.Go) != 20 {
		t.Errorf("approved anew: %d of 20", len(v.Go))
	}
}

func TestMessage(t *testing.T) {
	set := &hubv1.AddonSet{}
	set.Namespace, set.Name = "flux-system", "base"
	for want, held := range map[string]*hubv1.HeldRemovals{
		"1 cluster would lose add-ons":        {Count: 1, Hash: "ab", Sample: []string{"fleet/a (x)"}},
		"It keeps its add-ons. If this":       {Count: 1, Hash: "ab", Sample: []string{"fleet/a (x)"}},
		"2 clusters would lose add-ons":       {Count: 2, Hash: "ab", Sample: []string{"fleet/a (x)"}},
		"They keep their add-ons. If this is": {Count: 2, Hash: "ab", Sample: []string{"fleet/a (x)"}},
	} {
		set.Status.HeldRemovals = held
		if got := Message(set, time.Hour); !strings.Contains(got, want) || !strings.Contains(got, "intended: chandler removals approve flux-system/base, or kubectl ") {
			t.Errorf("%d: %s", held.Count, got)
		}
	}
}
