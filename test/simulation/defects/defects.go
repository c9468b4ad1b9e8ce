// SPDX-License-Identifier: Apache-2.0

package main

// Defect is a promise that is broken on purpose: most were in the hub once.
type Defect struct {
	// Name is for the command line, and Text says what is wrong in a few words.
	Name, Text string
	// Invariant is the one that has to see it.
	Invariant string
	Edits     []Edit
}

// Edit replaces a text of a file, named from the root of the module. The text is in the file once.
type Edit struct{ File, Old, New string }

// Scripts names, by defect, a script of test/simulation/testdata that is red with it: seeds seldom get there, or never, if the policies
// deny an act of it.
var Scripts = map[string]string{
	"out-of-reach":              "team-goes-while-its-guard-holds-and-then-its-cluster",
	"deleted-delivery":          "break-glass/deliveries-deleted",
	"latch-of-before":           "rebuilt-and-what-depends-on-something-comes-later",
	"renamed-is-new":            "another-add-on-gets-the-name-of-one-that-was-renamed",
	"removed-in-no-order":       "withdrawn-and-dependants-go-first",
	"held-leaks":                "held-for-hours",
	"never-opens":               "down-for-an-hour",
	"hangs-unseen":              "flux-waits-for-an-hour",
	"first-past-waves":          "rollout-of-the-first-revision",
	"completed-nowhere":         "rollout-while-its-only-cluster-is-paused",
	"resumes-a-users":           "suspended-by-a-user-and-a-restart-follows",
	"rendered-without-origin":   "secret-deleted-and-an-expression-asks-carefully",
	"one-scope":                 "break-glass/team-has-an-add-on-of-a-platform-sets-name",
	"labels-on-their-way":       "selector-and-label-edited-in-one-commit",
	"withdrawn-at-once":         "a-label-that-is-gone-for-a-minute",
	"half-applied":              "half-applied-and-dropped",
	"terminating-secret":        "secret-that-is-being-deleted-is-missing",
	"held-not-counted":          "deleted-while-all-of-it-is-held",
	"withdrawal-not-called-off": "killed-after-a-mark-and-labelled-again",
	"account-gone":              "account-deleted-as-its-set-goes",
	"token-not-renewed":         "team-on-a-cluster-that-is-rebuilt-as-the-hub-crashes",
	"own-writes-unseen":         "release-renamed-before-the-cache-shows-it",
	"chart-name":                "another-form-renamed-and-held-beside-one-of-its-former-name",
	"target-namespace":          "another-namespace-when-another-set-goes-on-with-it",
	"told-after":                "half-applied-and-dropped-as-the-hub-dies",
	"two-at-once":               "taken-over-by-a-team-as-a-set-leaves-a-silent-cluster",
	"nil-registration":          "unregistered-beside-a-twin-and-registered-again",
	"team-admin":                "a-label-that-is-gone-for-a-minute",
	"rights-first":              "team-goes-while-its-guard-holds-and-then-its-cluster",
	"token-kept":                "paused-while-its-reconcile-is-at-work",
	"team-namespace":            "a-label-that-is-gone-for-a-minute",
	"replaced":                  "gets-its-cluster-as-its-set-is-deleted",
	"ready-too-soon":            "an-expression-fails-and-what-runs-stays",
	"frozen-and-gone":           "frozen-and-rebuilt",
	"epoch-at-once":             "rollout-of-another-epoch",
	"slots-not-counted":         "rollout-one-at-a-time",
	"told-before-written":       "rollout-and-its-status-is-not-written",
	"soak-from-start":           "rollout-soaks-after-a-slow-canary",
	"failed-goes-on":            "rollout-failed-and-its-canary-recovers",
	"soak-says-nothing":         "rollout-canary-fails-in-its-soak",
	"always-a-window":           "rollout-waits-for-its-window",
	"passing-failure":           "rollout-canary-is-not-reached-for-a-moment",
	"rights-gone":               "team-loses-a-paused-cluster",
	"revision-unknown":          "moved-to-a-revision-that-the-cache-does-not-have",
	"last-has-it":               "registered-twice-and-both-stay",
	"uninstalled-after-all":     "unregistered-beside-a-twin-and-registered-again",
	"silence-of-old":            "silent-of-old-and-no-hub-was-at-work",
	"suspended-unasked":         "paused-and-down-and-no-hub-has-asked-it",
	"soak-unseen":               "rollout-canary-fails-in-a-soak-that-no-hub-sees",
	"late-unseen":               "rollout-deadline-is-over-and-no-hub-was-at-work",
	"orphan-of-old":             "killed-before-an-orphan-is-on-both-lists",
	"drain-of-old":              "drain-times-out-and-no-hub-was-at-work",
	"stale-generation":          "rollout-held-as-a-label-of-its-canary-comes-back",
	"soak-ends-early":           "rollout-and-a-label-of-its-canary-is-gone-for-a-minute",
	"failed-too-soon":           "fails-and-gets-another-folder-while-flux-is-at-work",
	"mark-too-old":              "another-folder-and-paused-and-another-set-takes-it-over",
	"back-unseen":               "registration-deleted-as-its-secret-comes-back",
	"excluded-uncounted":        "excluded-on-a-cluster-that-goes-silent-before-another-epoch",
	"grant-taken-back":          "granted-while-down-and-wanted-by-another-set-for-a-while",
	"rights-of-old":             "team-loses-a-cluster-and-no-hub-was-at-work",
	"shared-with-all":           "values-beside-a-cluster",
	"copy-stays":                "values-beside-a-cluster",
	"copy-of-old":               "values-beside-a-cluster",
	"late-status":               "progressing-said-late-by-a-process-that-stood-still",
}

