// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"
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
	t         *testing.T
	now       time.Time
	delivered map[string][]string
	going     map[string][]string
	wanted    []Removal
	held      *hubv1.HeldRemovals
	removals  *hubv1.Removals
	before    []hubv1.RemovalCount
	approval  string
	off       bool
	edits     int
}

func newFleet(t *testing.T, clusters int, addons ...string) *fleet {
	f := &fleet{t: t, now: noon, delivered: map[string][]string{}}
	f.deliver(0, clusters, addons...)
	return f
}

func cluster(i int) string { return fmt.Sprintf("tenants/c%03d", i) }

// deliver delivers add-ons to clusters that do not have them.
func (f *fleet) deliver(from, to int, addons ...string) {
	for i := from; i < to; i++ {
		for _, a := range addons {
			f.delivered[a] = append(f.delivered[a], cluster(i))
		}
	}
}

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
	in := Input{Wanted: f.wanted, Held: f.held, Removals: f.removals, Before: f.before, Delivered: f.delivered, Going: f.going, Approval: f.approval, Off: f.off, Now: f.now}
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
		if gone {
			for _, a := range r.Addons {
				f.delivered[a] = slices.DeleteFunc(f.delivered[a], func(c string) bool { return c == r.Cluster })
			}
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

// TestAnotherName: an add-on that has left clusters and is renamed, or moved to another set, has left them. What was counted goes on with it for an hour.
func TestAnotherName(t *testing.T) {
	for name, tc := range map[string]struct {
		ago           time.Duration
		from, to      int
		want, counted int
	}{
		"others":     {0, 3, 6, 0, 0},
		"the same":   {0, 0, 3, 3, 3},
		"some":       {0, 2, 5, 1, 1},
		"long since": {66 * time.Minute, 3, 6, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			old := newFleet(t, 20, "a")
			old.now = noon.Add(-tc.ago)
			old.want(0, 3, "a")
			old.decide()
			f := newFleet(t, 20, "a")
			f.before = old.removals.Counts
			f.want(tc.from, tc.to, "a")
			if got := f.decide(); got != tc.want || f.count() != tc.to-tc.from-tc.want {
				t.Errorf("%d go and %d are held, want %d", got, f.count(), tc.want)
			}
			counted := 0
			if f.removals != nil {
				for _, n := range f.removals.Counts {
					counted += int(n.Count)
				}
			}
			if counted != tc.counted {
				t.Errorf("%d are counted here, want %d: the others are counted where they were", counted, tc.counted)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	for clusters, want := range map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 5: 1, 6: 2, 8: 2, 9: 3, 20: 3, 39: 3, 40: 4, 100: 10, 5000: 500} {
		f := newFleet(t, clusters, "a")
		f.want(0, clusters, "a")
		want = min(want, clusters)
		if got := f.decide(); got != want || f.count() != clusters-want {
			t.Errorf("of %d clusters %d go and %d are held, want %d", clusters, got, f.count(), want)
		}
	}
}

// TestNothingTwice: what went is counted once, however often it is asked for before it is gone.
func TestNothingTwice(t *testing.T) {
	f := newFleet(t, 20, "a")
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
	f := newFleet(t, 20, "a")
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

// TestShareOfWhatWas: the limit is a share of the clusters of an hour ago, so it does not shrink with what goes.
func TestShareOfWhatWas(t *testing.T) {
	f := newFleet(t, 100, "a")
	went := 0
	for i := range 20 {
		f.want(i, i+1, "a")
		went += f.decide()
		f.done()
	}
	if went != 10 {
		t.Errorf("%d of 100 go one by one, want 10", went)
	}
}

// TestOffAndOnAgain: who plays with three clusters loses no fleet. What is counted is clusters, however often each loses the add-on.
func TestOffAndOnAgain(t *testing.T) {
	f := newFleet(t, 20, "a", "b")
	for i := range 10 {
		f.want(0, 3, "a", "b")
		if got := f.decide(); got != 3 || f.count() != 0 {
			t.Fatalf("%d go and %d are held, the %d. time that the same three clusters lose it", got, f.count(), i+1)
		}
		f.done()
		f.decide() // what went is forgotten, but for the count
		f.deliver(0, 3, "a", "b")
		f.now = f.now.Add(5 * time.Minute)
	}
	for _, n := range f.removals.Counts {
		if n.Count != 3 || len(n.Clusters) != 9 {
			t.Errorf("counted: %d clusters in %d bytes, want three, once", n.Count, len(n.Clusters))
		}
	}
	f.want(3, 4, "a")
	if got := f.decide(); got != 0 || f.count() != 1 {
		t.Errorf("%d go and %d are held of a fourth", got, f.count())
	}
	// They lost it an hour after the first time, and so within the last hour.
	f.wanted, f.held, f.now = nil, nil, f.now.Add(30*time.Minute)
	f.want(3, 4, "a")
	if got := f.decide(); got != 0 || f.count() != 1 {
		t.Errorf("%d go and %d are held of a fourth, when it was the last time that counts", got, f.count())
	}
}

// TestGotItBack: what is counted does not make the fleet larger than it is, of which a share may go.
func TestGotItBack(t *testing.T) {
	f := newFleet(t, 100, "a")
	f.want(0, 10, "a")
	f.decide()
	f.done()
	f.decide()
	f.deliver(0, 10, "a")
	f.want(10, 11, "a")
	if got := f.decide(); got != 0 || f.count() != 1 {
		t.Errorf("%d go and %d are held of an eleventh of a hundred", got, f.count())
	}
}

// TestTheSameAfterOthers: the clusters of one edit ask one after the other. Those that lost the add-on within the hour, and got it back, go
// again, also if others asked first and are held; what is held stays held.
func TestTheSameAfterOthers(t *testing.T) {
	f := newFleet(t, 20, "a")
	f.want(0, 3, "a")
	f.decide()
	f.done()
	f.deliver(0, 3, "a")
	f.decide()
	f.want(3, 20, "a")
	if got := f.decide(); got != 0 || f.count() != 17 {
		t.Fatalf("%d go and %d are held", got, f.count())
	}
	f.want(0, 3, "a")
	if got := f.decide(); got != 3 || f.count() != 17 {
		t.Errorf("of those that went before, %d go, and %d are held", got, f.count())
	}
}

// TestOneThenAll: a cluster loses one add-on, and then all of them. It is one cluster.
func TestOneThenAll(t *testing.T) {
	f := newFleet(t, 20, "a", "b")
	f.want(0, 2, "a")
	f.decide()
	f.want(0, 3, "a", "b") // while the first is under way, and the delivery has not said so
	if got := f.decide(); got != 3 || f.count() != 0 {
		t.Errorf("%d go and %d are held, want three clusters", got, f.count())
	}
}

// TestWhatOlderHubsCounted: a status of before, which does not say which clusters it counted, counts as it is.
func TestWhatOlderHubsCounted(t *testing.T) {
	f := newFleet(t, 20, "a")
	f.removals = &hubv1.Removals{Counts: []hubv1.RemovalCount{{Addon: "a", Time: metav1.NewTime(noon), Count: 2}}}
	f.want(0, 2, "a")
	if got := f.decide(); got != 1 || f.count() != 1 {
		t.Errorf("%d go and %d are held, want the third to go and the fourth not", got, f.count())
	}
	if n := f.removals.Counts; len(n) != 1 || n[0].Count != 3 {
		t.Errorf("counted: %+v", n)
	}
}

// TestStatusIsBounded: a set of many add-ons on many clusters does not fill its status. What there is no room to count is held.
func TestStatusIsBounded(t *testing.T) {
	addons := make([]string, 100)
	for i := range addons {
		addons[i] = fmt.Sprintf("addon-%d", i)
	}
	f := newFleet(t, 5000, addons...)
	f.want(0, 5000, addons...)
	if got := f.decide(); got == 0 || got >= 500 || f.count() != 5000-got {
		t.Errorf("%d go and %d are held", got, f.count())
	}
	counts, err := json.Marshal(f.removals.Counts)
	if err != nil || len(counts) > 100<<10 {
		t.Errorf("the counts have %d bytes, and it is %v", len(counts), err)
	}
	f = newFleet(t, 5000, addons[:10]...)
	f.want(0, 5000, addons[:10]...)
	if got := f.decide(); got != 500 {
		t.Errorf("%d of 5,000 clusters with ten add-ons go, want 500", got)
	}
}

func TestHour(t *testing.T) {
	f := newFleet(t, 20, "a")
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
	f.now = noon.Add(span + period)
	f.wanted, f.held = nil, nil
	f.want(3, 7, "a")
	if got := f.decide(); got != 3 || f.count() != 1 {
		t.Errorf("%d go and %d are held after more than an hour, want 3 and 1", got, f.count())
	}
	if n := len(f.removals.Counts); n != 1 {
		t.Errorf("%d counts are kept, want the newest only", n)
	}
}

// TestWaitsToGo: what has been let go and waits counts until it is gone, and for an hour from then on.
func TestWaitsToGo(t *testing.T) {
	f := newFleet(t, 20, "a")
	f.want(0, 2, "a")
	f.decide()
	f.done()
	f.going = map[string][]string{"a": {cluster(0)}}
	f.now = f.now.Add(24 * time.Hour)
	f.want(2, 5, "a")
	if got := f.decide(); got != 2 || f.count() != 1 {
		t.Errorf("%d go and %d are held while one is on its way out, want 2 and 1", got, f.count())
	}
	f.wanted, f.held, f.going = nil, nil, nil
	f.now = f.now.Add(59 * time.Minute)
	f.want(6, 7, "a")
	if got := f.decide(); got != 0 {
		t.Error("another one goes within an hour")
	}
	// What nobody has counted, since somebody approved it, or what the guard was off for, is not counted for that it takes its time.
	f.wanted, f.held, f.going = nil, nil, map[string][]string{"a": {cluster(10), cluster(11), cluster(12)}}
	f.now = f.now.Add(2 * time.Hour)
	f.want(6, 9, "a")
	if got := f.decide(); got != 3 {
		t.Errorf("%d go beside what has been approved, want 3", got)
	}
}

// TestGrantedAndNotCarriedOut: a hub that dies right after it has let something go carries that out when it is back, be it hours later. It
// counts in that hour.
func TestGrantedAndNotCarriedOut(t *testing.T) {
	f := newFleet(t, 20, "a")
	f.want(0, 2, "a")
	f.decide()
	f.now = f.now.Add(3 * time.Hour)
	f.want(2, 5, "a")
	if got := f.decide(); got != 1 || f.count() != 2 {
		t.Errorf("%d go and %d are held beside two that were granted before an outage, want 1 and 2", got, f.count())
	}
}

// TestHeldStaysHeld: nothing that is held goes by itself, not even when the hour is over, and nothing new goes past it.
func TestHeldStaysHeld(t *testing.T) {
	f := newFleet(t, 20, "a", "b")
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
	f := newFleet(t, 20, "a")
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

// TestEveryAddonCounts: a cluster that would lose several add-ons goes only if each of them may.
func TestEveryAddonCounts(t *testing.T) {
	f := newFleet(t, 20, "a", "b")
	f.want(0, 3, "a")
	f.decide()
	f.done()
	f.want(5, 6, "b", "a")
	f.want(6, 7, "b")
	if got := f.decide(); got != 1 || f.count() != 1 {
		t.Errorf("%d go and %d are held, want the one that loses only b to go", got, f.count())
	}
}

func TestWhatIsFree(t *testing.T) {
	f := newFleet(t, 20, "a")
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
	f := newFleet(t, 20, "a")
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
	f := newFleet(t, 20, "a", "b", "c", "d")
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
	delivered := map[string][]string{}
	for i := range 20 {
		delivered["web"] = append(delivered["web"], cluster(i))
		wanted = append(wanted, Removal{Cluster: cluster(i), Digest: Change([]string{Reinstalled(cluster(i), "there")}), Addons: []string{"web"}})
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	decide := func(in Input) Verdict {
		in.Delivered, in.Now = delivered, now
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
		if got := Message(set); !strings.Contains(got, want) || !strings.Contains(got, "intended: chandler removals approve flux-system/base, or kubectl ") {
			t.Errorf("%d: %s", held.Count, got)
		}
	}
}
