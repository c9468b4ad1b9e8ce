// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// teardownFleet is a hub with a cluster of each kind of origin, each in a namespace of its own, and two sets in different namespaces.
type teardownFleet struct {
	*generation
	mortal *localfleet.Cluster
}

// The registrations, and where they are.
const (
	tenantNamespace, tenantName = "td-tenants", "t1"
	capiNamespace, capiName     = "td-capi", "c1"
	secretNamespace, secretName = "fleet", "s1"
)

const teardownBase = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: base, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}, {name: fleet, kind: GitRepository, spec: {url: $GIT, interval: 2s, ref: {branch: main}}}]
  addons:
    - {name: td-chart, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: blue}}}
    - {name: td-git, kustomization: {interval: 1h, path: ./td, sourceRef: {name: fleet}}}
`

const teardownTeam = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: team, namespace: td-team}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}, {name: fleet, kind: GitRepository, spec: {url: $GIT, interval: 2s, ref: {branch: main}}}]
  addons:
    - {name: td-team, helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: blue}}}
    - {name: td-team-git, kustomization: {interval: 1h, path: ./td-team, sourceRef: {name: fleet}, serviceAccountName: td-deployer}}
`

func startTeardown(t *testing.T) *teardownFleet {
	ctx := t.Context()
	f := &teardownFleet{generation: &generation{one: workload(t, "workload-a"), two: workload(t, "workload-b")}}
	var err error
	f.mortal, err = localfleet.StartCluster(ctx, localfleet.ClusterOptions{Name: "td-mortal", Dir: workDir, Scheme: scheme})
	check(t, err)
	t.Cleanup(func() { _ = f.mortal.Stop() })
	f.hub = startHub(t, hubOptions{
		name: "hub-teardown", flux: &localfleet.FluxOptions{}, origins: true, managers: true,
		args: []string{"--platform-namespaces=flux-system,td-team", "--removal-delay=1s", "--probe-interval=2s"},
	})
	f.charts, f.git = serve(t)
	_, err = f.git.Commit("fleet", teardownFiles())
	check(t, err)
	for _, c := range []*localfleet.Cluster{f.one, f.two, f.mortal} {
		apply(t, c.Client, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: td-deployer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: td-team, name: td-deployer}]
`)
	}
	for _, ns := range []string{tenantNamespace, capiNamespace, secretNamespace, "td-team"} {
		namespace(t, f.Client, ns)
	}
	f.makeOrigin(t, tenantName)
	f.makeOrigin(t, capiName)
	f.makeOrigin(t, secretName)
	return f
}

// teardownFiles are what the two sets find in the repository. A commit holds all that there is then, so another adds to them.
func teardownFiles() map[string]string {
	const cm = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\ndata: {color: blue}\n"
	return map[string]string{"td/cm.yaml": fmt.Sprintf(cm, "td-git"), "td-team/cm.yaml": fmt.Sprintf(cm, "td-team-git")}
}

func (f *teardownFleet) makeOrigin(t *testing.T, name string) {
	t.Helper()
	labels := map[string]string{hubv1.RegisterLabel: "true"}
	kubeconfig := kubeconfigOf(t, f.cluster(name))
	switch name {
	case tenantName:
		check(t, localfleet.Tenant(t.Context(), f.Client, tenantNamespace, name, labels, kubeconfig))
	case capiName:
		check(t, localfleet.CAPICluster(t.Context(), f.Client, capiNamespace, name, labels, kubeconfig))
	default:
		s := secret(secretNamespace, name, map[string][]byte{"value": kubeconfig})
		s.Labels = labels
		check(t, f.Client.Create(t.Context(), s))
	}
}

func (f *teardownFleet) cluster(name string) *localfleet.Cluster {
	return map[string]*localfleet.Cluster{tenantName: f.one, capiName: f.two, secretName: f.mortal}[name]
}

func (f *teardownFleet) registration(name string) *hubv1.ClusterRegistration {
	return registration(map[string]string{tenantName: tenantNamespace, capiName: capiNamespace, secretName: secretNamespace}[name], name)
}

// base wants the add-ons of the set base on a cluster, and team those of the other one.
func (f *teardownFleet) base(ctx context.Context, name string) error {
	c := f.cluster(name)
	return errors.Join(wantData(ctx, c, "td-chart", "td-chart", "color", "blue"), wantData(ctx, c, "default", "td-git", "color", "blue"))
}

func (f *teardownFleet) team(ctx context.Context, name string) error {
	c := f.cluster(name)
	return errors.Join(wantData(ctx, c, "td-team", "td-team", "color", "blue"), wantData(ctx, c, "default", "td-team-git", "color", "blue"))
}

func (f *teardownFleet) noTeam(ctx context.Context, name string) error {
	c := f.cluster(name)
	return errors.Join(wantNoConfigMap(ctx, c, "td-team", "td-team"), wantNoConfigMap(ctx, c, "default", "td-team-git"))
}

// ready wants every add-on of a registered cluster Ready.
func (f *teardownFleet) ready(ctx context.Context, names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, condition(ctx, f.Client, f.registration(name), hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason))
	}
	return errors.Join(errs...)
}

// nothingFor wants nothing of the hub's to be left on the hub for a cluster.
func (f *teardownFleet) nothingFor(ctx context.Context, name string) error {
	if err := wantGone(ctx, f.Client, f.registration(name)); err != nil {
		return err
	}
	left, err := ours(ctx, f.Client)
	mine := func(o string) bool { return strings.Contains(o, "/"+name+"-") || strings.Contains(o, "-"+name+"-") } // a hash may end in the name
	left = slices.DeleteFunc(left, func(o string) bool { return !mine(o) })
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("left on the hub: %s", strings.Join(left, ", "))
	}
	return err
}

// orphans wants orphans in a list, as cluster add-on, each with a message that holds a text.
func orphans(list []hubv1.Orphan, text string, want ...string) error {
	var got []string
	for _, o := range list {
		got = append(got, o.Cluster+" "+o.Addon)
		if slices.Contains(want, o.Cluster+" "+o.Addon) && !strings.Contains(o.Message, text) {
			return fmt.Errorf("the message of %s is %q", o.Addon, o.Message)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the orphans are %q, want %q", got, want)
	}
	return nil
}

func (f *teardownFleet) orphansOfBase(ctx context.Context, text string, want ...string) error {
	set := addonSet("flux-system", "base")
	if err := f.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
	return orphans(set.Status.Orphans, text, want...)
}

// orphanEvent wants an event in a namespace that says which add-on is left where.
func (f *teardownFleet) orphanEvent(ctx context.Context, namespace string, texts ...string) error {
	events := &eventsv1.EventList{}
	if err := f.Client.List(ctx, events, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.Reason == hubv1.AddonOrphanedEvent && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(e.Note, text) }) {
			return nil
		}
	}
	return fmt.Errorf("no event in namespace %s of %d says %q", namespace, len(events.Items), texts)
}

func (f *teardownFleet) deleteNamespace(t *testing.T, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	check(t, f.Client.Delete(t.Context(), ns))
	soon(t, "namespace "+name+" is gone", func() error { return wantGone(t.Context(), f.Client, ns) })
}

// deleteCluster does what `clusterctl move` does to what it has moved: the object goes with no finalizer left, all at once.
func (f *teardownFleet) deleteCluster(t *testing.T, annotate bool) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	u.SetKind("Cluster")
	u.SetNamespace(capiNamespace)
	u.SetName(capiName)
	if annotate {
		check(t, f.Client.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true},"metadata":{"annotations":{"clusterctl.cluster.x-k8s.io/delete-for-move":""}}}`))))
	}
	check(t, f.Client.Delete(t.Context(), secret(capiNamespace, capiName+"-kubeconfig", nil)))
	check(t, f.Client.Delete(t.Context(), u))
}

