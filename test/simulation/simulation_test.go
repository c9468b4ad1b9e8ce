// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

func init() {
	ctrl.SetLogger(logr.Discard()) // what is to be read is the story
	debug.SetGCPercent(1600)       // a world is small
}

var (
	seeds = flag.Int("seeds", 0, "how many seeds to try; 0 for those of every day")
	from  = flag.Uint64("from", 0, "the first of them")
	steps = flag.Int("steps", 80, "steps of each")
	story = flag.Bool("story", false, "print what comes of each script")
	stop  = flag.Int("stop", 1, "after how many failures to stop")
	most  = flag.Duration("shrink", time.Minute, "how long to shrink the last failure")
	glass = flag.Bool("break-glass", false, "seeds in which the break-glass group does what the policies deny to others")
	with  = flag.String("with", "", "only seeds with such a step, such as rollout")
	near  = flag.String("near", "", "a script, as a path below testdata without .txt: seeds are this script with other orders of what happens")
)

// TestSeeds tries a fixed set of seeds, or those that the flags say.
func TestSeeds(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = 40
		if testing.Short() {
			n = 5
		}
	}
	drawn := Draw
	switch {
	case *near != "":
		script := readScript(t, filepath.Join("testdata", *near+".txt"))
		drawn = func(seed uint64, _ int) []string { return Vary(script, seed) }
	case *glass:
		drawn = DrawBreakGlass
	}
	failures, told := 0, time.Now()
	for seed := *from; seed < *from+uint64(n); seed++ {
		if time.Since(told) > 2*time.Minute {
			told = time.Now()
			t.Logf("%d seeds from %d on: %d failed", seed-*from, *from, failures)
		}
		script := drawn(seed, *steps)
		if *with != "" && !slices.ContainsFunc(script, func(line string) bool { return strings.HasPrefix(line+" ", *with+" ") }) {
			continue
		}
		late := time.AfterFunc(5*time.Minute, func() { panic(fmt.Sprintf("seed %d has not ended in five minutes", seed)) })
		r, err := Play(script)
		late.Stop()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		// Whether a registration may be deleted depends on what the hub has found out, so users try.
		if i := slices.IndexFunc(r.Denied, func(m string) bool { return !strings.Contains(m, "which asks to be registered") }); i >= 0 {
			t.Errorf("seed %d draws what the policies deny: %s", seed, r.Denied[i])
		}
		if len(r.Violations) == 0 {
			continue
		}
		v := r.Violations[0]
		t.Errorf("seed %d: %s: %s", seed, v.Invariant, v.Text)
		if failures++; failures >= *stop {
			r = Shrink(r, *most)
			t.Fatalf("the story, shrunk:\n%s\nthe script:\n%s", strings.Join(r.Story, "\n"), strings.Join(r.Script, "\n"))
		}
	}
}

// TestDeterminism: the same script has the same end, write by write.
func TestDeterminism(t *testing.T) {
	for seed := range uint64(3) {
		a, err := Play(Draw(seed, 40))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := Play(Draw(seed, 40))
		if a.Trace != b.Trace || strings.Join(a.Story, "\n") != strings.Join(b.Story, "\n") {
			t.Errorf("seed %d: %d writes and %d, the stories are the same: %t", seed, a.Writes, b.Writes, strings.Join(a.Story, "\n") == strings.Join(b.Story, "\n"))
		}
	}
}

// TestSameOrder: the controllers are started, and what exists from the beginning is made, in one order. Else a seed draws other things each time.
func TestSameOrder(t *testing.T) {
	var first string
	for range 10 {
		w := newWorld()
		w.startHub()
		var names []string
		for _, r := range w.hub.loops {
			names = append(names, r.name)
		}
		for _, gk := range w.server.Kinds() {
			for _, o := range w.server.List(gk, "") {
				names = append(names, fmt.Sprint(nested(o, "metadata", "name"), " ", nested(o, "metadata", "uid")))
			}
		}
		w.stopHub()
		if got := strings.Join(names, ", "); first == "" {
			first = got
		} else if got != first {
			t.Fatalf("%s, and before that %s", got, first)
		}
	}
}

// TestFirst: a fleet comes up and stays quiet.
func TestFirst(t *testing.T) {
	began := time.Now()
	r, err := Play(Draw(0, 0))
	if err != nil || len(r.Violations) > 0 {
		t.Fatalf("%v\n%s", err, strings.Join(r.Story, "\n"))
	}
	t.Logf("%d writes, %d reconciles, %s", r.Writes, r.Reconciles, time.Since(began))
	if testing.Verbose() {
		t.Log(strings.Join(r.Story, "\n"))
	}
}

// TestScripts plays what has gone wrong once, and has been mended. A script is a story without what came of it: one step per line.
func TestScripts(t *testing.T) {
	playEach(t, "testdata", func(t *testing.T, r Result) {
		if len(r.Violations) > 0 {
			t.Error(strings.Join(r.Story, "\n"))
		}
		if len(r.Denied) > 0 {
			t.Errorf("the policies deny an act of it: %s. Leave the act out, or move the script to break-glass", r.Denied[0])
		}
	})
}

