// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"container/heap"
	"context"
	"time"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// lane sorts targets by what their next probe will probably cost: an answer takes milliseconds, a dead cluster the whole
// deadline, and so does a cluster that answers just before it. Limits per lane keep those from taking all workers.
type lane int

const (
	laneHealthy lane = iota // the last probe was answered
	laneNew                 // no probe yet with this kubeconfig
	laneFailing             // the last probe failed
	laneSlow                // the last probe was answered, and it or one of the slowProbes before took longer than timing.slow
	laneFailed              // the last probe failed, and none of those before: it may have hiccuped
	lanes
)

// slowProbes is after how many quick answers in a row a cluster counts as quick again. Who answers slowly every second time would else
// hold workers of the healthy ones for half of his probes.
const slowProbes = 10

// timing is when to probe.
type timing struct {
	interval  time.Duration // between answers
	retry     time.Duration // after the first failure
	authRetry time.Duration // after the first failure of a kind that passes quickly, see quick
	maxRetry  time.Duration // after many failures
	slow      time.Duration // what an answer may take that counts as quick
	jitter    func() float64
}

// quick lists failures that are usual in the first seconds of a cluster: Kamaji's admin.conf is answered with 403 for about
// a second after Ready, until its ClusterRoleBinding is there.
func quick(reason string) bool {
	return Refuses(reason) || reason == ReasonNotReady
}

// after returns the time from a result to the next probe; streak is the number of failures in a row, 0 after an answer.
func (t timing) after(streak int, reason string) time.Duration {
	delay := t.interval
	if streak > 0 {
		delay = t.retry
		if quick(reason) {
			delay = t.authRetry
		}
		for i := 1; i < streak && delay < t.maxRetry; i++ {
			delay *= 2
		}
		delay = min(delay, t.maxRetry)
	}
	return time.Duration(float64(delay) * (0.9 + 0.2*t.jitter()))
}

// sometime returns a random part of the interval.
func (t timing) sometime() time.Duration {
	return time.Duration(float64(t.interval) * t.jitter())
}

// target is one cluster in the schedule.
type target struct {
	key    string
	cfg    *kubeconfig.Config
	lane   lane
	due    time.Time
	index  int  // in the heap of its lane; -1 while it is being probed
	job    *job // the running probe, whose result counts
	again  bool // probe once more right after the running one
	streak int  // failures in a row with this kubeconfig, and since it was hurried
	owes   int  // quick answers, until it counts as quick again

	result      Result
	fingerprint string // of the kubeconfig that result is about
	known       bool   // result is set
}

// job is one probe that has been handed to a worker.
type job struct {
	target *target
	cfg    *kubeconfig.Config
	lane   lane // whose limit it counts against
	began  time.Time
	ctx    context.Context
	cancel context.CancelFunc
}

// schedule decides what to probe when. It holds no goroutine, clock or lock; the Pool brings these.
type schedule struct {
	timing
	workers int
	targets map[string]*target
	queue   [lanes]queue
	running [lanes]int
	members [lanes]int
}

func newSchedule(workers int, t timing) *schedule {
	return &schedule{timing: t, workers: workers, targets: map[string]*target{}}
}

// set adds or changes a target and puts it into the lane, due at a time. An unchanged kubeconfig changes nothing; a probe that still runs
// with an old one no longer counts.
func (s *schedule) set(key string, cfg *kubeconfig.Config, to lane, due time.Time) {
	t, ok := s.targets[key]
	switch {
	case !ok:
		t = &target{key: key, index: -1, lane: to}
		s.targets[key] = t
		s.members[to]++
	case t.cfg.Fingerprint() == cfg.Fingerprint():
		return
	}
	s.drop(t)
	t.cfg, t.streak, t.owes, t.again, t.due = cfg, 0, 0, false, due
	s.move(t, to)
	heap.Push(&s.queue[to], t)
}

func (s *schedule) remove(key string) {
	t, ok := s.targets[key]
	if !ok {
		return
	}
	s.drop(t)
	s.members[t.lane]--
	delete(s.targets, key)
}

// hurry makes a target due now, with a fresh back-off. While it is being probed, it is probed once more afterwards.
func (s *schedule) hurry(key string, now time.Time) {
	t, ok := s.targets[key]
	if !ok {
		return
	}
	t.streak = 0
	switch {
	case t.job != nil:
		t.again = true
	case t.due.After(now):
		t.due = now
		heap.Fix(&s.queue[t.lane], t.index)
	}
}

// drop takes t off its queue and disowns its running probe.
func (s *schedule) drop(t *target) {
	if t.index >= 0 {
		heap.Remove(&s.queue[t.lane], t.index)
	}
	if t.job != nil {
		t.job.cancel()
		t.job = nil
	}
}

