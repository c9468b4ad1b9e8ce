// SPDX-License-Identifier: Apache-2.0

// Package simulation runs the whole hub in one goroutine, against an API server, Flux and workload clusters in
// memory, on a clock of its own, and looks for broken promises. A seed or a script decides what happens.
// docs/simulation.md says how to use it, and what the models leave out.
package simulation

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// World is all of it.
type World struct {
	clock  *testclock.FakeClock
	scheme *runtime.Scheme
	server *apiserver.Server
	config *hubconfig.Config
	hub    *hub
	// former is the process that led before, while writes of it are on their way.
	former   *hub
	flux     *flux
	clusters []*cluster
	sets     map[string]*set
	teams    map[string]*team
	// known is set while the world is looked at, and nothing changes.
	known *known
	// sharedUntil is when values beside a cluster were shared last, of those that are not any more.
	sharedUntil map[apiserver.Key]time.Time
	// tokens are those that clusters have given.
	tokens map[string]issued
	// broken are add-ons whose installation fails.
	broken map[string]bool
	// bad are versions of add-ons that misbehave, by add-on and version. rolls are the sets that have had waves.
	bad   map[string]*bad
	rolls map[apiserver.Key]*rolling
	// seq counts writes.
	seq    int
	backup map[apiserver.Key]apiserver.Object
	// authored is what the sets were when the backup was taken.
	authored map[string]set
	events   []event
	fault    fault
	// running is the controller that reconciles now. asked, if set, decides over each of its requests, including reads. done
	// is called after each reconcile with its error.
	running string
	// at is its process.
	at *hub
	// worksOn is the same controller, and request what it works on. between is what comes between its requests; nil for nothing.
	// paused is whether that registration was paused in its cache when it began.
	worksOn *loop
	request string
	paused  bool
	between *interleaving
	asked   func(verb string, k apiserver.Key) (before, after error)
	done    func(r *loop, request string, err error)
	// edited is when somebody last did something.
	edited time.Time
	// quiet is true while a write of the hub is a violation.
	quiet bool

	// changes counts writes, steps, and what Flux does on clusters; forgotten is what it was when forget was last called.
	changes, forgotten int

	ids    int
	losses []loss
	// granted says when a delivery was withdrawn, or came to be allowed to remove more.
	granted map[apiserver.Key]time.Time
	// approvals are what somebody has approved of each set, while its guard holds something.
	approvals map[apiserver.Key]approval
	// heldAtRest are the deliveries, with removals, that the guard of each set held when the world was last at rest.
	heldAtRest map[apiserver.Key][]string
	// askedAtRest is which release each HelmRelease asked for then, by UID.
	askedAtRest map[string]string
	orphans     map[string]orphan
	// identities says of which cluster each registration says that it is, by the registration's UID.
	identities map[any]identified
	// deselected are the UIDs of deliveries that were withdrawn when their sets did not select the cluster.
	deselected map[any]bool
	// unselected is since when sets select clusters no more, by the names of both.
	unselected map[[2]string]unselected
	// chartsGone is when each HelmChart was deleted last, and hubBegan when the process that runs began.
	chartsGone map[apiserver.Key]time.Time
	hubBegan   time.Time
	// unread is since when Kamaji's kind is not served; zero if it is.
	unread time.Time
	// announced are the names of the deliveries, and the Flux objects, of which they tell as orphaned.
	announced map[[2]string]bool
	// away is true if the process was killed, and no other one starts by itself.
	away bool
	// wasReady are the UIDs of Flux objects that have been Ready, and suspended those of the ones that a user has suspended;
	// everSuspended also if they were to go since.
	wasReady, suspended, everSuspended map[any]bool
	// deleted are the UIDs of Flux objects that users have deleted, and madeLate those of the ones that a former process made.
	deleted, madeLate map[any]bool
	violations        []Violation
	// brokeGlass is true if users act as members of the break-glass group, and rescues while a tool does. fenceless is true while something
	// is written past all policies. denied is what the policies have denied to users.
	brokeGlass, rescues, fenceless bool
	denied                         []string
	story                          []string
	// writes counts those of the hub, and trace is a digest of them.
	writes, reconciles int
	trace              uint64
}