// Defects are all of them.
var Defects = []Defect{
	{"out-of-reach", "A namespace that does not reach a cluster any more gets its kubeconfig", "secrets", []Edit{
		{"controllers/delivery/copies/kubeconfigs.go", " || !c.Reaches(namespace)", ""},
	}},
	{"deleted-delivery", "An AddonDelivery that somebody deletes uninstalls", "loss", []Edit{
		{"controllers/delivery/observed/standing.go", "\tif !d.Known() || d.DeletionTimestamp == nil || d.Withdrawn() {\n\t\treturn d.Withdrawn(), nil", "\tif d.DeletionTimestamp != nil {\n\t\treturn true, nil\n\t}\n\tif !d.Known() || d.DeletionTimestamp == nil || d.Withdrawn() {\n\t\treturn d.Withdrawn(), nil"},
	}},
	{"chart-name", "A changed chart name reinstalls, and nobody counts it", "guard", []Edit{
		{"internal/plan/place.go", "\treturn known && d.Chart", "\treturn false && known && d.Chart"},
	}},
	{"target-namespace", "A changed target namespace of a Kustomization reinstalls, and nobody counts it", "guard", []Edit{
		{"internal/plan/place.go", "Place{Release: release, Namespace: c.Namespace, Names: c.Names}", "Place{Release: release}"},
	}},
	{"held-not-counted", "What a guard holds, or a removal waits for, is not counted", "guard", []Edit{
		{"controllers/addonset/removals.go", "\t\treturn a.Removal == \"\" || !slices.Contains(d.Spec.Removals, a.Removal)\n\tcase a.State == hubv1.AddonHeld:\n\t\treturn true", "\t\treturn false\n\tcase a.State == hubv1.AddonHeld:\n\t\treturn false"},
	}},
	{"frozen-and-gone", "A frozen delivery whose objects are gone is not served", "convergence", []Edit{
		{"controllers/delivery/observed/reader.go", "\trevision, err := r.revision(", "\tif d.Frozen {\n\t\td.UnrenderableReason, d.Unrenderable = hubv1.FrozenReason, \"frozen\"\n\t\treturn nil\n\t}\n\trevision, err := r.revision("},
	}},
	{"withdrawn-at-once", "A set leaves a cluster as soon as its label is gone", "delay", []Edit{
		{"controllers/addonset/deselect.go", "\tcase delay == 0:\n", "\tcase delay >= 0:\n"},
	}},
	{"labels-on-their-way", "A set deselects by labels that are still on their way", "loss", []Edit{
		{"controllers/addonset/deselect.go", "\tif r.Labels != nil {\n", "\tif r == nil {\n"},
	}},
	{"told-after", "An add-on is orphaned before anything says so", "orphans", []Edit{
		{"controllers/delivery/announce.go", "\tfor _, d := range c.Deliveries {\n\t\tif err := r.announceOf", "\tfor _, d := range c.Deliveries[:0] {\n\t\tif err := r.announceOf"},
	}},
	{"half-applied", "A Kustomization that failed half way is uninstalled, and what it had applied is not told", "orphans", []Edit{
		{"controllers/delivery/wary.go", "\tcase fluxstate.Unnoted(k) != \"\":", "\tcase false && fluxstate.Unnoted(k) != \"\":"},
	}},
	{"account-gone", "The ServiceAccount that Flux removes with is gone before the removal", "orphans", []Edit{
		{"controllers/delivery/wary.go", "\tif o.Account == \"\" {", "\tif o.Account != \"never\" {"},
		{"controllers/sharedobjects/keeper.go", "\tif obj.GetKind() != index.ServiceAccount {\n\t\treturn obj", "\tif obj != nil {\n\t\treturn obj"},
	}},
	{"two-at-once", "A new object is made before the one that delivered the same is gone", "loss", []Edit{
		{"internal/plan/plan.go", "\tfor _, o := range leaving {\n\t\tif Follows(d, o) {", "\tfor _, o := range leaving[:0] {\n\t\tif Follows(d, o) {"},
	}},
	{"terminating-secret", "A kubeconfig Secret that is Terminating counts as a cluster that is deleted", "loss", []Edit{
		{"internal/origin/policy.go", "moving || deleted && k.IsCluster()", "moving || deleted"},
	}},
	{"withdrawal-not-called-off", "A mark that a hub left when it was killed is not taken back", "convergence", []Edit{
		{"controllers/addonset/matcher.go", "\tstays, err := deliverywriter.CallOff(ctx, m.Client, d)", "\tstays, err := &hubv1.AddonDelivery{Spec: hubv1.AddonDeliverySpec{AddonSetRef: d.Spec.AddonSetRef, RevisionName: d.Spec.RevisionName}}, error(nil)"},
	}},
	{"always-again", "A controller looks again at once, whatever it finds", "quiescence", []Edit{
		{"controllers/delivery/finish.go", "\tagain := false", "\tagain := true"},
	}},
	{"since-is-now", "A status tells the time of each look", "quiescence", []Edit{
		{"internal/report/report.go", "\t\treturn before.Since", "\t\treturn now"},
	}},
	{"own-writes-unseen", "A controller decides from a cache that is older than its own writes", "guard", []Edit{
		{"controllers/delivery/reconciler.go", "\tif !r.expectations.Satisfied(c.Key, c.Version, c.Now) {", "\tif false && !r.expectations.Satisfied(c.Key, c.Version, c.Now) {"},
	}},
	{"revision-unknown", "An add-on goes that is moved to a revision which the cache does not have", "loss", []Edit{
		{"controllers/delivery/observed/reader.go", "\tif apierrors.IsNotFound(err) {\n\t\trevision =", "\tif false {\n\t\trevision ="},
		{"controllers/delivery/planned/render.go", "\t\tcase d.Unread():", "\t\tcase false:"},
	}},
	{"nil-registration", "A controller takes a registration for given", "panic", []Edit{
		{"controllers/delivery/observed/cluster.go", "\tif c.Registration == nil {\n\t\treturn nil\n\t}\n\treturn status.Find(c.Registration, hubv1.SuspendedCondition)", "\treturn status.Find(c.Registration, hubv1.SuspendedCondition)"},
	}},
	{"team-admin", "A Team's hub namespace gets the cluster's admin kubeconfig", "secrets", []Edit{
		{"controllers/delivery/copies/kubeconfigs.go", "\tif c.Reach[namespace].ByTeam() { // the tokens", "\tif false && c.Reach[namespace].ByTeam() { // the tokens"},
	}},
	{"rights-first", "A Team's rights go before what Flux needs them for", "teams", []Edit{
		{"controllers/delivery/planned/scope.go", "\tif !c.BringsAny(o) {\n", "\tif o != nil {\n"},
	}},
	{"token-kept", "A Team keeps the token of a cluster that it has lost", "kubeconfigs", []Edit{
		{"controllers/delivery/finish.go", "\tcase len(others) == 0:\n", "\tcase len(others) == 0 && !c.Reach[d.Namespace].ByTeam():\n"},
		{"controllers/tokens/reconciler.go", "errs := []error{r.dropUnused(ctx, reg, namespaces)}", "errs := []error{nil}"},
	}},
	{"team-namespace", "A team's add-on goes into a namespace that is not the team's", "teams", []Edit{
		{"internal/fluxspec/defaults.go", "\t\tdefaultForTeam(d, team)\n", "\t\t_ = team\n"},
		{"internal/fluxspec/team.go", "func (r *TeamRules) RefusesRelease(namespace string) string {\n", "func (r *TeamRules) RefusesRelease(namespace string) string {\n\tif r != nil {\n\t\treturn \"\"\n\t}\n"},
	}},
	{"one-scope", "A team's sets compete with the platform's for the names of add-ons", "loss", []Edit{
		{"controllers/delivery/observed/teams.go", "\tif c.Reach[namespace].ByTeam() || c.wasTeam[namespace] {\n", "\tif namespace == \"\" {\n"},
	}},
	{"token-not-renewed", "Nobody looks again for a token that had to wait for objects of a former cluster", "convergence", []Edit{
		{"controllers/tokens/reconciler.go", "\t\t\treturn otherTime, nil", "\t\t\treturn 0, nil"},
	}},
	{"rights-gone", "Flux tries for ever to uninstall what it has no rights for any more", "deletion", []Edit{
		{"internal/teardown/teardown.go", "\tcase f.Reachable && f.Rightless != \"\" &&", "\tcase false && f.Reachable && f.Rightless != \"\" &&"},
		{"controllers/delivery/planned/scope.go", "\tif d := c.Delivery(other.Key.Namespace, other.Delivery); d != nil && ", "\tif d := c.Delivery(other.Key.Namespace, other.Delivery); false && d != nil && "},
	}},
	{"epoch-at-once", "What a hub of another epoch makes reaches every cluster at once", "rollout", []Edit{
		{"controllers/addonset/matcher.go", "\t\treturn gift{start.Revision, start.Start}\n\t}\n\treturn is\n", "\t\treturn gift{start.Revision, start.Start}\n\tcase identity.SameContent(is.revision, c.newcomers):\n\t\treturn gift{c.newcomers, is.start}\n\t}\n\treturn is\n"},
	}},
	{"slots-not-counted", "A cluster that works on a revision takes no slot", "rollout", []Edit{
		{"internal/rollout/start.go", "\treturn p.concurrency(all) - p.busy()\n", "\treturn p.concurrency(all)\n"},
	}},
	{"told-before-written", "Clusters are told to start before the status of the set is written", "rollout", []Edit{
		{"controllers/addonset/reconciler.go", "\tfleet.Summarize(set, invalid, r.Clock.Now())\n", "\tfleet.Summarize(set, invalid, r.Clock.Now())\n\tif invalid == nil {\n\t\tr.begin(ctx, set, &next)\n\t}\n"},
	}},
	{"soak-from-start", "The soak of a wave counts from the start of the rollout", "rollout", []Edit{
		{"internal/rollout/decide.go", "\t\td.state.WaveReady = at(d.Now)\n", "\t\td.state.WaveReady = d.state.Started\n"},
	}},
	{"failed-goes-on", "A revision that failed in a wave goes on when its clusters have recovered", "rollout", []Edit{
		{"internal/rollout/decide.go", "\td.bar()\n", "\td.state.FailedRevisions = nil\n\td.bar()\n"},
	}},
	{"soak-says-nothing", "A cluster that fails while its wave soaks does not count", "rollout", []Edit{
		{"internal/rollout/cluster.go", "\tcase on && c.Ready && well && fails && !passed &&", "\tcase false && on && c.Ready && well && fails && !passed &&"},
	}},
	{"always-a-window", "A window that has closed counts as open", "rollout", []Edit{
		{"internal/rollout/start.go", "Expedited(d.target); isOpen || expedited ||", "Expedited(d.target); true || isOpen || expedited ||"},
	}},
	{"passing-failure", "A cluster that Flux does not reach for a moment has failed on the revision", "rollout", []Edit{
		{"internal/rollout/observe.go", "(a.LastAttempt == hubv1.AttemptUnreached || a.Reason == hubv1.NotWrittenReason)", "false"},
	}},
	{"stale-generation", "A cluster is late from when its delivery gets another generation until that is observed", "rollout", []Edit{
		{"internal/rollout/observe.go", "\tc.Ready = ready(d)", "\tc.Ready = d.Status.ObservedGeneration == d.Generation && ready(d)"},
	}},
	{"soak-ends-early", "A canary whose label is gone for a moment ends its soak", "rollout", []Edit{
		{"controllers/addonset/reconciler.go", "\t\t\tif waits {", "\t\t\tif false {"},
	}},
	{"replaced", "What Flux remembers of a cluster that was replaced meets the new one", "orphans", []Edit{
		{"controllers/delivery/observed/cluster.go", "\tcase uid != \"\" && c.Registration", "\tcase false && uid != \"\" && c.Registration"},
	}},
	{"ready-too-soon", "What Flux did before a change counts for the change", "status", []Edit{
		{"internal/fluxstate/fluxstate.go", "\t\t\ts.ReadyGeneration = min(s.ReadyGeneration, observed)\n", "\t\t\t_ = observed\n"},
	}},
	{"failed-too-soon", "What failed before a change counts for the change", "status", []Edit{
		{"controllers/delivery/observed/sightings.go", "\tif fluxstate.OfAttempt(state) &&", "\tif false && fluxstate.OfAttempt(state) &&"},
	}},
	{"mark-too-old", "Of a suspended Kustomization, a hub that starts later takes for applied what it is to apply", "orphans", []Edit{
		{"internal/plan/place.go", "func (o *Observed) MarkSuspended() string {\n", "func (o *Observed) MarkSuspended() string {\n\tif o.AppliedAs != \"\" {\n\t\treturn o.Mark\n\t}\n"},
	}},
	{"last-has-it", "The last registration of a cluster has it, and not the first", "status", []Edit{
		{"internal/precedence/precedence.go", "return cmp.Or(since(a).Compare(since(b))", "return cmp.Or(since(b).Compare(since(a))"},
	}},
	{"uninstalled-after-all", "What was orphaned, and not counted, is uninstalled after all", "guard", []Edit{
		{"controllers/addonset/matcher.go", "\treturn orphansAddons(reg) || status", "\treturn false && status"},
	}},
	{"back-unseen", "What is to leave is withdrawn before the cache shows that the Secret has come back", "loss", []Edit{
		{"controllers/registration/finalize.go", "err != nil || behind {", "err != nil || false && behind {"},
	}},
	{"excluded-uncounted", "What is excluded, and is still on its way out when the hub is upgraded, counts as gone", "status", []Edit{
		{"internal/report/staying.go", "\tif !d.Frozen || d.Result == nil ||", "\tif true || !d.Frozen || d.Result == nil ||"},
		{"controllers/delivery/planned/steps.go", "d.Frozen && !o.Deleting && !d.wants(k)", "d.Frozen && !d.wants(k)"},
	}},
	{"silence-of-old", "A hub that starts takes a cluster's silence before that for silence now", "silence", []Edit{
		{"controllers/delivery/planned/steps.go", "f.Silent.Before(c.Began) && asked.After(f.Silent) {", "false && asked.After(f.Silent) {"},
	}},
	{"suspended-unasked", "A hub that starts suspends a cluster that it has not asked", "silence", []Edit{
		{"controllers/registration/suspend.go", "\tif facts.Down && !hubv1.Tripped(facts.Open) &&", "\tif false && facts.Down && !hubv1.Tripped(facts.Open) &&"},
	}},
	{"grant-taken-back", "What Flux still uninstalls, and was wanted again for a while, is held by the guard that has granted it", "held", []Edit{
		{"controllers/delivery/planned/steps.go", "return (!o.Deleting || o.Suspended) && !d.Granted(", "return !d.Granted("},
	}},
	{"soak-unseen", "A hub that starts goes on after a soak that nobody has watched", "rollout", []Edit{
		{"internal/rollout/decide.go", "\tcase d.blind():", "\tcase false && d.blind():"},
	}},
	{"late-unseen", "The time in which no hub was at work counts for a deadline", "rollout", []Edit{
		{"internal/rollout/cluster.go", "\tif since.Before(d.Since) {", "\tif false && since.Before(d.Since) {"},
	}},
	{"drain-of-old", "The time in which no hub was at work counts for the timeout of a drain", "drain", []Edit{
		{"internal/drain/drain.go", "\treturn min(began, f.Now.Sub(f.Since))", "\treturn began"},
	}},
	{"orphan-of-old", "A delivery that has orphaned something before the hub started goes before its set and its registration name that", "orphans", []Edit{
		{"controllers/delivery/orphans.go", "> tellLimit && c.Now.Sub(c.Began) > tellLimit {", "> tellLimit {"},
	}},
	{"rights-of-old", "The time in which no hub was at work counts for what a Team's rights wait for", "teams", []Edit{
		{"controllers/delivery/planned/scope.go", "c.Began.After(since)", "false"},
	}},
	{"latch-of-before", "A latch outlives the cluster that it is of", "order", []Edit{
		{"internal/assembly/order.go", "a.in.End || d.Latched && a.here(w) {", "a.in.End || d.Latched {"},
	}},
	{"renamed-is-new", "An add-on that is renamed gets an object of its own", "owners", []Edit{
		{"internal/assembly/names.go", "\tif len(o.MovedFrom) == 0 ||", "\tif len(o.MovedFrom) >= 0 ||"},
	}},
	{"removed-in-no-order", "What others depend on goes before them", "order", []Edit{
		{"internal/plan/leaving.go", "if by := in.dependant(o, after); by != \"\" {", "if by := in.dependant(o, after); by == \"?\" {"},
	}},
	{"held-leaks", "What the removal guard holds leaks as the hour passes", "held", []Edit{
		{"internal/guard/guard.go", "case v.Approved || in.Held == nil && counts.take():", "case v.Approved || counts.take():"},
	}},
	{"never-opens", "The breaker never opens", "breaker", []Edit{
		{"internal/breaker/breaker.go", "\tcase f.Down:", "\tcase false && f.Down:"},
	}},
	{"hangs-unseen", "A cluster that answers the hub, and holds Flux's requests, is not noticed", "breaker", []Edit{
		{"internal/breaker/breaker.go", "\tcase !f.Waiting.IsZero():", "\tcase false && !f.Waiting.IsZero():"},
	}},
	{"first-past-waves", "The first revision of a set goes to all clusters at once, past its waves", "rollout", []Edit{
		{"internal/rollout/decide.go", "\tif c == \"\" {\n\t\treturn \"\", after", "\tif c == \"\" {\n\t\treturn d.target, after"},
	}},
	{"completed-nowhere", "A revision is completed that no cluster has been Ready on", "rollout", []Edit{
		{"internal/rollout/cluster.go", "\tcase excuse != \"\", c.Offline && !(on && well):\n\t\treturn skipped", "\tcase excuse != \"\", c.Offline && !(on && well):\n\t\treturn done"},
	}},
	{"resumes-a-users", "What a user has suspended is resumed as if the hub had suspended it", "suspend", []Edit{
		{"controllers/delivery/suspend.go", "\t\tu.SetResourceVersion(o.Version)\n", "\t\tu.SetResourceVersion(o.Version)\n\t\tu.Object[\"spec\"] = map[string]any{\"suspend\": false}\n"},
	}},
	{"rendered-without-origin", "A missing origin renders", "origin", []Edit{
		{"controllers/delivery/planned/render.go", "if why := c.Originless(); why != \"\" {", "if why := c.Originless(); false && why != \"\" {"},
	}},
	{"shared-with-all", "What lies beside a cluster is copied, whether or not its owner shares it", "secrets", []Edit{
		{"internal/render/document/document.go", "\treturn strings.FieldsFunc(annotations[hubv1.ShareAnnotation],", "\treturn strings.FieldsFunc(\"flux-system\"+annotations[\"none\"],"},
	}},
	{"copy-stays", "A copy of what lies beside a cluster stays when nothing reads it any more", "copies", []Edit{
		{"controllers/delivery/copies/values.go", "\tif !k.read() {\n", "\tif !k.read() {\n\t\tif k.there != nil {\n\t\t\treturn nil\n\t\t}\n"},
	}},
	{"copy-of-old", "A copy of what lies beside a cluster is not written again", "copies", []Edit{
		{"controllers/delivery/copies/values.go", "if k.there != nil && k.there.Annotations[hubv1.HashAnnotation] == hash {", "if k.there != nil {"},
	}},
	{"late-status", "A status that arrives late, from a process that stood still, replaces a newer one", "status", []Edit{
		{"internal/apply/apply.go", "\t\t\"metadata\": map[string]string{\"resourceVersion\": p.before.GetResourceVersion()}, \"status\"", "\t\t\"status\""},
	}},
}
