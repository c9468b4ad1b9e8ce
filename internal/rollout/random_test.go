// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// TestRandomDays plays random days, and holds each decision to what docs/rollouts.md promises. CHANDLER_SEED=N plays one of them,
// with -v it says what happens.
func TestRandomDays(t *testing.T) {
	from, n := 0, 250
	if text := os.Getenv("CHANDLER_SEED"); text != "" {
		seed := must.Get(strconv.Atoi(text)).Or(t)
		from, n = seed, 1
	}
	for seed := from; seed < from+n && !t.Failed(); seed++ {
		d := &day{t: t, seed: seed, Rand: rand.New(rand.NewPCG(uint64(seed), 1)), now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), //nolint:gosec // a seed
			annotations: map[string]string{}, spec: &hubv1.Rollout{}}
		d.play()
	}
}

// soak is that of every wave that has one.
const soak = 20 * time.Minute

// day is a set with its clusters on a random day.
type day struct {
	*rand.Rand
	t           *testing.T
	seed        int
	now         time.Time
	spec        *hubv1.Rollout
	state       *hubv1.RolloutStatus
	clusters    []*rollout.Cluster
	revisions   []string
	newest      string
	pause       *hubv1.RolloutPause
	annotations map[string]string
}

func (d *day) bad(format string, args ...any) {
	d.t.Helper()
	d.t.Errorf("CHANDLER_SEED=%d, at %s: %s\n%+v", d.seed, d.now.Format("15:04"), fmt.Sprintf(format, args...), d.state)
}

func (d *day) oneIn(n int) bool { return d.IntN(n) == 0 }

func (d *day) amount() *intstr.IntOrString {
	switch v := intstr.FromInt32(1 + d.Int32N(3)); d.IntN(3) {
	case 0:
		return nil
	case 1:
		return &v
	default:
		v = intstr.FromString(fmt.Sprintf("%d%%", 1+d.IntN(100)))
		return &v
	}
}

func (d *day) wave(name string) hubv1.Wave {
	w := hubv1.Wave{Name: name, MaxConcurrency: d.amount(), MaxFailures: d.amount()}
	w.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"ring": strconv.Itoa(d.IntN(4))}}
	if d.oneIn(2) {
		w.Size = d.amount()
	}
	if d.oneIn(2) {
		w.Soak = &metav1.Duration{Duration: soak}
	}
	if d.oneIn(4) {
		w.Approval = hubv1.ManualApproval
	}
	return w
}

func (d *day) revise() {
	d.newest = fmt.Sprintf("r%d", len(d.revisions)+1)
	d.revisions = append(d.revisions, d.newest)
}

func (d *day) approve() {
	var all []string
	for i := range d.spec.Waves {
		all = append(all, rollout.Approval(d.newest, d.spec.Waves[i].Name))
	}
	d.annotations[hubv1.ApproveAnnotation] = strings.Join(all, ",")
}

func (d *day) play() {
	if d.oneIn(2) {
		d.spec.OnFailure = hubv1.RollbackOnFailure
	}
	for i := range 1 + d.IntN(3) { // without any, it has the usual ones
		d.spec.Waves = append(d.spec.Waves, d.wave(fmt.Sprintf("w%d", i)))
	}
	if d.oneIn(3) {
		d.spec.Windows = []hubv1.RolloutWindow{{Schedule: "0 */3 * * *", Duration: metav1.Duration{Duration: time.Hour}}}
	}
	for i := range 1 + d.IntN(9) {
		d.clusters = append(d.clusters, &rollout.Cluster{Key: types.NamespacedName{Namespace: "fleet", Name: fmt.Sprintf("c%d", i)},
			Registered: d.now, Labels: map[string]string{"ring": strconv.Itoa(d.IntN(4))}})
	}
	d.revise()
	d.decide()
	for range 40 {
		if c := d.clusters[d.IntN(len(d.clusters))]; d.oneIn(2) {
			d.happensTo(c)
		} else {
			d.somebodyDoes()
		}
		d.decide()
	}
	if !d.t.Failed() {
		d.endsWell()
	}
}

// happensTo has something happen to a cluster, or time go by.
func (d *day) happensTo(c *rollout.Cluster) {
	switch d.IntN(9) {
	case 0, 1, 2:
		for _, c := range d.clusters {
			if !c.Offline && c.Nodeless == "" && !d.oneIn(3) {
				c.Ready, c.Healthy, c.Failed = true, true, ""
			}
		}
	case 3:
		c.Failed, c.FailedSince, c.Healthy = "broke", d.now, false
	case 4:
		c.Offline, c.Healthy = !c.Offline, false
	case 5:
		c.Excused = map[bool]string{true: "paused"}[c.Excused == ""]
	case 6:
		if c.WithoutNodes = !c.WithoutNodes; c.WithoutNodes && d.oneIn(2) {
			c.Nodeless, c.Healthy = "web is WaitingForNodes", false
		} else {
			c.Nodeless = ""
		}
	case 7:
		c.Labels = map[string]string{"ring": strconv.Itoa(d.IntN(4))}
	case 8:
		d.now = d.now.Add(time.Duration(d.IntN(60)) * time.Minute)
	}
}