// TestTeardown takes away, one after the other, everything that something hangs on, and wants what docs/teardown.md promises.
func TestTeardown(t *testing.T) {
	beside(t)
	ctx := t.Context()
	f := startTeardown(t)
	all := []string{tenantName, capiName, secretName}
	f.apply(t, teardownBase)
	f.apply(t, teardownTeam)
	for _, name := range all {
		soon(t, "all of it arrives on "+name, func() error { return errors.Join(f.base(ctx, name), f.team(ctx, name), f.ready(ctx, name)) })
	}
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"the kind of an origin", f.kindOfOrigin},
		{"the hub's own kinds", f.ownKinds},
		{"a backup in any order", f.backup},
		{"the Secret of a cluster", f.secretOfACluster},
		{"the namespace of a set", f.namespaceOfASet},
		{"a folder that was applied in part", f.appliedInPart},
		{"clusterctl move, and back", f.move},
		{"the namespace of an origin", f.namespaceOfAnOrigin},
		{"the hub is down meanwhile", f.whileTheHubIsDown},
		{"an unreachable cluster is forced", f.force},
	} {
		if !t.Run(step.name, step.run) {
			t.FailNow() // what comes after a failure would only add noise
		}
	}
}

// namespaceOfASet: everything in it goes at once, in an order that nobody chooses. What Flux can still remove is removed, and what it
// orphans because it is suspended is told of where events can still be written.
func (f *teardownFleet) namespaceOfASet(t *testing.T) {
	ctx := t.Context()
	f.patchRegistration(t, secretName, `{"spec":{"pause":{"reason":"a test"}}}`)
	soon(t, "one cluster is paused", func() error { return f.suspended(ctx, secretName, 4) })
	soon(t, "and said to be", func() error { return f.addonOf(ctx, secretName, "team", "td-team-git", hubv1.AddonPaused, "") })
	f.deleteNamespace(t, "td-team")
	for _, name := range []string{tenantName, capiName} {
		// Not "soon": the namespace waited for it.
		check(t, f.noTeam(ctx, name))
		check(t, f.base(ctx, name))
	}
	check(t, f.team(ctx, secretName))
	reg := f.registration(secretName)
	soon(t, "what was left is in the status of the registration", func() error {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg); err != nil {
			return err
		}
		return orphans(reg.Status.Orphans, "its Flux object was deleted, and Flux has not removed it", "fleet/s1 td-team", "fleet/s1 td-team-git")
	})
	soon(t, "and events in a namespace that takes them", func() error {
		return errors.Join(f.orphanEvent(ctx, secretNamespace, `"td-team"`, "fleet/s1"), f.orphanEvent(ctx, secretNamespace, `"td-team-git"`, "fleet/s1"))
	})
	f.patchRegistration(t, secretName, `{"spec":{"pause":null}}`)
	soon(t, "the other set goes on", func() error { return errors.Join(f.suspended(ctx, secretName, 0), f.ready(ctx, secretName)) })
}

