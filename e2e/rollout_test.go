// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/facade"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// waves is a set whose new revisions go through waves, with what follows the waves of its rollout, and values.
const waves = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: waves, namespace: flux-system}
spec:
  selectAll: true
  sources: [{name: charts, kind: HelmRepository, spec: {url: %s, interval: 1m}}]
  rollout:
    onFailure: Rollback
    deadline: 3m
    waves:
      - {name: canary, clusterSelector: {matchLabels: {ring: canary}}, soak: 5s, approval: Manual}
      - {name: quarter, size: 25%%, maxConcurrency: 2}
%s
  addons:
    - name: worker
      helmRelease:
        interval: 1h
        timeout: 5s
        targetNamespace: in-<< cluster.name >>
        install: {createNamespace: true}
        upgrade: {cleanupOnFail: true} # else Helm leaves what a failed upgrade has made
        chart: {spec: {chart: worker, sourceRef: {name: charts}}}
        values: {%s}
`

// rolling is a fleet of twelve clusters, which are one API server under twelve names, and a set with waves.
type rolling struct {
	*hub
	target *localfleet.Cluster
	charts *localfleet.ChartServer
	git    *localfleet.GitServer
	// names of the clusters; the first is the canary.
	names []string
}

// TestRollout: a bad edit stops at the canary and goes back; a good one soaks, waits for an approval and goes on, also over a
// hub that is killed in the middle; a closed window holds it back.
func TestRollout(t *testing.T) {
	beside(t)
	r := &rolling{target: workload(t, "with-nodes"), hub: startHub(t, hubOptions{name: "hub-waves", flux: &localfleet.FluxOptions{}})}
	r.charts, r.git = serve(t)
	check(t, r.charts.Publish(os.DirFS("testdata"), "charts/worker"))
	front, err := facade.New(r.target.Config)
	check(t, err)
	t.Cleanup(front.Close)
	for i := range 12 {
		name := fmt.Sprintf("w%02d", i)
		kubeconfig, err := front.KubeConfig(name)
		check(t, err)
		ring := "rest"
		if i == 0 {
			ring = "canary"
		}
		registerBy(t, r.Client, "fleet", name, kubeconfig, map[string]string{"ring": ring})
		r.names = append(r.names, name)
	}
	step(t, "the first revision goes through the waves", r.first)
	step(t, "a bad edit stops at the canary and goes back", r.bad)
	step(t, "somebody tries it again", r.retry)
	step(t, "somebody pauses it, and unpauses", r.paused)
	step(t, "a good edit soaks and waits for an approval", r.soak)
	step(t, "it goes on in the waves, over a dead hub", r.goOn)
	step(t, "a window holds the next one back", r.window)
	step(t, "somebody undoes it, and takes that back", r.undo)
	step(t, "upstream news goes through the waves", r.news)
}

func (r *rolling) apply(t *testing.T, more, values string) {
	t.Helper()
	apply(t, r.Client, fmt.Sprintf(waves, r.charts.URL(), more, values))
}

// colors returns the clusters by the color that they have.
func (r *rolling) colors(ctx context.Context) (map[string][]string, error) {
	out := map[string][]string{}
	for _, name := range r.names {
		data, err := configMap(ctx, r.target, "in-"+name, "worker")
		if err != nil {
			return nil, err
		}
		out[data["color"]] = append(out[data["color"]], name)
	}
	return out, nil
}

func (r *rolling) wantColor(ctx context.Context, color string, names ...string) error {
	colors, err := r.colors(ctx)
	if err == nil && !slices.Equal(colors[color], names) {
		err = fmt.Errorf("%s is on %v, want %v", color, colors[color], names)
	}
	return err
}

// phase returns an error unless the rollout is in a phase, in a wave.
func (r *rolling) phase(ctx context.Context, phase hubv1.RolloutPhase, wave string) error {
	set := addonSet("flux-system", "waves")
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
	if is := set.Status.Rollout; is == nil || is.Phase != phase || is.Wave != wave || set.Status.ObservedGeneration != set.Generation {
		return fmt.Errorf("the rollout is %+v", is)
	}
	return nil
}

func (r *rolling) first(t *testing.T) {
	ctx, set := t.Context(), addonSet("flux-system", "waves")
	r.apply(t, "", "color: blue")
	soon(t, "the canary has it, and waits for an approval", func() error { return r.phase(ctx, hubv1.RolloutWaitingForApproval, "canary") })
	for _, name := range r.names[1:] {
		if _, err := configMap(ctx, r.target, "in-"+name, "worker"); !apierrors.IsNotFound(err) {
			t.Errorf("%s has it before the canary is approved: %v", name, err)
		}
	}
	check(t, r.Client.Get(ctx, client.ObjectKeyFromObject(set), set))
	r.order(t, "wave quarter begins", "approve", "waves", "--revision", set.Status.Rollout.Revision)
	soon(t, "all have it", func() error { return r.wantColor(t.Context(), "blue", r.names...) })
	soon(t, "all are Ready", func() error {
		return condition(t.Context(), r.Client, addonSet("flux-system", "waves"), hubv1.HealthyCondition, metav1.ConditionTrue, "")
	})
}

func (r *rolling) bad(t *testing.T) {
	ctx := t.Context()
	most := r.watch(t)
	r.apply(t, "", "color: red, broken: true")
	r.refused(t, "the rollout is ", "status", "waves", "--watch", "--timeout", "10m")
	soon(t, "it is rolled back", func() error { return r.phase(ctx, hubv1.RolloutRolledBack, "") })
	soon(t, "the canary is as before", func() error {
		if err := r.wantColor(ctx, "blue", r.names...); err != nil {
			return err
		}
		left := &appsv1.DeploymentList{}
		if err := r.target.Client.List(ctx, left, client.InNamespace("in-w00")); err != nil {
			return err
		}
		if n := len(left.Items); n > 0 {
			return fmt.Errorf("%d Deployments are left", n)
		}
		return nil
	})
	r.order(t, "is ahead of its clusters", "status", "waves")
	if got := most(); !slices.Equal(got, r.names[:1]) {
		t.Errorf("the bad revision went to %v", got)
	}
	set := addonSet("flux-system", "waves")
	soon(t, "the set says that Git is ahead", func() error {
		if err := condition(ctx, r.Client, set, hubv1.RolloutCompleteCondition, metav1.ConditionFalse, string(hubv1.RolloutRolledBack)); err != nil {
			return err
		}
		if err := condition(ctx, r.Client, set, hubv1.ReadyCondition, metav1.ConditionFalse, hubv1.RolloutFailedReason); err != nil {
			return err
		}
		if says := conditionOf(set, hubv1.ReadyCondition).Message; !strings.Contains(says, "failed: w00 (worker: ") {
			return fmt.Errorf("it does not name the cluster: %s", says)
		}
		return nil
	})
}

// watch notes which clusters get another revision than they have now. The returned function says which did.
func (r *rolling) watch(t *testing.T) func() []string {
	t.Helper()
	watcher, err := client.NewWithWatch(r.Config, client.Options{Scheme: scheme})
	check(t, err)
	list := &hubv1.AddonDeliveryList{}
	check(t, r.Client.List(t.Context(), list, client.InNamespace("flux-system")))
	before := map[string]string{}
	for _, d := range list.Items {
		before[d.Name] = d.Spec.RevisionName
	}
	events, err := watcher.Watch(t.Context(), &hubv1.AddonDeliveryList{}, client.InNamespace("flux-system"))
	check(t, err)
	t.Cleanup(events.Stop)
	var mu sync.Mutex
	changed := map[string]bool{}
	go func() {
		for e := range events.ResultChan() {
			if d, ok := e.Object.(*hubv1.AddonDelivery); ok && d.Spec.RevisionName != before[d.Name] {
				mu.Lock()
				changed[d.Spec.RegistrationRef.Name] = true
				mu.Unlock()
			}
		}
	}()
	return func() (names []string) {
		mu.Lock()
		defer mu.Unlock()
		for name := range changed {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
}

// retry rolls out once more what has failed. It fails again, on the canary alone.
func (r *rolling) retry(t *testing.T) {
	ctx := t.Context()
	most := r.watch(t)
	r.order(t, "is tried again; it begins again with wave canary", "retry", "waves")
	r.refused(t, "the rollout is ", "status", "waves", "--watch", "--timeout", "10m")
	soon(t, "it is rolled back", func() error { return r.phase(ctx, hubv1.RolloutRolledBack, "") })
	soon(t, "the canary is as before", func() error { return r.wantColor(ctx, "blue", r.names...) })
	if got := most(); !slices.Equal(got, r.names[:1]) {
		t.Errorf("the bad revision went to %v", got)
	}
	set := addonSet("flux-system", "waves")
	check(t, r.Client.Get(ctx, client.ObjectKeyFromObject(set), set))
	if is := set.Status.Rollout; is.Retried == "" || is.Retried != set.Annotations[hubv1.RetryAnnotation] {
		t.Errorf("the hub has followed %q of %q", is.Retried, set.Annotations[hubv1.RetryAnnotation])
	}
	if kept := set.Annotations[hubv1.RolloutAnnotation]; !strings.Contains(kept, set.Status.Rollout.FailedRevisions[0]) {
		t.Errorf("beside the status it keeps %s", kept)
	}
}

// paused holds a good edit back for a while.
func (r *rolling) paused(t *testing.T) {
	ctx := t.Context()
	r.order(t, "paused; no cluster that has the set gets another revision", "pause", "set", "waves", "--reason", "a test")
	r.apply(t, "", "color: green")
	soon(t, "it is paused", func() error { return r.phase(ctx, hubv1.RolloutPaused, "canary") })
	r.order(t, "the end of spec.pause (a test)", "status", "waves")
	check(t, r.wantColor(ctx, "blue", r.names...))
	r.order(t, "the pause is over; the rollout goes on", "resume", "set", "waves")
}

func (r *rolling) soak(t *testing.T) {
	ctx := t.Context()
	soon(t, "the canary has it", func() error { return r.wantColor(ctx, "green", r.names[0]) })
	soon(t, "it waits for an approval", func() error { return r.phase(ctx, hubv1.RolloutWaitingForApproval, "canary") })
	soon(t, "its soak was over before", func() error {
		set := addonSet("flux-system", "waves")
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		at, err := r.waitsForApproval(ctx, set)
		if err != nil {
			return err
		}
		if ready := set.Status.Rollout.WaveReady; ready == nil || at.Sub(ready.Time) < 5*time.Second {
			t.Errorf("Ready at %v, and it waits for the approval at %v: the soak is 5s", ready, at)
		}
		return nil
	})
	check(t, r.wantColor(ctx, "green", r.names[0]))
}

// waitsForApproval returns when the hub told that a rollout waits for an approval. The status has no time of that.
func (r *rolling) waitsForApproval(ctx context.Context, set *hubv1.AddonSet) (time.Time, error) {
	events := &eventsv1.EventList{}
	if err := r.Client.List(ctx, events, client.InNamespace(set.Namespace)); err != nil {
		return time.Time{}, err
	}
	for _, e := range events.Items {
		if e.Reason == hubv1.RolloutWaitsEvent && e.Regarding.UID == set.UID &&
			strings.Contains(e.Note, set.Status.Rollout.Revision) && strings.Contains(e.Note, "an approval") {
			return e.EventTime.Time, nil
		}
	}
	return time.Time{}, fmt.Errorf("no event %s about an approval of %s", hubv1.RolloutWaitsEvent, set.Status.Rollout.Revision)
}

func (r *rolling) goOn(t *testing.T) {
	ctx := t.Context()
	r.stop()
	set := addonSet("flux-system", "waves")
	check(t, r.Client.Get(ctx, client.ObjectKeyFromObject(set), set))
	r.order(t, "wave quarter begins", "approve", "waves", "--revision", set.Status.Rollout.Revision)
	r.start(t) // it looks at the clusters for two minutes before it goes on
	soon(t, "it says what it waits for", func() error {
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if is := set.Status.Rollout.WaitingFor; !strings.Contains(is, "has just started") {
			return fmt.Errorf("it waits for %q", is)
		}
		return nil
	})
	r.order(t, " Complete\n", "status", "waves", "--watch", "--timeout", "10m")
	check(t, r.wantColor(ctx, "green", r.names...))
	check(t, r.Client.Get(ctx, client.ObjectKeyFromObject(set), set))
	var text []string
	for _, w := range set.Status.Rollout.Waves {
		text = append(text, fmt.Sprintf("%s %d/%d", w.Name, w.Done, w.Total))
	}
	if got := strings.Join(text, ", "); got != "canary 1/1, quarter 3/3, rest 8/8" {
		t.Errorf("waves: %s", got)
	}
}

func (r *rolling) window(t *testing.T) {
	ctx := t.Context()
	// The 29th of February: it opens within the next four years, and not today.
	closed := "    windows: [{schedule: \"0 0 29 2 *\", duration: 1h, timeZone: Europe/Berlin}]"
	r.apply(t, closed, "color: yellow")
	soon(t, "it waits for the window", func() error { return r.phase(ctx, hubv1.RolloutWaitingForWindow, "canary") })
	r.order(t, "it waits for no soak and no window any more", "expedite", "waves", "--reason", "a test")
	soon(t, "somebody cannot wait", func() error { return r.wantColor(ctx, "yellow", r.names[0]) })
}

// undo goes back to the last completed revision, and forth again.
func (r *rolling) undo(t *testing.T) {
	ctx := t.Context()
	r.order(t, "the clusters get revision", "undo", "waves", "--now")
	soon(t, "all are as before", func() error { return r.wantColor(ctx, "green", r.names...) })
	soon(t, "it is rolled back", func() error { return r.phase(ctx, hubv1.RolloutRolledBack, "") })
	r.order(t, "which a user has undone", "status", "waves", "--per-cluster")
	r.order(t, "newest", "history", "waves")
	r.order(t, "fleet/w00   canary    first\n", "plan", "waves")
	r.order(t, "is rolled out again", "redo", "waves")
	soon(t, "the canary has it again", func() error { return r.wantColor(ctx, "yellow", r.names[0]) })
}

// order runs `chandler rollout`, which has to say something.
func (r *rolling) order(t *testing.T, want string, args ...string) {
	t.Helper()
	r.run(t, 0, want, args...)
}

// refused runs `chandler rollout`, which has to end with an error that says something.
func (r *rolling) refused(t *testing.T, want string, args ...string) {
	t.Helper()
	r.run(t, 1, want, args...)
}

func (r *rolling) run(t *testing.T, wantCode int, want string, args ...string) {
	t.Helper()
	if args[1] != "set" {
		args = append([]string{"rollout"}, args...)
	}
	out, errs, code := chandler(t, append(slices.Clone(args), "-n", "flux-system", "--kubeconfig", r.KubeconfigFile())...)
	if text := []string{out, errs}[wantCode]; code != wantCode || !strings.Contains(text, want) {
		t.Fatalf("chandler %s: exit code %d, and there is no %q in:\n%s%s", strings.Join(args, " "), code, want, out, errs)
	}
	t.Logf("chandler %s:\n%s%s", strings.Join(args, " "), out, errs)
}
