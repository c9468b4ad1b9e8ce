// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

var everyExit = flag.Bool("every-exit", os.Getenv("CHANDLER_LONG") != "", "fail each exit in every way, and not in one of them by turns")

// exitScenarios are what the requests of a controller fail in: what was there before, and what happens then.
var exitScenarios = []struct {
	name         string
	before, then []string
}{
	{"a registration leads to another cluster", slices.Concat(exitFleet, []string{"cluster w4 Secret tier=prod", "register w4 -", "wait 8m"}), []string{
		"repoint w3 w4", "wait 3m",
	}},
	{"a cluster comes", nil, []string{
		"cluster w1 Kamaji tier=prod", "cluster w3 Secret tier=prod", "set flux-system base tier=prod hello:helm web:kustomization:hello logs:manifests", "wait 3m",
	}},
	{"a set changes", exitFleet, []string{"version base hello 1.1.0", "wait 1m", "drop base web", "wait 1m", "approve base", "wait 1m", "account base hello deployer", "wait 1m"}},
	{"a cluster is paused", exitFleet, []string{"pause w1", "wait 1m", "version base hello 1.1.0", "wait 1m", "unpause w1", "wait 1m"}},
	{"a cluster is unregistered", exitFleet, []string{"register w1 -", "wait 8m"}},
	{"a cluster is destroyed", exitFleet, []string{"destroy w1", "wait 8m"}},
	{"a set is deleted", exitFleet, []string{"delete AddonSet flux-system base", "wait 1m", "approve base", "wait 3m"}},
	{"a credential is rotated", exitFleet, []string{"rotate w1", "wait 2m"}},
	{"a cluster is not selected any more", exitFleet, []string{"label w1 tier test", "wait 2m"}},
}

var exitFleet = []string{
	"cluster w1 Kamaji tier=prod", "cluster w3 Secret tier=prod", "set flux-system base tier=prod hello:helm web:kustomization:hello logs:manifests", "wait 3m",
}

// way is how a request fails.
type way struct {
	name string
	err  error
	// after is true when the request has taken effect, and the answer is lost.
	after bool
	// stale is true when the error says that the cache is behind: what happened arrives afterwards.
	stale bool
	// gone is true when somebody else is faster, and the object is gone before the request.
	gone bool
	// ends is true when what the error tells of is not undone: nothing needs to come right, and nothing may be lost.
	ends bool
	fits func(verb string) bool
}

func reads(verb string) bool {
	return strings.HasSuffix(verb, "get") || strings.HasSuffix(verb, "list")
}
func writes(verb string) bool { return !reads(verb) }