// TestBreakGlass plays what the policies deny to all but members of the break-glass group. Whatever these do, nothing is uninstalled that
// nobody has asked for, and what stays is listed.
func TestBreakGlass(t *testing.T) {
	playEach(t, filepath.Join("testdata", "break-glass"), func(t *testing.T, r Result) {
		if !slices.Contains(r.Script, "break-glass") {
			t.Error("it has no line break-glass")
		}
		if len(r.Violations) > 0 {
			t.Error(strings.Join(r.Story, "\n"))
		}
	})
}

// readScript returns the lines of a script.
func readScript(t *testing.T, name string) []string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(raw), "# ") {
		t.Errorf("%s does not begin with a comment that says what must hold", name)
	}
	return strings.Split(string(raw), "\n")
}

// playEach plays the scripts of a folder, and has what came of each looked at.
func playEach(t *testing.T, dir string, look func(*testing.T, Result)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			r, err := Play(readScript(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if *story {
				t.Log(strings.Join(r.Story, "\n"))
			}
			look(t, r)
		})
	}
}

// TestInvariantsFail: each of these invariants sees what it is for, done to the world behind the hub's back.
func TestInvariantsFail(t *testing.T) {
	fleet := strings.Split("cluster w1 Secret tier=prod\ncluster w2 Kamaji tier=prod\nset flux-system base tier=prod hello:helm web:kustomization\nteam shop shop-team tier=prod\nset shop-team store tier=prod till:helm\nwait 5m", "\n")
	for _, tc := range []struct {
		invariant string
		harm      func(w *World)
	}{
		{"loss", func(w *World) { w.take(w.cluster("w1"), "helm:hello/hello", apiserver.Key{}, "somebody") }},
		{"orphans", func(w *World) {
			c := w.cluster("w1")
			c.workloads["helm:x/x"] = &workload{name: "helm:x/x", addon: "x", set: "flux-system/base", ownerUID: "gone"}
			w.checkRest()
		}},
		{"convergence", func(w *World) { delete(w.cluster("w2").workloads, "helm:hello/hello"); w.checkRest() }},
		{"kubeconfigs", func(w *World) { w.cluster("w1").token++; w.checkRest() }},
		{"status", func(w *World) { delete(w.cluster("w1").workloads, "helm:hello/hello"); w.checkStatuses() }},
		{"deletion", func(w *World) {
			must(w.do("foreground Secret fleet w1"))
			w.checkRest()
		}},
		{"steady", func(w *World) { w.quiet = true; must(w.do("label w1 region eu")); w.wait(time.Minute) }},
		{"owners", func(w *World) {
			w.give(w.cluster("w1"), "helm:hello/hello", apiserver.Key{Kind: "HelmRelease", Name: "other"}, "other", "flux-system/base", "hello", "hello")
		}},
		{"secrets", func(w *World) {
			w.checkWrite(apiserver.Write{Key: apiserver.Key{Kind: "Secret", Namespace: "stranger"}, Changed: true, New: apiserver.Object{"data": w.cluster("w1").data()}})
		}},
		{"secrets", func(w *World) {
			w.checkWrite(apiserver.Write{Key: apiserver.Key{Kind: "Secret", Namespace: "flux-system"}, Changed: true, New: apiserver.Object{"data": apiserver.Object{"token": w.cluster("w1").value("x")}}})
		}},
		{"copies", func(w *World) {
			must(w.do("values w1 one shared"))
			must(w.do("reads base hello true"))
			w.wait(10 * time.Minute)
			must(w.do("values w1 two shared"))
			w.checkRest()
		}},
		{"delay", func(w *World) {
			d := w.deliveries()[0]
			must(w.do("label " + d.Spec.RegistrationRef.Name + " tier test"))
			was := w.server.Get(keyOf("AddonDelivery", d.Namespace, d.Name))
			is := apiserver.Object(runtime.DeepCopyJSON(was))
			is["spec"].(map[string]any)["withdrawal"] = string(d.UID)
			w.noteDeselected(apiserver.Write{Key: keyOf("AddonDelivery", d.Namespace, d.Name), Old: was, New: is})
		}},
		{"held", func(w *World) {
			d := w.deliveryOf(w.sets["base"], w.cluster("w1").registration())
			k := keyOf("AddonDelivery", d.Namespace, d.Name)
			w.heldAtRest[keyOf("AddonSet", d.Namespace, d.Spec.AddonSetRef.Name)] = []string{d.Name + " r"}
			is := apiserver.Object(runtime.DeepCopyJSON(w.server.Get(k)))
			is["spec"].(map[string]any)["removals"] = []any{"r"}
			delete(is["metadata"].(map[string]any), "resourceVersion") // by which the server would know it
			w.checkHeld(apiserver.Write{Key: k, Old: w.server.Get(k), New: is})
		}},
		{"held", func(w *World) {
			d := w.saysOf("w1", "hello", func(a *hubv1.AddonStatus) { a.State, a.Removal = hubv1.AddonHeld, "r" })
			w.heldAtRest[keyOf("AddonSet", d.Namespace, d.Spec.AddonSetRef.Name)] = []string{d.Name + " r"}
			work := w.cluster("w1").workloads["helm:hello/hello"]
			work.unwanted = true
			w.lost(w.cluster("w1"), work, "somebody")
		}},
		{"status", func(w *World) {
			w.saysOf("w1", "hello", func(a *hubv1.AddonStatus) { a.State = hubv1.AddonExcluded })
			w.restExcluded()
		}},
		{"guard", func(w *World) {
			for _, name := range []string{"a", "b", "c", "d"} {
				w.lost(&cluster{name: name}, &workload{name: "x", addon: "x", set: "flux-system/base", unwanted: true, missed: true}, "")
			}
		}},
		{"secrets", func(w *World) {
			w.checkWrite(apiserver.Write{Key: apiserver.Key{Kind: "Secret", Namespace: "shop-team"}, Changed: true, New: apiserver.Object{"data": w.cluster("w1").data()}})
		}},
		{"teams", func(w *World) {
			w.checkActor(apiserver.Key{Kind: "HelmRelease", Namespace: "shop-team"}, w.cluster("w1"), w.teams["shop"], "shop-apps", "kube-system")
		}},
		{"teams", func(w *World) {
			w.checkActor(apiserver.Key{Kind: "HelmRelease", Namespace: "shop-team"}, w.cluster("w1"), nil, "shop-apps")
		}},
		{"teams", func(w *World) { w.take(w.cluster("w1"), "helm:default/team-shop", apiserver.Key{}, "somebody") }},
		{"teams", func(w *World) { w.teams["shop"].deleted = true; w.checkRest() }},
		{"silence", func(w *World) {
			must(w.do("restart"))
			w.wait(10 * time.Minute)
			w.orphan("w1", "the cluster has not answered for 1h0m0s")
		}},
		{"silence", func(w *World) { must(w.do("restart")); w.orphan("w1", "the cluster has not answered for 1h0m0s") }},
		{"silence", func(w *World) {
			must(w.do("restart"))
			w.wait(time.Minute)
			clear(w.hub.asked)
			w.suspends("w1")
		}},
		{"silence", func(w *World) {
			must(w.do("kamaji unserved"))
			reg := w.registered(w.cluster("w2")).DeepCopy()
			status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.OriginDeletedReason, "its origin could not be read for 1h0m0s", w.clock.Now())
			w.says(reg)
		}},
		{"drain", func(w *World) {
			c := w.cluster("w2")
			w.drain(c, "30m")
			marked := apiserver.Clone(w.server.Get(c.origin()))
			marked["metadata"].(map[string]any)["annotations"].(map[string]any)[hubv1.DrainedAnnotation] = "true"
			w.at = w.hub
			w.checkWrite(apiserver.Write{Key: c.origin(), Changed: true, Old: w.server.Get(c.origin()), New: marked})
		}},
		{"orphans", func(w *World) {
			must(w.do("restart"))
			before := w.orphaned("w1", "its deletionPolicy is Orphan")
			w.at = w.hub
			w.checkWrite(apiserver.Write{Key: keyOf("AddonDelivery", "flux-system", "base"), Changed: true, Old: before})
		}},
		{"fence", func(w *World) {
			for k := range w.flux.due {
				_, _ = w.server.Patch("flux", k, []byte(`{"spec":{"interval":"1h"}}`), false)
			}
		}},
		{"lookup", func(w *World) {
			must(cachedReader{Reader: w.hub.cache, world: w}.List(context.Background(), &metav1.PartialObjectMetadataList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}, client.MatchingLabels{hubv1.CopyLabel: "true"}))
		}},
		{"bounded", func(w *World) {
			w.checkWrite(apiserver.Write{Key: keyOf("AddonSet", "flux-system", "base"), Changed: true, New: apiserver.Object{
				"status": apiserver.Object{"conditions": []any{apiserver.Object{"message": strings.Repeat("x", 33000)}}},
			}})
		}},
		{"pause", func(w *World) {
			must(w.do("pause w1"))
			w.wait(time.Minute)
			for k := range w.flux.due {
				if o := w.server.Get(k); k.Kind == "HelmRelease" && strings.HasPrefix(k.Name, "w1-") {
					edited := apiserver.Clone(o)
					edited["spec"].(map[string]any)["releaseName"] = "other"
					w.checkWrite(apiserver.Write{Key: k, Changed: true, Verb: "apply", Old: o, New: edited})
				}
			}
		}},
	} {
		t.Run(tc.invariant, func(t *testing.T) {
			w := newWorld()
			w.startHub()
			defer w.stopHub()
			for _, line := range fleet {
				if err := w.do(line); err != nil {
					t.Fatal(err)
				}
			}
			if len(w.violations) > 0 {
				t.Fatalf("before anything happened: %v", w.violations)
			}
			tc.harm(w)
			if !slices.ContainsFunc(w.violations, func(v Violation) bool { return v.Invariant == tc.invariant }) {
				t.Errorf("it is not seen; seen is %v", w.violations)
			}
		})
	}
}
