// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/test/faultproxy"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// faults is a hub with a healthy cluster, whose changes are timed, and others on which faults are tried.
type faults struct {
	*hub
	charts *localfleet.ChartServer
	git    *localfleet.GitServer
	pace   *pace
	grace  time.Duration

	mu   sync.Mutex
	kept [][]string // what was promised, and kept: fault, promise, time, limit
}

const (
	faultsProbeInterval = 5 * time.Second
	// slack is what everything may take beside what it waits for, on a small machine that has much else to do. It takes a second or two
	// where nothing else runs: the table says how long.
	slack = time.Minute
)

// fault is something that is wrong with an API server, or on the way to it.
type fault struct {
	name, reason string
	mode         faultproxy.Mode
	// probe is how long the hub takes to find out.
	probe time.Duration
}

// The faults of an API server, those that hold whoever calls and those that turn him away.
var (
	silences = []fault{
		{"black-hole", probe.ReasonDialTimeout, faultproxy.BlackHole, probe.DefaultDial},
		{"tls-hangs", probe.ReasonTimedOut, faultproxy.TLSHang, probe.DefaultTotal},
		{"http-hangs", probe.ReasonTimedOut, faultproxy.HTTPHang, probe.DefaultTotal},
	}
	refusals = []fault{
		{"refuses", probe.ReasonConnectionRefused, faultproxy.Refuse, 0},
		{"answers-503", probe.ReasonServerError, faultproxy.Unavailable, 0},
		{"certificate-expired", probe.ReasonTLSFailed, faultproxy.Expired, 0},
	}
)

// wards are the workload clusters on which faults are tried side by side: one for each of the two kinds above, one for the
// origins.
var wards = []string{"workload-b", "workload-c", "workload-d"}

