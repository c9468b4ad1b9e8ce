// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// What an origin says is not absent while the origin is: nothing changes, nothing goes and nothing new comes before it can be read again.

// tuned reads all that an origin decides: the variables of its annotation, an expression that asks carefully, and what Kamaji knows.
const tuned = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: tuned, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  variables: {replicas: 2, monitoring: false}
  sources: [{name: charts, kind: HelmRepository, spec: {url: "https://charts.example.org"}}]
  addons:
    - name: hello
      helmRelease:
        chart: {spec: {chart: hello, version: %s, sourceRef: {name: charts}}}
        values:
          replicas: "<< vars.replicas >>"
          host: "<< cluster.apiServer.host >>"
          tier: "<< origin.?metadata.?labels[?'tier'].orValue('none') >>"
    - name: agent
      optional: true
      when: "<< vars.monitoring >>"
      helmRelease:
        chart: {spec: {chart: agent, version: 1.0.0, sourceRef: {name: charts}}}
    - name: prod
      when: "<< origin.?metadata.?labels[?'tier'].orValue('none') == 'prod' >>"
      helmRelease:
        chart: {spec: {chart: prod, version: 1.0.0, sourceRef: {name: charts}}}
`

// tunedFleet starts a world with clusters that have variables of their own in the annotation of their origin, and the set.
func tunedFleet(t *testing.T, clusters ...string) *World {
	t.Helper()
	w := newWorld()
	w.startHub()
	t.Cleanup(w.stopHub)
	for _, c := range clusters {
		w.lines(t, "cluster "+c+" tier=prod")
		w.tune(strings.Fields(c)[0])
	}
	w.apply(t, "AddonSet", fmt.Sprintf(tuned, "1.0.0"))
	w.lines(t, "wait 5m")
	for _, c := range w.clusters {
		if runs := w.runsOn(c.name); runs != "helm:agent/agent helm:hello/hello helm:prod/prod" {
			t.Fatalf("%s runs %q", c.name, runs)
		}
	}
	return w
}

// tune writes the variables of a cluster on its origin, and for Kamaji the address by which nodes reach it.
func (w *World) tune(cluster string) {
	if c := w.cluster(cluster); c.provider == "Kamaji" {
		w.patch(c.origin(), `{"spec":{"networkProfile":{"address":"203.0.113.7","port":6443}}}`)
	}
	w.patch(w.cluster(cluster).origin(), `{"metadata":{"annotations":{%q:%q}}}`, hubv1.VariablesAnnotation, `{"replicas": 5, "monitoring": true}`)
}

// lines plays lines of a script. The model does not know the set, so it says nothing of it.
func (w *World) lines(t *testing.T, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if err := w.do(l); err != nil {
			t.Fatal(err)
		}
	}
}

// apply writes an object of YAML, as a user.
func (w *World) apply(t *testing.T, kind, text string) {
	t.Helper()
	o := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	k := keyOf(kind, nested(o, "metadata", "namespace").(string), nested(o, "metadata", "name").(string))
	if _, err := w.server.Apply("user", k, o, true); err != nil {
		t.Fatal(err)
	}
	w.edited = w.clock.Now()
}

// runsOn names what runs on a cluster.
func (w *World) runsOn(cluster string) string {
	return strings.Join(sortedKeys(w.cluster(cluster).workloads), " ")
}

// wants returns what the Flux objects of a cluster ask for.
func (w *World) wants(cluster string) string {
	var out []string
	for _, o := range w.server.List(kinds["HelmRelease"].GroupKind(), "") {
		if strings.HasSuffix(registrationIn(o), "/"+cluster) {
			values, _ := json.Marshal(nested(o, "spec", "values"))
			out = append(out, fmt.Sprintf("%s chart=%v values=%s suspend=%v deleted=%v", apiserver.Label(o, hubv1.AddonLabel),
				nested(o, "spec", "chartRef", "name"), values, nested(o, "spec", "suspend"), nested(o, "metadata", "deletionTimestamp")))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// versionOn returns the version of its chart that the HelmRelease of a cluster asks for.
func (w *World) versionOn(cluster string) string {
	for _, o := range w.server.List(kinds["HelmRelease"].GroupKind(), "") {
		if strings.HasSuffix(registrationIn(o), "/"+cluster) {
			name, _ := nested(o, "spec", "chartRef", "name").(string)
			return fmt.Sprint(nested(w.server.Get(keyOf("HelmChart", "flux-system", name)), "spec", "version"))
		}
	}
	return ""
}

// fleet returns what runs, and what is asked for, on all clusters.
func (w *World) fleet() string {
	var out []string
	for _, c := range w.clusters {
		out = append(out, c.name+" runs "+w.runsOn(c.name), w.wants(c.name))
	}
	return strings.Join(out, "\n")
}

// lostSince returns what clusters have lost since a line of the story.
func (w *World) lostSince(line int) []string {
	return slices.DeleteFunc(slices.Clone(w.story[line:]), func(l string) bool { return !strings.Contains(l, " loses ") })
}

// TestOriginAbsenceChangesNothing takes the origins of clusters away in each way, with what may come meanwhile, and brings them back.
func TestOriginAbsenceChangesNothing(t *testing.T) {
	six := []string{"w1 Kamaji", "w2 Kamaji", "w3 Kamaji", "w4 Kamaji", "w5 Kamaji", "w6 Kamaji"}
	for name, tc := range map[string]struct {
		clusters []string
		away     []string
		back     []string
	}{
		"SecretDeleted":      {[]string{"w1 Secret"}, []string{"delete Secret fleet w1", "wait 10m"}, []string{"origin w1"}},
		"SecretReplaced":     {[]string{"w1 Secret"}, []string{"delete Secret fleet w1", "wait 10s"}, []string{"origin w1"}},
		"SecretAndRestart":   {[]string{"w1 Secret"}, []string{"delete Secret fleet w1", "restart", "wait 10m"}, []string{"origin w1"}},
		"KindNotServed":      {six, []string{"kamaji unserved", "wait 10m"}, []string{"kamaji served"}},
		"KindAndRestart":     {six, []string{"kamaji unserved", "restart", "wait 10m"}, []string{"kamaji served", "wait 1m", "restart"}},
		"KindAndEditOfLabel": {six, []string{"kamaji unserved", "variable w1 other value", "wait 10m"}, []string{"kamaji served"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := tunedFleet(t, tc.clusters...)
			before, at := w.fleet(), len(w.story)
			w.lines(t, tc.away...)
			if after := w.fleet(); after != before {
				t.Errorf("before:\n%s\nwithout its origin:\n%s", before, after)
			}
			for _, d := range w.deliveries() {
				c := status.Find(d, hubv1.ReadyCondition)
				if c.Status != "False" || c.Reason != hubv1.OriginMissingReason || !strings.Contains(c.Message, "cannot be read") {
					t.Errorf("delivery %s says %s", d.Name, conditionOf(d))
				}
			}
			w.lines(t, tc.back...)
			for _, c := range w.clusters {
				w.tune(c.name)
			}
			w.lines(t, "wait 5m")
			if after := w.fleet(); after != before {
				t.Errorf("before:\n%s\nwith its origin again:\n%s", before, after)
			}
			for _, d := range w.deliveries() {
				if !status.IsTrue(d, hubv1.ReadyCondition) {
					t.Errorf("delivery %s says %s", d.Name, conditionOf(d))
				}
			}
			if lost := w.lostSince(at); len(lost) > 0 {
				t.Error(lost)
			}
		})
	}
}

// TestOriginAbsenceBringsNothing: a new revision, a new set and a cluster that has never answered get nothing while the origin cannot be
// read, and all of it when it can. What goes by a decision of the user goes.
func TestOriginAbsenceBringsNothing(t *testing.T) {
	w := tunedFleet(t, "w1 Kamaji", "w2 Secret")
	before := w.wants("w1")
	w.lines(t, "kamaji unserved", "wait 1m")
	w.apply(t, "AddonSet", fmt.Sprintf(tuned, "1.1.0"))
	w.lines(t, "set flux-system later all extra:helm", "wait 10m")
	if after := w.wants("w1"); after != before {
		t.Errorf("before:\n%s\nafter a new revision, and a new set:\n%s", before, after)
	}
	if runs := w.runsOn("w2"); !strings.Contains(runs, "helm:extra/extra") {
		t.Errorf("the cluster with an origin runs %q", runs)
	}
	w.lines(t, "kamaji served", "wait 5m")
	if runs, asks := w.runsOn("w1"), w.wants("w1"); !strings.Contains(runs, "helm:extra/extra") || asks == before {
		t.Errorf("with its origin again it runs %q, and asks\n%s", runs, asks)
	}
	w.lines(t, "kamaji unserved", "wait 1m", "delete AddonSet flux-system later", "wait 10m")
	if runs := w.runsOn("w1"); strings.Contains(runs, "extra") {
		t.Errorf("the set is deleted, and the cluster runs %q", runs)
	}
}

// TestOriginAbsenceHoldsNoWave: a wave passes over a cluster whose origin cannot be read, as over one that does not answer, and the
// cluster gets the revision when it can be read.
func TestOriginAbsenceHoldsNoWave(t *testing.T) {
	w := newWorld()
	w.startHub()
	t.Cleanup(w.stopHub)
	w.lines(t, "cluster w1 Secret tier=prod", "cluster w2 Secret tier=prod", "cluster w3 Secret tier=prod", "cluster w4 Secret tier=prod",
		"label w1 ring canary", "label w2 ring canary", "set flux-system base all hello:helm", "rollout base canary", "wait 30m",
		"delete Secret fleet w1", "wait 1m", "version base hello 1.1.0", "wait 45m")
	for cluster, want := range map[string]string{"w1": "1.0.0", "w2": "1.1.0", "w3": "1.1.0", "w4": "1.1.0"} {
		if got := w.versionOn(cluster); got != want {
			t.Errorf("%s has version %s; want %s", cluster, got, want)
		}
	}
	there := &hubv1.AddonSet{}
	must(w.server.Into(w.server.Get(keyOf("AddonSet", "flux-system", "base")), there))
	if c := conditionOf(there); !strings.HasPrefix(c, "True") || !strings.Contains(c, "the origin cannot be read: w1") {
		t.Errorf("the set says %s", c)
	}
	w.lines(t, "origin w1", "wait 45m")
	if got := w.versionOn("w1"); got != "1.1.0" {
		t.Errorf("with its origin again it has version %s", got)
	}
}

// TestOriginAbsenceResumesNothing: what an origin's state has suspended stays suspended until the origin is read again.
func TestOriginAbsenceResumesNothing(t *testing.T) {
	for _, tc := range []struct{ state, reason string }{
		{"Migrating", hubv1.ClusterMigratingReason}, {"Sleeping", hubv1.ClusterSleepingReason}, {"WriteLimited", hubv1.ClusterWriteLimitedReason},
	} {
		t.Run(tc.state, func(t *testing.T) {
			w := tunedFleet(t, "w1 Kamaji")
			w.lines(t, "state w1 "+tc.state, "wait 3m")
			suspended := func(when string, want bool) {
				t.Helper()
				if got := status.Reason(w.registered(w.cluster("w1")), hubv1.SuspendedCondition); (got == tc.reason) != want || !want && got != "" {
					t.Errorf("%s: suspended because of %q", when, got)
				}
				for _, o := range w.server.List(kinds["HelmRelease"].GroupKind(), "") {
					if is, _ := nested(o, "spec", "suspend").(bool); is != want {
						t.Errorf("%s: %v suspended %t", when, nested(o, "metadata", "name"), is)
					}
				}
			}
			suspended("while the origin says so", true)
			w.lines(t, "kamaji unserved", "wait 2m", "restart", "wait 10m")
			suspended("while the kind is not served", true)
			w.lines(t, "kamaji served", "wait 5m")
			suspended("while the origin says so again", true)
			w.lines(t, "restart", "state w1 Ready", "wait 5m") // a watch that comes later begins in a goroutine, in a time of its own
			suspended("when it is over", false)
		})
	}
}

// TestOriginThatMayNotBeListed: the hub starts anew, and may not read the kind of the origins any more.
func TestOriginThatMayNotBeListed(t *testing.T) {
	w := tunedFleet(t, "w1 Kamaji", "w2 Kamaji")
	before := w.fleet()
	w.asked = func(verb string, k apiserver.Key) (error, error) {
		if k.Kind == "TenantControlPlane" && strings.Contains("list get watch", verb) {
			return apierrors.NewForbidden(schema.GroupResource{Group: k.Group, Resource: "tenantcontrolplanes"}, "", fmt.Errorf("the hub may not")), nil
		}
		return nil, nil
	}
	w.lines(t, "restart", "wait 10m")
	if after := w.fleet(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