// somebodyDoes has people do something, or something get lost.
func (d *day) somebodyDoes() {
	switch c := d.clusters[d.IntN(len(d.clusters))]; d.IntN(9) {
	case 0:
		d.revise()
	case 1:
		d.newest = d.revisions[d.IntN(len(d.revisions))]
	case 2:
		d.pause = map[bool]*hubv1.RolloutPause{true: {}}[d.pause == nil]
	case 3:
		d.approve()
	case 4:
		d.annotations[hubv1.RetryAnnotation] = rollout.Retrial(d.newest, strconv.Itoa(d.IntN(1000)))
	case 5:
		delete(d.annotations, hubv1.UndoAnnotation)
		if d.oneIn(2) {
			d.annotations[hubv1.UndoAnnotation] = rollout.Undoing(d.newest, d.revisions[d.IntN(len(d.revisions))], d.oneIn(3))
		}
	case 6: // a delivery is deleted
		if *c = (rollout.Cluster{Key: c.Key, Labels: c.Labels, Registered: c.Registered}); d.oneIn(2) { // or the cluster is another one
			c.Registered = d.now
		}
	case 7:
		if len(d.spec.Waves) < 4 {
			name := "x" + strconv.Itoa(d.IntN(1<<30))
			d.spec.Waves = slices.Insert(slices.Clone(d.spec.Waves), d.IntN(len(d.spec.Waves)+1), d.wave(name))
		} else {
			d.spec.Waves = slices.Clone(d.spec.Waves[d.IntN(3):])
		}
	case 8: // the status is lost, but not what is kept beside it
		d.state = rollout.Recall("a/b", nil, rollout.Record("a/b", d.state))
	}
}

// endsWell lets everything be well: then the newest revision comes to its end.
func (d *day) endsWell() {
	d.pause, d.spec.Windows = nil, nil
	delete(d.annotations, hubv1.UndoAnnotation)
	d.annotations[hubv1.RetryAnnotation] = rollout.Retrial(d.newest, "last")
	d.approve()
	for range 60 {
		for _, c := range d.clusters {
			*c = rollout.Cluster{Key: c.Key, Labels: c.Labels, Registered: c.Registered, Revision: c.Revision, Start: c.Start, Ready: true, Healthy: true}
		}
		d.decide()
		d.now = d.now.Add(10 * time.Minute)
	}
	for _, c := range d.clusters {
		if c.Revision != d.newest {
			d.bad("in the end %s has %s, and not %s", c.Key.Name, c.Revision, d.newest)
		}
	}
	if d.state.Phase != hubv1.RolloutDone {
		d.bad("it does not come to its end")
	}
}

// decide decides until nothing changes any more.
func (d *day) decide() {
	if d.t.Failed() {
		return
	}
	strategy, err := rollout.New(d.spec)
	if err != nil {
		d.t.Fatal(err)
	}
	for i := 0; ; i++ {
		in := rollout.Input{Set: "a/b", Strategy: strategy, Pause: d.pause, Orders: rollout.Read(d.annotations), Revision: d.newest, State: d.state, Now: d.now,
			Exists: func(r string) bool { return slices.Contains(d.revisions, r) }, Same: func(*rollout.Cluster, string) bool { return false }}
		for _, c := range d.clusters {
			in.Clusters = append(in.Clusters, *c)
		}
		out := rollout.Decide(in)
		before := d.state
		d.state = &out.State
		if d.check(&in, &out); d.t.Failed() {
			return
		}
		if changed := d.apply(&out); !changed && before != nil && fmt.Sprintf("%+v", *before) == fmt.Sprintf("%+v", out.State) {
			if !out.Next.IsZero() && !out.Next.After(d.now) {
				d.bad("nothing changes any more, and it wants to be asked again at %s", out.Next)
			}
			return
		}
		if i > 30 {
			d.bad("it never comes to rest")
			return
		}
	}
}

// apply does what a decision wants, and returns whether that is anything.
func (d *day) apply(out *rollout.Decision) (changed bool) {
	for _, c := range d.clusters {
		if c.Revision == "" && out.Newcomers != "" && rollout.Young(c.Registered, out.After) {
			c.Revision, changed = out.Newcomers, true
		}
	}
	for _, s := range out.Starts {
		c := d.clusters[slices.IndexFunc(d.clusters, func(c *rollout.Cluster) bool { return c.Key == s.Cluster })]
		if c.Revision != s.Revision {
			c.Ready, c.Healthy, c.Failed = false, false, ""
		} else if s.Start.Healthy {
			c.Ready = false
		}
		c.Revision, c.Start, changed = s.Revision, s.Start, true
		if os.Getenv("CHANDLER_SEED") != "" {
			d.t.Logf("%s %s gets %s, %+v", d.now.Format("15:04"), c.Key.Name, s.Revision, *s.Start)
		}
	}
	if os.Getenv("CHANDLER_SEED") != "" {
		d.t.Logf("%s %+v", d.now.Format("15:04"), out.State)
	}
	return changed
}