// Violation is a promise that did not hold.
type Violation struct {
	Invariant, Text string
	Step            int
	// form is the text without names: what is shrunk stays a violation of the same form.
	form string
}

// fault is what is to go wrong with one of the hub's next writes.
type fault struct {
	in   int // it is the write of this number from now on; 0 for none
	kind string
}

// approval is of removals that a guard held: its hash, and the registrations that the set's status named.
type approval struct {
	hash          string
	registrations []string
	more          bool // the set names some of them only
}

var scheme = sync.OnceValue(hubscheme.New)

// start is when every simulation begins.
var start = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

func newWorld() *World {
	w := &World{
		clock: testclock.NewFakeClock(start), scheme: scheme(), config: flags(), sets: map[string]*set{},
		teams: map[string]*team{}, tokens: map[string]issued{}, sharedUntil: map[apiserver.Key]time.Time{},
		approvals: map[apiserver.Key]approval{}, heldAtRest: map[apiserver.Key][]string{}, askedAtRest: map[string]string{},
		broken: map[string]bool{}, bad: map[string]*bad{},
		rolls: map[apiserver.Key]*rolling{},
		flux: &flux{due: map[apiserver.Key]time.Time{}, failures: map[apiserver.Key]int{}, begun: map[apiserver.Key]int64{},
			waiting: map[apiserver.Key]waited{},
			uids:    map[any]apiserver.Key{}},
		orphans: map[string]orphan{}, deleted: map[any]bool{}, madeLate: map[any]bool{}, deselected: map[any]bool{},
		unselected: map[[2]string]unselected{},
		wasReady:   map[any]bool{}, suspended: map[any]bool{}, everSuspended: map[any]bool{},
		chartsGone: map[apiserver.Key]time.Time{}, identities: map[any]identified{}, granted: map[apiserver.Key]time.Time{},
		announced: map[[2]string]bool{},
	}
	w.server = apiserver.New(w.clock)
	w.server.OnWrite = w.noticed
	w.server.Admit = w.admit
	for _, ns := range []string{"kube-system", "chandler-system", "flux-system", "fleet", "team", "stranger"} {
		w.make(apiserver.Key{Kind: "Namespace", Name: ns}, apiserver.Object{"apiVersion": "v1"})
	}
	for _, crd := range []string{
		"tenantcontrolplanes.kamaji.clastix.io", "clusters.cluster.x-k8s.io", "addonsets.chandler.dev", "addondeliveries.chandler.dev",
		"clusterregistrations.chandler.dev", "teams.chandler.dev",
	} {
		plural, group, _ := strings.Cut(crd, ".")
		version := map[string]string{"tenantcontrolplanes": "v1alpha1", "clusters": "v1beta2"}[plural]
		w.make(apiserver.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: crd}, apiserver.Object{
			"apiVersion": "apiextensions.k8s.io/v1",
			"spec":       apiserver.Object{"group": group, "versions": []any{apiserver.Object{"name": version, "served": true, "storage": true}}},
			"status":     apiserver.Object{"conditions": []any{apiserver.Object{"type": "Established", "status": "True"}}},
		})
	}
	w.make(apiserver.Key{Group: sourceGroup, Kind: "GitRepository", Namespace: "flux-system", Name: "git"},
		apiserver.Object{"apiVersion": "source.toolkit.fluxcd.io/v1", "spec": apiserver.Object{}})
	w.make(apiserver.Key{Group: sourceGroup, Kind: "GitRepository", Namespace: "team", Name: "git"},
		apiserver.Object{"apiVersion": "source.toolkit.fluxcd.io/v1", "spec": apiserver.Object{}})
	return w
}

// make creates an object as its own controller or a user does.
func (w *World) make(k apiserver.Key, o apiserver.Object) {
	o["kind"] = k.Kind
	m, _ := o["metadata"].(map[string]any)
	if m == nil {
		m = apiserver.Object{}
		o["metadata"] = m
	}
	m["name"] = k.Name
	if k.Namespace != "" {
		m["namespace"] = k.Namespace
	}
	_, err := w.server.Create("user", k, o)
	if err != nil {
		w.say("  (refused: %v)", err)
	}
}