// TestFaults has clusters fail in each way in which clusters do, while for both of Flux's kinds an add-on comes, is changed,
// and goes. It wants what was promised, within bounds, and a healthy cluster to notice nothing.
//
// The faults stand in three rows, which go side by side, each on a cluster of its own: more than five failing clusters at once
// would make the hub suspect its own network, and those that hang hold Flux's workers, of which there are four of each kind,
// until the hub has noticed.
func TestFaults(t *testing.T) {
	expect.AtNight(t, "TestBreaker; TestOnceMisbehaving of internal/probe; the simulation, in which clusters hang and refuse")
	beside(t)
	f := startFaults(t, "hub-faults", 2*time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	var timing sync.WaitGroup
	timing.Go(func() { f.pace.run(ctx) })
	defer timing.Wait()
	defer stop()
	defer f.report(t)
	defer f.pace.report(t)
	f.sideBySide(t, [][]func(*testing.T, *ward){{well}, {well}, {well}})
	rows := [][]func(*testing.T, *ward){{}, {}, {secretGone, clusterGoing, namespaceGoing}}
	for i := range silences {
		rows[0], rows[1] = append(rows[0], silences[i].run), append(rows[1], refusals[i].run)
	}
	f.sideBySide(t, rows)
	if f.pace.enoughTroubled() != nil {
		f.sideBySide(t, [][]func(*testing.T, *ward){{lasting}})
	}
}

// lasting keeps a cluster at fault until enough changes have met that: a machine that has much else to do makes few of them while each of
// the faults lasts.
func lasting(t *testing.T, w *ward) {
	t.Run("lasting", func(t *testing.T) {
		w.pace.work(1)
		p := w.admit(t, "lasting", "Cluster", w.kubeconfig(t))
		p.promise(t, p.name, "its add-ons arrive", slack, func(ctx context.Context) error {
			return errors.Join(p.has(ctx, changing, "blue"), p.has(ctx, leaving, "blue"))
		})
		check(t, w.proxy.Set(faultproxy.TLSHang))
		w.pace.fault(1)
		w.pace.work(-1)
		soon(t, "enough changes meanwhile", w.pace.enoughTroubled)
		p.sweep(t)
	})
}

// well is what the faults are compared with: a cluster that is served, and looked at, just as those at fault are, and has nothing.
func well(t *testing.T, w *ward) {
	t.Run("well", func(t *testing.T) {
		w.pace.work(1)
		p := w.admit(t, "well-"+w.cluster.Name, "Cluster", w.kubeconfig(t))
		p.promise(t, p.name, "its add-ons arrive", slack, func(ctx context.Context) error {
			return errors.Join(p.has(ctx, changing, "blue"), p.has(ctx, leaving, "blue"), p.state(ctx, changing, hubv1.AddonReady, ""), p.state(ctx, leaving, hubv1.AddonReady, ""))
		})
		w.pace.calm(1)
		w.pace.work(-1)
		soon(t, "enough changes meanwhile", func() error {
			if err := errors.Join(p.has(t.Context(), changing, "blue"), p.state(t.Context(), changing, hubv1.AddonReady, "")); err != nil {
				return err
			}
			return w.pace.enough(30)
		})
		w.pace.work(1)
		defer w.pace.work(-1)
		w.pace.calm(-1)
		p.discharge(t)
	})
}

// TestFaultsOutlastGrace: what is to leave a cluster that does not come back is orphaned, also where Flux has begun to uninstall
// before anybody noticed.
func TestFaultsOutlastGrace(t *testing.T) {
	expect.AtNight(t, "TestTeardown, of a cluster that does not answer; scripts of the simulation, such as renamed-on-a-silent-cluster-that-is-unregistered")
	beside(t)
	f := startFaults(t, "hub-grace", 5*time.Second)
	defer f.report(t)
	rows := make([][]func(*testing.T, *ward), len(wards))
	for i := range rows {
		// A worker of Flux that a silence has held may go on when that is over: nobody else's add-ons may be there then.
		rows[i] = []func(*testing.T, *ward){refusals[i].outlast, silences[i].outlast}
	}
	f.sideBySide(t, rows)
}

// sideBySide runs each row on a ward of its own, and in a row one after the other.
func (f *faults) sideBySide(t *testing.T, rows [][]func(*testing.T, *ward)) {
	var running sync.WaitGroup
	for i, row := range rows {
		w := f.ward(t, wards[i])
		running.Go(func() { // not t.Parallel, which depends on the number of processors
			t.Run(w.cluster.Name, func(t *testing.T) {
				for _, run := range row {
					if run(t, w); t.Failed() {
						return // what comes after would only add noise
					}
				}
			})
		})
	}
	running.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func startFaults(t *testing.T, name string, grace time.Duration) *faults {
	ctx := t.Context()
	healthy := workload(t, "workload-a")
	f := &faults{grace: grace, hub: startHub(t, hubOptions{
		name: name, flux: &localfleet.FluxOptions{}, origins: true, managers: true,
		args: []string{"--removal-delay=2s", fmt.Sprintf("--probe-interval=%s", faultsProbeInterval), fmt.Sprintf("--teardown-grace=%s", grace)},
	})}
	var err error
	f.charts, f.git = serve(t)
	files := map[string]string{}
	for _, set := range []string{arriving, changing, leaving} {
		files[set+"/configmap.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-git, namespace: default}\ndata: {color: \"${color}\"}\n", set)
	}
	_, err = f.git.Commit("fleet", files)
	check(t, err)
	for _, set := range []string{arriving, changing, leaving} {
		apply(t, f.Client, strings.NewReplacer("$CHARTS", f.charts.URL(), "$GIT", f.git.URL("fleet")).Replace(fmt.Sprintf(faultsSet, set)))
	}

	register(t, f.Client, "healthy", "healthy", healthy, map[string]string{changing: "yes", "color": "change-0"})
	landed := func(namespace, name string) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			return wantData(ctx, healthy, namespace, name, "color", fmt.Sprintf("change-%d", n))
		}
	}
	still := f.still("healthy")
	f.pace = &pace{
		change: func(ctx context.Context, n int) error {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"color":"change-%d"}}}`, n)
			return f.Client.Patch(ctx, secret("healthy", "healthy", nil), client.RawPatch(types.MergePatchType, patch))
		},
		landed: map[string]func(context.Context, int) error{
			"HelmRelease": landed(changing+"-chart", changing+"-chart"), "Kustomization": landed("default", changing+"-git"),
		},
		settled: func(ctx context.Context) error {
			if err := (&patient{ward: &ward{faults: f}, name: "healthy"}).state(ctx, changing, hubv1.AddonReady, ""); err != nil {
				return err
			}
			return still(ctx)
		},
	}
	for kind, landed := range f.pace.landed {
		soon(t, "the healthy cluster has its "+kind, func() error { return landed(ctx, 0) })
	}
	return f
}

// run tries one fault of an API server.
func (f fault) run(t *testing.T, w *ward) {
	t.Run(f.name, func(t *testing.T) {
		p := f.first(t, w)
		f.later(t, p)
	})
}

// first labels a cluster that is at fault from the beginning.
func (f fault) first(t *testing.T, w *ward) *patient {
	check(t, w.proxy.Set(f.mode))
	w.pace.fault(1)
	p := w.admit(t, f.name, "Cluster", w.kubeconfig(t))
	p.promise(t, f.name, "apply: a new cluster says what is wrong", f.probe+slack, func(ctx context.Context) error {
		return p.condition(ctx, hubv1.ReachableCondition, metav1.ConditionFalse, f.reason)
	})
	p.promise(t, f.name, "apply: its add-ons wait", slack, func(ctx context.Context) error {
		return errors.Join(p.state(ctx, changing, hubv1.AddonWaitingForCluster, ""), p.noObjects(ctx))
	})
	w.pace.work(1)
	defer w.pace.work(-1)
	w.pace.fault(-1)
	check(t, w.proxy.Set(faultproxy.Pass))
	p.promise(t, f.name, "apply: they arrive when it answers", f.again(2)+slack, func(ctx context.Context) error {
		return errors.Join(p.has(ctx, changing, "blue"), p.has(ctx, leaving, "blue"))
	})
	p.promise(t, f.name, "apply: and are Ready", slack, func(ctx context.Context) error {
		return errors.Join(p.state(ctx, changing, hubv1.AddonReady, ""), p.state(ctx, leaving, hubv1.AddonReady, ""))
	})
	return p
}

// later breaks a cluster that has add-ons, and mends it. All that is done to it is done at the worst moment: before the hub has noticed. Flux has
// begun to uninstall then, and tries again after pauses that double: the last is about as long as the fault lasted.
func (f fault) later(t *testing.T, p *patient) {
	check(t, p.proxy.Set(f.mode))
	p.pace.fault(1)
	p.act(t)
	p.promise(t, f.name, "change: Flux is told to leave it alone", f.noticed()+slack, func(ctx context.Context) error {
		return errors.Join(p.condition(ctx, hubv1.SuspendedCondition, metav1.ConditionTrue, hubv1.ClusterUnreachableReason),
			p.condition(ctx, hubv1.ReachableCondition, metav1.ConditionFalse, f.reason), p.stilled(ctx))
	})
	p.promise(t, f.name, "change, apply: both are said to wait", slack, func(ctx context.Context) error {
		return errors.Join(p.state(ctx, changing, hubv1.AddonUnreachable, ""), p.state(ctx, arriving, hubv1.AddonUnreachable, ""))
	})
	p.promise(t, f.name, "delete: what leaves is held", slack, func(ctx context.Context) error {
		return p.state(ctx, leaving, hubv1.AddonRemoving, "the cluster does not answer")
	})
	check(t, p.has(t.Context(), changing, "blue"))
	check(t, p.has(t.Context(), leaving, "blue"))
	check(t, p.lacks(t.Context(), arriving))
	p.pace.work(1)
	defer p.pace.work(-1)
	p.pace.fault(-1)
	check(t, p.proxy.Set(faultproxy.Pass))
	p.promise(t, f.name, "change: lands when it answers again", f.again(5)+slack, func(ctx context.Context) error { return p.has(ctx, changing, "green") })
	p.promise(t, f.name, "apply: arrives", slack, func(ctx context.Context) error { return p.has(ctx, arriving, "green") })
	p.promise(t, f.name, "change, apply: both are Ready", slack, func(ctx context.Context) error {
		return errors.Join(p.state(ctx, changing, hubv1.AddonReady, ""), p.state(ctx, arriving, hubv1.AddonReady, ""))
	})
	p.promise(t, f.name, "delete: is uninstalled", f.noticed()+slack, func(ctx context.Context) error { return p.lacks(ctx, leaving) })
	p.discharge(t)
}

// outlast breaks a cluster from which an add-on leaves at that moment, and then the whole cluster goes, and never mends it.
func (f fault) outlast(t *testing.T, w *ward) {
	t.Run(f.name, func(t *testing.T) {
		ctx := t.Context()
		p := w.admit(t, f.name, "Cluster", w.kubeconfig(t))
		p.promise(t, f.name, "its add-ons arrive", slack, func(ctx context.Context) error {
			return errors.Join(p.has(ctx, changing, "blue"), p.has(ctx, leaving, "blue"))
		})
		check(t, w.proxy.Set(f.mode))
		p.label(t, map[string]any{leaving: nil})
		p.promise(t, f.name, "delete: what leaves is orphaned after the grace", f.noticed()+p.orphans()+slack, func(ctx context.Context) error {
			return p.noDelivery(ctx, leaving)
		})
		flags := []string{"--yes", "--kubeconfig", p.KubeconfigFile(), "--secret-namespaces=*"}
		unregister := chandlerStart(t, append([]string{"unregister", p.name + "/" + p.name}, flags...)...)
		line := unregister.says(t, "the cluster does not answer")
		if f.mode == faultproxy.BlackHole || f.mode == faultproxy.Refuse { // somebody does not wait, and does what it says
			_, command, _ := strings.Cut(line, "do not wait: chandler ")
			if out, errs, code := chandler(t, append(strings.Fields(command), flags...)...); code != 0 {
				t.Errorf("chandler %s: exit code %d: %s%s", command, code, out, errs)
			}
		}
		p.promise(t, f.name, "delete: a cluster that is unregistered is orphaned", p.orphans()+slack, func(ctx context.Context) error {
			return errors.Join(wantGone(ctx, p.Client, registration(p.name, p.name)), p.noObjects(ctx))
		})
		unregister.ends(t, 0)
		p.promise(t, f.name, "delete: an event says what is left", slack, func(ctx context.Context) error {
			return errors.Join(p.orphaned(ctx, leaving+"-chart", ""), p.orphaned(ctx, leaving+"-git", ""))
		})
		check(t, w.proxy.Set(faultproxy.Pass))
		check(t, p.has(ctx, changing, "blue"))
		check(t, f.stays(ctx, p, leaving+"-chart", wantData(ctx, w.cluster, leaving+"-chart", leaving+"-chart", "color", "blue")))
		check(t, f.stays(ctx, p, leaving+"-git", wantData(ctx, w.cluster, "default", leaving+"-git", "color", "blue")))
		p.sweep(t)
	})
}

// stays wants an add-on to be there that was orphaned. Where the fault holds whoever calls, a worker of Flux may have been in the middle of
// uninstalling it, and may go on now: then it was said so.
func (f fault) stays(ctx context.Context, p *patient, addon string, missing error) error {
	if missing == nil || f.probe == 0 {
		return missing
	}
	if err := p.orphaned(ctx, addon, "Flux had begun to uninstall it, and may go on with that"); err != nil {
		return errors.Join(missing, err)
	}
	return nil
}

// noticed is when the third probe in a row has failed, at the latest.
func (f fault) noticed() time.Duration {
	return jitter(faultsProbeInterval) + 3*f.probe + jitter(probe.DefaultRetry) + jitter(2*probe.DefaultRetry)
}

// again is when a cluster is probed after so many failures in a row, at the latest; the probe before may be under way.
func (f fault) again(failures int) time.Duration {
	return f.probe + jitter(probe.DefaultRetry<<(failures-1))
}

// orphans is after how long a silent cluster's add-ons are orphaned: its grace, and what Flux has for its finalizers, whose worker the cluster may hold.
func (f *faults) orphans() time.Duration { return f.grace + delivery.FluxTakes }

func jitter(d time.Duration) time.Duration { return d + d/10 }

// secretGone: the Secret goes, and everything else is alive. The hub's own copy goes on.
func secretGone(t *testing.T, w *ward) {
	const name = "secret-gone"
	t.Run(name, func(t *testing.T) {
		ctx := t.Context()
		w.pace.work(1)
		defer w.pace.work(-1)
		kubeconfig := w.kubeconfig(t)
		p := w.admit(t, name, "Cluster", kubeconfig)
		check(t, p.Client.Delete(ctx, secret(name, p.secret, nil)))
		p.promise(t, name, "apply: a new cluster says what is missing", slack, func(ctx context.Context) error {
			return p.condition(ctx, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.SecretNotFoundReason)
		})
		check(t, p.Client.Create(ctx, secret(name, p.secret, map[string][]byte{"value": kubeconfig})))
		p.promise(t, name, "apply: its add-ons arrive when it is there", slack, func(ctx context.Context) error {
			return errors.Join(p.has(ctx, changing, "blue"), p.has(ctx, leaving, "blue"))
		})
		check(t, p.Client.Delete(ctx, secret(name, p.secret, nil)))
		w.pace.fault(1)
		p.promise(t, name, "is told", slack, func(ctx context.Context) error {
			return p.condition(ctx, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.SecretNotFoundReason)
		})
		p.act(t)
		p.promise(t, name, "change: lands all the same", slack, func(ctx context.Context) error { return p.has(ctx, changing, "green") })
		p.promise(t, name, "apply: arrives all the same", slack, func(ctx context.Context) error { return p.has(ctx, arriving, "green") })
		p.promise(t, name, "delete: is uninstalled all the same", slack, func(ctx context.Context) error { return p.lacks(ctx, leaving) })
		w.pace.fault(-1)
		p.discharge(t)
	})
}

// clusterGoing: a TenantControlPlane is being deleted, and Kamaji takes its time.
func clusterGoing(t *testing.T, w *ward) {
	going(t, w, "cluster-going", "TenantControlPlane", func(t *testing.T, p *patient) {
		check(t, p.Client.Delete(t.Context(), p.origin.DeepCopy()))
	}, func(ctx context.Context, p *patient) error { return wantGone(ctx, p.Client, p.origin.DeepCopy()) })
}

// namespaceGoing: the namespace of a Cluster is being deleted, with all that is in it, the registration too.
func namespaceGoing(t *testing.T, w *ward) {
	ns := func(p *patient) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	}
	going(t, w, "namespace-going", "Cluster", func(t *testing.T, p *patient) {
		check(t, p.Client.Delete(t.Context(), ns(p)))
		soon(t, "its Cluster is being deleted", func() error {
			origin := p.origin.DeepCopy()
			if err := p.Client.Get(t.Context(), client.ObjectKeyFromObject(origin), origin); err != nil {
				return err
			}
			if origin.GetDeletionTimestamp().IsZero() {
				return errors.New("it is not yet")
			}
			return nil
		})
	}, func(ctx context.Context, p *patient) error { return wantGone(ctx, p.Client, ns(p)) })
}

// going has a cluster's object go while its own controller holds it: the hub orphans it at once, and what was delivered stays.
func going(t *testing.T, w *ward, name, kind string, remove func(*testing.T, *patient), gone func(context.Context, *patient) error) {
	t.Run(name, func(t *testing.T) {
		ctx := t.Context()
		w.pace.work(1)
		defer w.pace.work(-1)
		p := w.admit(t, name, kind, w.kubeconfig(t))
		p.patch(t, map[string]any{"metadata": map[string]any{"finalizers": []string{"example.org/its-own-controller"}}})
		p.promise(t, name, "its add-ons arrive", slack, func(ctx context.Context) error {
			return errors.Join(p.has(ctx, changing, "blue"), p.has(ctx, leaving, "blue"))
		})
		remove(t, p)
		w.pace.fault(1)
		p.act(t)
		p.promise(t, name, "apply, change, delete: orphaned at once", delivery.FluxTakes+slack, func(ctx context.Context) error {
			return errors.Join(wantGone(ctx, p.Client, registration(p.name, p.name)), p.noObjects(ctx))
		})
		check(t, p.has(ctx, changing, "blue"))
		check(t, p.has(ctx, leaving, "blue"))
		check(t, p.lacks(ctx, arriving))
		for _, addon := range []string{changing + "-chart", changing + "-git", leaving + "-chart", leaving + "-git"} {
			p.promise(t, name, "an event names "+addon, slack, func(ctx context.Context) error { return p.orphaned(ctx, addon, "") })
		}
		w.pace.fault(-1)
		p.patch(t, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		p.promise(t, name, "nothing of the hub holds it", slack, func(ctx context.Context) error { return gone(ctx, p) })
		p.sweep(t)
	})
}