var (
	exitObject = schema.GroupResource{Group: "example.org", Resource: "things"}
	errTimeout = apierrors.NewServerTimeout(exitObject, "do", 1)
	errEnding  = func() error {
		err := apierrors.NewForbidden(exitObject, "thing", errors.New("unable to create new content in namespace because it is being terminated"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating", Message: "namespace is being terminated", Field: "metadata.namespace"}}
		return err
	}()
)

// ways are all of them. No read says NotFound of what is there: an API server does not lie so. A write says it of what is going anyway, and
// goes before the write; any other object goes by a deletion, which is a step of a scenario and no fault.
var ways = []way{
	{name: "server timeout", err: errTimeout, fits: func(string) bool { return true }},
	{name: "server timeout, after it took effect", err: errTimeout, after: true, fits: writes},
	{name: "Forbidden", err: apierrors.NewForbidden(exitObject, "thing", errors.New("no right")), fits: func(verb string) bool { return !strings.HasPrefix(verb, "cached") }},
	{name: "Conflict", err: apierrors.NewConflict(exitObject, "thing", errors.New("the object has been modified")), stale: true, fits: writes},
	{name: "NotFound", err: apierrors.NewNotFound(exitObject, "thing"), gone: true, fits: func(verb string) bool { return verb == "delete" || verb == "patch" }},
	{name: "AlreadyExists", err: apierrors.NewAlreadyExists(exitObject, "thing"), stale: true, fits: func(verb string) bool { return verb == "create" }},
	{name: "NamespaceTerminating", err: errEnding, ends: true, fits: func(verb string) bool { return verb == "create" || verb == "apply" }},
}

// request is one of a controller, and where in the code it was made.
type request struct {
	at, verb string
	key      apiserver.Key
	number   int
	mayGo    bool
}

// outcome is what is compared.
type outcome struct {
	objects map[string]string
	// story is what came of the workloads, sorted.
	story      []string
	violations []Violation
	problems   []string
}

// exitRun plays a scenario, and fails the request of a controller of this number, if one is given.
func exitRun(before, then []string, loops []string, number int, how way, note func(request)) outcome {
	w := newWorld()
	w.startHub()
	defer w.stopHub()
	out := outcome{objects: map[string]string{}}
	for _, line := range before {
		must(w.do(line))
	}
	n, restless := 0, false
	w.asked = func(verb string, k apiserver.Key) (error, error) {
		if !slices.Contains(loops, w.running) && !(slices.Contains(loops, "shared") && strings.HasPrefix(w.running, "shared")) {
			return nil, nil
		}
		n++
		if note != nil {
			note(request{caller(), verb, k, n, w.mayGo(verb, k)})
		}
		if n != number {
			return nil, nil
		}
		if how.gone {
			w.goes(k)
			return nil, nil // and the server says so
		}
		restless = true
		if how.after {
			return nil, how.err
		}
		return how.err, nil
	}
	w.done = func(r *loop, req string, err error) {
		if err != nil && (strings.Contains(err.Error(), "token-of-") || strings.Contains(err.Error(), authority()[:40])) {
			out.problems = append(out.problems, "an error tells a credential: "+err.Error())
		}
		if !restless {
			return
		}
		restless = false
		if err == nil && !how.stale && !how.ends && !r.queue.(interface{ awaits(string) bool }).awaits(req) {
			out.problems = append(out.problems, fmt.Sprintf("%s %s neither failed nor asked for another try", r.name, req))
		}
		if how.stale {
			w.relist()
		}
	}
	for _, line := range append(slices.Clone(then), "wait 20m") {
		if must(w.do(line)); len(w.violations) > 0 {
			break
		}
	}
	if n < number {
		out.problems = append(out.problems, "the request was never made")
	}
	w.asked = nil
	w.quiet = true
	w.wait(12 * time.Minute)
	w.quiet = false
	w.checkRest()
	out.violations = w.violations
	for _, gk := range w.server.Kinds() {
		for _, o := range w.server.List(gk, "") {
			name := fmt.Sprintf("%s %v/%v", gk.Kind, nested(o, "metadata", "namespace"), nested(o, "metadata", "name"))
			out.objects[name] = normal(o)
			if gk.Kind != "Secret" && strings.Contains(out.objects[name], "token-of-") {
				out.problems = append(out.problems, name+" tells a credential")
			}
		}
	}
	for _, line := range w.story {
		if strings.Contains(line, " gets ") || strings.Contains(line, " loses ") || strings.Contains(line, " keeps ") {
			out.story = append(out.story, strings.TrimSpace(line))
		}
	}
	for _, e := range w.events {
		if strings.Contains(e.words, "token-of-") {
			out.problems = append(out.problems, "an event tells a credential: "+e.words)
		}
		if e.reason == hubv1.AddonOrphanedEvent {
			out.story = append(out.story, e.words)
		}
	}
	slices.Sort(out.story)
	out.story = slices.Compact(out.story)
	return out
}

// mayGo returns whether an object may be gone the moment before a write that removes it, and no harm is done.
func (w *World) mayGo(verb string, k apiserver.Key) bool {
	o := w.server.Get(k)
	if o == nil {
		return false
	}
	finalizers, _ := nested(o, "metadata", "finalizers").([]any)
	going := nested(o, "metadata", "deletionTimestamp") != nil
	return verb == "delete" && len(finalizers) == 0 || verb == "patch" && going && len(finalizers) == 1
}

// goes removes it, as another one who was faster, past the policies.
func (w *World) goes(k apiserver.Key) {
	w.pastPolicies(func() { w.goesNow(k) })
}

func (w *World) goesNow(k apiserver.Key) {
	if nested(w.server.Get(k), "metadata", "deletionTimestamp") == nil {
		w.refused(w.server.Delete("flux", k, apiserver.Preconditions{}))
		return
	}
	finalizers, _ := nested(w.server.Get(k), "metadata", "finalizers").([]any)
	for _, f := range finalizers {
		w.dropFinalizer(k, f.(string))
	}
}

// unheard are requests whose failure changes nothing but where an event is shown, or which a started cache cannot fail.
var unheard = regexp.MustCompile(`delivery\.\(\*Reconciler\)\.about:|enqueue\.`)

// awaits returns whether a request is to be worked on again.
func (q *queue[R]) awaits(request string) bool {
	for r := range q.later {
		if q.naming(r) == request {
			return true
		}
	}
	for r := range q.dirty {
		if q.naming(r) == request {
			return true
		}
	}
	return false
}

var (
	times      = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	uids       = regexp.MustCompile(`00000000-0000-4000-8000-\d{12}`)
	generation = regexp.MustCompile(`"(observedG|g)eneration":\d+`)
)

// normal is what an object says apart from when it was written, and how often.
func normal(o apiserver.Object) string {
	next := apiserver.Clone(o)
	m := next["metadata"].(map[string]any)
	delete(m, "resourceVersion")
	delete(m, "managedFields")
	raw, err := json.Marshal(next)
	must(err)
	return generation.ReplaceAllString(uids.ReplaceAllString(times.ReplaceAllString(string(raw), "TIME"), "UID"), `"generation":0`)
}

const module = "github.com/chandler-hub/chandler/"

// caller names the lines of the hub that led to a request, up to the controller's Reconcile.
func caller() string {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	var out []string
	for {
		f, more := frames.Next()
		if name, ok := strings.CutPrefix(f.Function, module); ok && !strings.HasPrefix(name, "test/") {
			out = append(out, fmt.Sprintf("%s:%d", name[strings.LastIndex(name, "/")+1:], f.Line))
		}
		if !more {
			return strings.Join(out, " < ")
		}
	}
}

// testExits fails every kind of request that a controller makes in each scenario, once, and compares what came of it with a day without faults.
func testExits(t *testing.T, loops ...string) {
	exits, runs := map[string]bool{}, 0
	for _, s := range exitScenarios {
		t.Run(s.name, func(t *testing.T) {
			found := map[string][]request{}
			var order []string
			want := exitRun(s.before, s.then, loops, 0, way{}, func(r request) {
				id := r.verb + " " + r.key.Kind + " at " + r.at
				if unheard.MatchString(r.at) || exits[id] && !*everyExit {
					return
				}
				if found[id] == nil {
					order = append(order, id)
				}
				found[id] = append(found[id], r)
			})
			for _, v := range want.violations {
				t.Errorf("without a fault: %s: %s", v.Invariant, v.Text)
			}
			for i, id := range order {
				fitting := slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return !w.fits(found[id][0].verb) || w.gone && !found[id][0].mayGo })
				if !*everyExit {
					fitting = fitting[i%len(fitting) : i%len(fitting)+1]
				}
				exits[id] = true
				for _, how := range fitting {
					runs++
					got := exitRun(s.before, s.then, loops, found[id][0].number, how, nil)
					for _, p := range differences(want, got, how) {
						t.Errorf("%s fails with %s: %s", id, how.name, p)
					}
				}
			}
		})
	}
	t.Logf("%d exits, %d runs", len(exits), runs)
}