// move: the cluster is another management cluster's now. It is orphaned at once, and comes back without a reinstall.
func (f *teardownFleet) move(t *testing.T) {
	ctx := t.Context()
	chart := remember(t, f.two, "td-chart", "td-chart")
	f.deleteCluster(t, true)
	soon(t, "it is orphaned", func() error { return f.nothingFor(ctx, capiName) })
	check(t, f.base(ctx, capiName))
	want := []string{"td-capi/c1 td-chart", "td-capi/c1 td-git"}
	soon(t, "the set says what was left", func() error { return f.orphansOfBase(ctx, "left there: ", want...) })
	soon(t, "and events do", func() error {
		return errors.Join(f.orphanEvent(ctx, "flux-system", "Helm release td-chart/td-chart", `namespace "td-chart"`), f.orphanEvent(ctx, "flux-system", `"td-git"`, "1 object in namespaces default"))
	})
	f.makeOrigin(t, capiName)
	soon(t, "it comes back", func() error { return f.ready(ctx, capiName) })
	chart.sameObjects(t)
	soon(t, "and is no orphan any more", func() error { return f.orphansOfBase(ctx, "") })
}

// sameObjects wants the objects of the release to be the very same.
func (w *workloadOf) sameObjects(t *testing.T) {
	t.Helper()
	var uid types.UID
	var revisions int
	check(t, w.read(t, &uid, &revisions))
	if uid != w.uid {
		t.Errorf("the objects of release %s were made anew", w.release)
	}
}