func (s *schedule) move(t *target, to lane) {
	s.members[t.lane]--
	t.lane = to
	s.members[to]++
}

// free tells whether a worker may take a target of the lane. Failing and slow ones together get half of the workers, and with the new
// ones three quarters, since at the hub's start the dead are among the new. What has just failed counts as new: its second probe, which
// says whether it is down, does not wait for a backlog of slow ones.
func (s *schedule) free(l lane) bool {
	long := s.running[laneFailing] + s.running[laneSlow]
	unsure := s.running[laneNew] + s.running[laneFailed] + long
	switch {
	case s.running[laneHealthy]+unsure >= s.workers:
		return false
	case (l == laneFailing || l == laneSlow) && long >= max(1, s.workers/2):
		return false
	case l != laneHealthy && unsure >= max(1, s.workers*3/4):
		return false
	}
	return true
}

// first returns the target that waits longest of those that a worker may take.
func (s *schedule) first() *target {
	var best *target
	for l := range lanes {
		if len(s.queue[l]) > 0 && s.free(l) && (best == nil || s.queue[l][0].due.Before(best.due)) {
			best = s.queue[l][0]
		}
	}
	return best
}

// next starts the next probe that is due, or returns nil if none is due or no worker is free for it.
func (s *schedule) next(ctx context.Context, now time.Time) *job {
	t := s.first()
	if t == nil || t.due.After(now) {
		return nil
	}
	heap.Pop(&s.queue[t.lane])
	j := &job{target: t, cfg: t.cfg, lane: t.lane, began: now}
	j.ctx, j.cancel = context.WithCancel(ctx)
	t.job = j
	s.running[j.lane]++
	return j
}

// wait returns how long nothing will be due; false if only a finished probe or a new target can change that.
func (s *schedule) wait(now time.Time) (time.Duration, bool) {
	t := s.first()
	if t == nil {
		return 0, false
	}
	return max(0, t.due.Sub(now)), true
}

// abandon ends a probe whose result means nothing.
func (s *schedule) abandon(j *job) {
	s.running[j.lane]--
	j.cancel()
	if t := j.target; t.job == j {
		t.job = nil
		heap.Push(&s.queue[t.lane], t)
	}
}

// finish takes the result of a probe and says whether it tells something new.
func (s *schedule) finish(j *job, result Result, now time.Time) bool {
	s.running[j.lane]--
	j.cancel()
	t := j.target
	if t.job != j { // removed, or changed meanwhile
		return false
	}
	t.job = nil
	reason, to := "", t.laneAfter(result.Err == nil, now.Sub(j.began) > s.slow)
	if result.Err == nil {
		t.streak = 0
	} else {
		t.streak++
		reason = result.Err.Reason
		result.Failures, result.FailingSince = 1, result.Time
		if t.known && t.result.Err != nil {
			result.Failures, result.FailingSince = t.result.Failures+1, t.result.FailingSince
		}
	}
	fingerprint := j.cfg.Fingerprint()
	changed := !t.known || fingerprint != t.fingerprint || differs(t.result, result)
	t.result, t.fingerprint, t.known = result, fingerprint, true
	t.due = now
	if !t.again {
		t.due = now.Add(s.after(t.streak, reason))
	}
	t.again = false
	s.move(t, to)
	heap.Push(&s.queue[to], t)
	return changed
}

// laneAfter returns the lane of a target after a probe, and notes whether that took long. A failure that took long counts as well: a tenant
// who lets every second probe time out holds a worker for just as long.
func (t *target) laneAfter(answered, long bool) lane {
	owed := t.owes
	switch {
	case long:
		t.owes = slowProbes
	case answered:
		t.owes = max(0, t.owes-1)
	}
	switch {
	case !answered && owed == 0 && t.streak == 0 && t.known && t.result.Err == nil:
		return laneFailed
	case !answered:
		return laneFailing
	case t.owes > 0:
		return laneSlow
	}
	return laneHealthy
}

// differs tells whether b says something about the cluster that a did not.
func differs(a, b Result) bool {
	switch {
	case (a.Err == nil) != (b.Err == nil):
		return true
	case a.Err != nil:
		return a.Err.Reason != b.Err.Reason || (a.Failures < FailureThreshold) != (b.Failures < FailureThreshold)
	}
	return a.Version != b.Version || a.ClusterUID != b.ClusterUID || a.Nodes != b.Nodes || a.NodesKnown != b.NodesKnown
}

// queue is a heap of targets by due time.
type queue []*target

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push is for package heap.
func (q *queue) Push(x any) {
	t := x.(*target)
	t.index = len(*q)
	*q = append(*q, t)
}

// Pop is for package heap.
func (q *queue) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	t.index = -1
	return t
}