// differences are what is not as without the fault.
func differences(want, got outcome, how way) []string {
	out := got.problems
	for _, v := range got.violations {
		if !how.ends || !slices.Contains([]string{"convergence", "status"}, v.Invariant) {
			out = append(out, "violated "+v.Invariant+": "+v.Text)
		}
	}
	if len(got.violations) > 0 || how.ends {
		return out
	}
	if w, g := strings.Join(want.story, "\n\t"), strings.Join(got.story, "\n\t"); w != g {
		out = append(out, "what came of the workloads differs:\n\t"+g+"\nnot\n\t"+w)
	}
	for _, name := range sortedKeys(want.objects) {
		if g, ok := got.objects[name]; !ok {
			out = append(out, name+" is missing")
		} else if g != want.objects[name] {
			out = append(out, name+" differs"+differ(want.objects[name], g))
		}
	}
	for _, name := range sortedKeys(got.objects) {
		if _, ok := want.objects[name]; !ok {
			out = append(out, name+" is there, and should not be")
		}
	}
	return out
}

func differ(a, b string) string {
	var x, y apiserver.Object
	must(json.Unmarshal([]byte(a), &x))
	must(json.Unmarshal([]byte(b), &y))
	return difference(x, y)
}

func TestExitsOfDiscovery(t *testing.T)    { testExits(t, "discovery", "origins") }
func TestExitsOfRegistration(t *testing.T) { testExits(t, "registration") }
func TestExitsOfSets(t *testing.T)         { testExits(t, "addonset") }
func TestExitsOfMatcher(t *testing.T)      { testExits(t, "matcher") }
func TestExitsOfDelivery(t *testing.T)     { testExits(t, "delivery") }
func TestExitsOfShared(t *testing.T)       { testExits(t, "shared") }