func (f *teardownFleet) namespaceOfAnOrigin(t *testing.T) {
	ctx := t.Context()
	f.deleteNamespace(t, tenantNamespace)
	soon(t, "nothing is left on the hub", func() error { return f.nothingFor(ctx, tenantName) })
	check(t, f.base(ctx, tenantName))
	want := []string{"td-tenants/t1 td-chart", "td-tenants/t1 td-git"}
	soon(t, "the set says what was left", func() error { return f.orphansOfBase(ctx, "left there: ", want...) })
	soon(t, "and an event beside the set does", func() error {
		return f.orphanEvent(ctx, "flux-system", `"td-chart"`, "td-tenants/t1", "left there: Helm release")
	})
	namespace(t, f.Client, tenantNamespace)
	f.makeOrigin(t, tenantName)
	soon(t, "it is registered again when its namespace is back", func() error { return f.ready(ctx, tenantName) })
}

// whileTheHubIsDown: an origin vanishes without a trace, a label is taken off, and a set is deleted.
func (f *teardownFleet) whileTheHubIsDown(t *testing.T) {
	ctx := t.Context()
	namespace(t, f.Client, "td-team")
	f.apply(t, teardownTeam)
	soon(t, "the set is back", func() error {
		return errors.Join(f.team(ctx, tenantName), f.team(ctx, secretName), f.team(ctx, capiName), f.ready(ctx, tenantName, secretName, capiName))
	})
	f.stop()
	f.deleteCluster(t, false)
	check(t, f.Client.Delete(ctx, addonSet("td-team", "team")))
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("kamaji.clastix.io/v1alpha1")
	u.SetKind("TenantControlPlane")
	u.SetNamespace(tenantNamespace)
	u.SetName(tenantName)
	check(t, f.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, hubv1.RegisterLabel))))
	f.start(t)
	soon(t, "the cluster that vanished is orphaned", func() error { return f.nothingFor(ctx, capiName) })
	check(t, f.base(ctx, capiName))
	soon(t, "the one without a label is cleaned", func() error {
		return errors.Join(approveHeld(ctx, f.Client), f.nothingFor(ctx, tenantName), f.noTeam(ctx, tenantName),
			wantNoConfigMap(ctx, f.one, "td-chart", "td-chart"), wantNoConfigMap(ctx, f.one, "default", "td-git"))
	})
	soon(t, "the set that was deleted is gone from where it can be", func() error {
		return errors.Join(approveHeld(ctx, f.Client), f.noTeam(ctx, secretName), wantGone(ctx, f.Client, addonSet("td-team", "team")))
	})
	check(t, f.base(ctx, secretName))
}

// force: a cluster that does not answer is waited for, suspended, for an hour. Somebody who knows better needs not wait.
func (f *teardownFleet) force(t *testing.T) {
	ctx := t.Context()
	f.mortal.StopAPIServer()
	soon(t, "its objects are suspended", func() error { return f.suspended(ctx, secretName, 2) })
	unregister := chandlerStart(t, "unregister", secretNamespace+"/"+secretName, "--yes", "--kubeconfig", f.KubeconfigFile(), "--secret-namespaces=*")
	soon(t, "it waits", func() error {
		return errors.Join(approveHeld(ctx, f.Client), f.addonOf(ctx, secretName, "base", "td-chart", hubv1.AddonRemoving, "the cluster does not answer"))
	})
	f.patchRegistration(t, secretName, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, hubv1.ForceUnregisterAnnotation))
	if out := unregister.ends(t, 0); !strings.Contains(out, "the cluster does not answer") {
		t.Errorf("it says\n%s", out)
	}
	soon(t, "it is orphaned", func() error { return f.nothingFor(ctx, secretName) })
	soon(t, "the set says what was left", func() error {
		set := addonSet("flux-system", "base")
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		mine := slices.DeleteFunc(set.Status.Orphans, func(o hubv1.Orphan) bool { return o.Cluster != "fleet/s1" })
		return orphans(mine, "a user forces it; left there: ", "fleet/s1 td-chart", "fleet/s1 td-git")
	})
	check(t, f.mortal.StartAPIServer(ctx))
	soon(t, "and it is still there", func() error { return f.base(ctx, secretName) })
}