func (w *World) say(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

// violated notes a violation, unless the same was noted before.
func (w *World) violated(invariant, format string, args ...any) {
	if w.brokeGlass && !slices.Contains(whateverHappens, invariant) {
		return
	}
	text := fmt.Sprintf(format, args...)
	for _, v := range w.violations {
		if v.Invariant == invariant && v.Text == text {
			return
		}
	}
	w.say("  VIOLATED %s: %s", invariant, text)
	w.violations = append(w.violations, Violation{Invariant: invariant, Text: text, Step: len(w.story), form: format})
}

var errServer = apierrors.NewTimeoutError("the API server is overloaded", 1)

// gate is asked before every request of the hub.
func (w *World) gate(h *hub, verb string, k apiserver.Key) (before, after error) {
	if w.asked != nil {
		return w.asked(verb, k)
	}
	if verb == "get" || verb == "list" || w.fault.in == 0 {
		return nil, nil
	}
	if w.fault.in--; w.fault.in > 0 {
		return nil, nil
	}
	switch w.fault.kind {
	case "before":
		return errServer, nil
	case "after":
		return nil, errServer
	case "crash", "kill": // before the write
		w.away = w.fault.kind == "kill"
		w.say("  the hub crashes before it can %s %s", verb, k)
		h.dead = true
		return errCrashed, nil
	}
	w.away = w.fault.kind == "killed"
	w.say("  the hub crashes right after it could %s %s", verb, k)
	h.dead = true // the write takes effect, and nobody hears of it
	return nil, errCrashed
}

// noticed is called after every write.
func (w *World) noticed(write apiserver.Write) {
	w.changes++
	w.flux.noticed(w, write)
	w.noteReady(write)
	w.noteSuspended(write)
	w.changesHands(write)
	w.noteIdentity(write)
	w.noteRights(write)
	w.noteDeselected(write)
	w.noteGranted(write)
	w.noteApproved(write)
	w.noteShared(write)
	if (write.Key.Kind == "HelmChart" || write.Key.Kind == "OCIRepository") && write.New == nil {
		w.chartsGone[write.Key] = w.clock.Now()
	}
	w.noteRollouts(write)
	if write.Actor == "user" || write.Actor == "flux" {
		return
	}
	if w.at != nil && !w.at.leads && isFlux(write.Key) && write.Old == nil {
		w.madeLate[nested(write.New, "metadata", "uid")] = true
	}
	w.checkWrite(write)
	if !write.Changed {
		return
	}
	w.writes++
	for _, c := range write.Verb + write.Key.String() {
		w.trace = w.trace*1099511628211 ^ uint64(c)
	}
	if w.quiet && (write.New == nil || apiserver.Label(write.New, hubv1.CopyLabel) != identity.TeamCopy) { // a token has to be renewed
		w.violated("steady", "the hub wrote in a steady state: %s %s by %s%s", write.Verb, write.Key, write.Actor,
			difference(write.Old, write.New))
	}
}

// changesHands is called after every write. What a Flux object has brought belongs to the set and the add-on that have the
// object now, whether or not Flux has reconciled it since.
func (w *World) changesHands(write apiserver.Write) {
	if !isFlux(write.Key) || write.Old == nil || write.New == nil || setNameOf(write.Old) == setNameOf(write.New) &&
		apiserver.Label(write.Old, hubv1.AddonLabel) == apiserver.Label(write.New, hubv1.AddonLabel) {
		return
	}
	for _, c := range w.clusters {
		passes := false
		for _, work := range c.workloads {
			if work.ownerUID == nested(write.New, "metadata", "uid") {
				work.set, work.addon, passes = setNameOf(write.New), apiserver.Label(write.New, hubv1.AddonLabel), true
			}
		}
		if passes {
			w.noteWishesOf(c)
		}
	}
}

// difference names a few fields that differ.
func difference(a, b apiserver.Object) string {
	var out []string
	var walk func(path string, a, b any)
	walk = func(path string, a, b any) {
		am, aok := a.(map[string]any)
		bm, bok := b.(map[string]any)
		if !aok || !bok {
			if fmt.Sprint(a) != fmt.Sprint(b) && path != ".metadata.resourceVersion" {
				out = append(out, fmt.Sprintf("%s: %s -> %s", path, brief(a), brief(b)))
			}
			return
		}
		for f := range am {
			walk(path+"."+f, am[f], bm[f])
		}
		for f := range bm {
			if _, had := am[f]; !had {
				walk(path+"."+f, nil, bm[f])
			}
		}
	}
	walk("", map[string]any(a), map[string]any(b))
	slices.Sort(out)
	return " (" + strings.Join(out[:min(3, len(out))], "; ") + ")"
}

func brief(v any) string {
	s := fmt.Sprint(v)
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// addCluster makes a cluster and its origin.
func (w *World) addCluster(name, provider string, labels map[string]string) {
	namespace := "fleet"
	if strings.HasPrefix(name, "t") {
		namespace = "team"
	}
	c := &cluster{name: name, namespace: namespace, provider: provider, address: fmt.Sprintf("10.0.%d.1", len(w.clusters)+1),
		workloads: map[string]*workload{}}
	w.clusters = append(w.clusters, c)
	w.makeOrigin(c, labels)
}

func (w *World) makeOrigin(c *cluster, labels map[string]string) {
	all := apiserver.Object{hubv1.RegisterLabel: "true"}
	for k, v := range labels {
		all[k] = v
	}
	switch c.provider {
	case "Secret":
		w.make(c.secret(), apiserver.Object{"apiVersion": "v1", "metadata": apiserver.Object{"labels": all}, "data": c.data()})
	case "Kamaji":
		w.make(c.secret(), apiserver.Object{"apiVersion": "v1", "data": c.data()})
		w.make(c.origin(), apiserver.Object{
			"apiVersion": "kamaji.clastix.io/v1alpha1", "metadata": apiserver.Object{"labels": all}, "spec": apiserver.Object{},
			"status": apiserver.Object{"kubeconfig": apiserver.Object{"admin": apiserver.Object{"secretName": c.secret().Name}},
				"kubernetesResources": apiserver.Object{"version": apiserver.Object{"status": "Ready"}}},
		})
	default:
		if c.twin == nil {
			w.make(c.secret(), apiserver.Object{"apiVersion": "v1", "data": c.data()})
		}
		delete(all, hubv1.RegisterLabel)
		w.make(c.origin(), apiserver.Object{
			"apiVersion": "chandler.dev/v1alpha1", "metadata": apiserver.Object{"labels": all},
			"spec": apiserver.Object{"kubeConfig": apiserver.Object{"secretRef": apiserver.Object{"name": c.secret().Name}}},
		})
	}
}

// secret is the Secret with the kubeconfig, and origin the object that carries the cluster's labels.
func (c *cluster) secret() apiserver.Key {
	switch c.provider {
	case "Kamaji":
		return apiserver.Key{Kind: "Secret", Namespace: c.namespace, Name: c.name + "-admin-kubeconfig"}
	case "Hand":
		if c.twin != nil {
			return c.twin.secret()
		}
		return apiserver.Key{Kind: "Secret", Namespace: c.namespace, Name: c.name + "-by-hand"}
	}
	return apiserver.Key{Kind: "Secret", Namespace: c.namespace, Name: c.name}
}

func (c *cluster) origin() apiserver.Key {
	switch c.provider {
	case "Kamaji":
		return apiserver.Key{Group: "kamaji.clastix.io", Kind: "TenantControlPlane", Namespace: c.namespace, Name: c.name}
	case "Hand":
		return c.registration()
	}
	return c.secret()
}

func (c *cluster) registration() apiserver.Key {
	return apiserver.Key{Group: "chandler.dev", Kind: "ClusterRegistration", Namespace: c.namespace, Name: c.name}
}

func (c *cluster) data() apiserver.Object {
	key := "value"
	if c.provider == "Kamaji" {
		key = "admin.conf"
	}
	return apiserver.Object{key: base64.StdEncoding.EncodeToString([]byte(c.kubeconfig()))}
}

// cluster returns the cluster of a name, or nil.
func (w *World) cluster(name string) *cluster {
	for _, c := range w.clusters {
		if c.name == name {
			return c
		}
	}
	return nil
}
