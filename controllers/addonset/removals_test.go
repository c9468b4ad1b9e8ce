// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/match"
)

// TestRemovals says what is asked of the guard: nothing for what is absent or unknown, and nothing counts that is not taken away.
func TestRemovals(t *testing.T) {
	now := metav1.Now()
	unregistering := func(reason string) func(*world) {
		return func(w *world) {
			w.reg.DeletionTimestamp = &now
			if reason != "" {
				w.reg.Status.Conditions = []metav1.Condition{{Type: hubv1.UnregisteringCondition, Status: metav1.ConditionTrue, Reason: reason}}
			}
		}
	}
	drained := func(w *world) {
		w.reg.Status.Conditions = []metav1.Condition{{Type: hubv1.DrainingCondition, Status: metav1.ConditionTrue, Reason: hubv1.DrainInProgressReason}}
	}
	deselected := func(w *world) { w.reg.Labels = nil }
	lately := func(w *world) { w.stays = time.Minute }
	broken := func(w *world) { w.broken = true }
	teams := func(clusters labels.Selector, goes bool) func(*world) {
		return func(w *world) { w.platform, w.team = false, &match.Team{Clusters: clusters, Deleted: goes} }
	}
	held := func(w *world) { w.set.Status.HeldRemovals = &hubv1.HeldRemovals{Count: 17} }
	// The generations that the hub led to are not known any more: one add-on is on Hold, and Flux says of the other that it runs.
	restored := func(w *world) {
		w.delivery.Status.Addons[0] = hubv1.AddonStatus{Name: "a", State: hubv1.AddonProgressing, Version: "1.0.0"}
		w.delivery.Status.Addons[1] = hubv1.AddonStatus{Name: "b", State: hubv1.AddonRemoving, Object: "one-b"}
	}
	// A hub that was killed has made both, and said so of one.
	unsaid := func(i int, state hubv1.AddonState) func(*world) {
		return func(w *world) {
			w.delivery.Status.Addons[i] = hubv1.AddonStatus{Name: w.delivery.Status.Addons[i].Name, Object: "one-a", State: state}
		}
	}
	made := func(w *world) { w.made = []string{"b", "a"} }

	cases := map[string]struct {
		with []func(*world)
		want string
	}{
		"Selected":                   {nil, ""},
		"Deselected":                 {[]func(*world){deselected}, "all of it: a b"},
		"DeselectedLately":           {[]func(*world){deselected, lately}, ""},
		"DeselectedLatelyAndAsks":    {[]func(*world){deselected, lately, func(w *world) { w.asks("b", "r1") }}, "r1: b"},
		"SelectedAgain":              {[]func(*world){lately}, ""},
		"UnregisteredLately":         {[]func(*world){unregistering(hubv1.UnregisteredReason), lately}, "all of it: a b"},
		"DrainedLately":              {[]func(*world){drained, lately}, "all of it, free"},
		"OutOfReachLately":           {[]func(*world){func(w *world) { w.platform = false }, lately}, "all of it: a b"},
		"OutOfReachAndBroken":        {[]func(*world){func(w *world) { w.platform, w.broken = false, true }}, "all of it: a b"},
		"TheTeamHasIt":               {[]func(*world){teams(labels.Everything(), false)}, ""},
		"TheTeamHasItAndBroken":      {[]func(*world){teams(labels.Everything(), false), broken}, ""},
		"TheTeamLostIt":              {[]func(*world){teams(labels.Nothing(), false)}, "all of it: a b"},
		"TheTeamLostItLately":        {[]func(*world){teams(labels.Nothing(), false), lately}, ""},
		"TheTeamLostItAndBroken":     {[]func(*world){teams(labels.Nothing(), false), broken}, "all of it: a b"},
		"TheTeamGoes":                {[]func(*world){teams(labels.Nothing(), true), lately}, "all of it: a b"},
		"TheTeamGoesAndBroken":       {[]func(*world){teams(labels.Nothing(), true), lately, broken}, "all of it: a b"},
		"TheTeamIsNotValid":          {[]func(*world){teams(labels.Nothing(), false), broken, func(w *world) { w.team.Broken = "it is not valid" }}, ""},
		"OutOfReach":                 {[]func(*world){func(w *world) { w.platform = false }}, "all of it: a b"},
		"NoRegistration":             {[]func(*world){func(w *world) { w.reg = nil }}, ""},
		"DoesNotCompile":             {[]func(*world){deselected, func(w *world) { w.broken = true }}, ""},
		"Unregistered":               {[]func(*world){unregistering(hubv1.UnregisteredReason)}, "all of it: a b"},
		"UnregisteredAndBroken":      {[]func(*world){unregistering(hubv1.UnregisteredReason), func(w *world) { w.broken = true }}, "all of it: a b"},
		"LabelRemoved":               {[]func(*world){unregistering(hubv1.LabelRemovedReason)}, ""},
		"SecretMissing":              {[]func(*world){unregistering(hubv1.OriginMissingReason)}, ""},
		"SecretLost":                 {[]func(*world){unregistering(hubv1.OriginLostReason)}, "all of it orphaned: a b"},
		"AboutToBeMadeAgain":         {[]func(*world){unregistering("")}, ""},
		"DeselectedAndMadeAgain":     {[]func(*world){deselected, unregistering("")}, ""},
		"HeldAndMadeAgain":           {[]func(*world){deselected, held, unregistering("")}, "all of it: a b"},
		"HeldAndItsLabelRemoved":     {[]func(*world){deselected, held, unregistering(hubv1.LabelRemovedReason)}, "all of it: a b"},
		"HeldAndGoesWithItsCluster":  {[]func(*world){deselected, held, unregistering(hubv1.OriginDeletedReason)}, "all of it orphaned, free"},
		"SelectedWhileOthersAreHeld": {[]func(*world){held, unregistering("")}, ""},
		"GoesWithItsCluster":         {[]func(*world){unregistering(hubv1.OriginDeletedReason)}, "all of it orphaned, free"},
		"AnotherStays":               {[]func(*world){unregistering(hubv1.SameClusterReason)}, "all of it orphaned: a b"},
		"AnotherGetsIt":              {[]func(*world){unregistering(hubv1.SameClusterReason), func(w *world) { w.elsewhere = true }}, "all of it orphaned, free"},
		"DeselectedHere":             {[]func(*world){deselected, func(w *world) { w.elsewhere = true }}, "all of it: a b"},
		"Drained":                    {[]func(*world){drained}, "all of it, free"},
		"DrainedAndBroken":           {[]func(*world){drained, func(w *world) { w.broken = true }}, "all of it, free"},
		"OrphanedBySet":              {[]func(*world){deselected, func(w *world) { w.set.Spec.DeletionPolicy = hubv1.DeletionPolicyOrphan }}, "all of it orphaned, free"},
		"OrphanedByRegistration":     {[]func(*world){deselected, func(w *world) { w.reg.Spec.DeletionPolicy = hubv1.DeletionPolicyOrphan }}, "all of it orphaned, free"},
		"NothingThereYet":            {[]func(*world){deselected, func(w *world) { w.delivery.Status.Addons = nil }}, "all of it, unmarked"},
		"OneOnItsWayOut":             {[]func(*world){deselected, func(w *world) { w.delivery.Status.Addons, w.going = nil, true }}, "all of it, free"},
		"NotReportedYet":             {[]func(*world){deselected, func(w *world) { w.delivery.Status = hubv1.AddonDeliveryStatus{} }}, "all of it: a b"},
		"Asks":                       {[]func(*world){func(w *world) { w.asks("b", "r1") }}, "r1: b"},
		"AsksForTwo":                 {[]func(*world){func(w *world) { w.asks("a", "r2"); w.asks("b", "r1") }}, "r2 r1: a b"},
		"WasGranted":                 {[]func(*world){func(w *world) { w.asks("b", "r1"); w.delivery.Spec.Removals = []string{"r1"} }}, ""},
		"AsksForMore":                {[]func(*world){func(w *world) { w.asks("a", "r2"); w.asks("b", "r1"); w.delivery.Spec.Removals = []string{"r1"} }}, "r2: a"},
		"UsedUp":                     {[]func(*world){func(w *world) { w.delivery.Spec.Removals = []string{"r1"} }}, "takes back, free"},
		"UsedUpOrNotSeenYet":         {[]func(*world){func(w *world) { w.delivery.Spec.Removals = []string{"r1"}; w.delivery.Generation = 2 }}, ""},
		"DeselectedAndAsks":          {[]func(*world){deselected, func(w *world) { w.asks("b", "r1") }}, "all of it: a b"},
		"DeselectedWhileOneIsOnHold": {[]func(*world){deselected, func(w *world) { w.delivery.Status.Addons[1].State = hubv1.AddonRemoving }}, "all of it: a b"},
		"DeselectedWhileOneIsAsked":  {[]func(*world){deselected, func(w *world) { w.removing("b", "r1") }}, "all of it: a b"},
		"DeselectedWhileOneIsGoing":  {[]func(*world){deselected, func(w *world) { w.removing("b", "r1"); w.delivery.Spec.Removals = []string{"r1"} }}, "all of it: a"},
		"DeselectedWhileOneIsHeld":   {[]func(*world){deselected, func(w *world) { w.removing("b", "r1"); w.delivery.Status.Addons[1].State = hubv1.AddonHeld }}, "all of it: a b"},
		"DeselectedAfterARestore":    {[]func(*world){deselected, restored}, "all of it: a b"},
		"DeselectedWithoutOneThere":  {[]func(*world){deselected, func(w *world) { w.delivery.Status.Addons[0].AppliedGeneration = 0 }}, "all of it: b"},
		"DeselectedBeforeItWasSaid":  {[]func(*world){deselected, unsaid(0, ""), made}, "all of it: b a"},
		"DeselectedWhenSaidNothing":  {[]func(*world){deselected, func(w *world) { w.delivery.Status.Addons = nil }, made}, "all of it: a b"},
		"DeselectedMadeAgain":        {[]func(*world){deselected, unsaid(0, hubv1.AddonOrphaned), made}, "all of it: b a"},
		"DeselectedAndOrphaned":      {[]func(*world){deselected, unsaid(0, hubv1.AddonOrphaned)}, "all of it: b"},
		"GoingAndStillThere":         {[]func(*world){deselected, func(w *world) { w.removing("b", "r1"); w.delivery.Spec.Removals = []string{"r1"} }, made}, "all of it: a"},
		"DeselectedAndGoingAlready":  {[]func(*world){deselected, func(w *world) { w.delivery.DeletionTimestamp, w.delivery.Spec.Withdrawal = &now, "u" }}, ""},
		"DeselectedDeletedByHand":    {[]func(*world){deselected, func(w *world) { w.delivery.DeletionTimestamp = &now }}, "all of it: a b"},
		"DeletedByHand":              {[]func(*world){func(w *world) { w.delivery.DeletionTimestamp = &now }}, ""},
		"NoRegistrationAndAsksForIt": {[]func(*world){func(w *world) { w.reg = nil; w.asks("b", "r1") }}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for _, f := range tc.with {
				f(w)
			}
			if got := w.asked(t); got != tc.want {
				t.Errorf("asks for %q, want %q", got, tc.want)
			}
		})
	}
}

type world struct {
	set              *hubv1.AddonSet
	reg              *hubv1.ClusterRegistration
	delivery         *hubv1.AddonDelivery
	platform, broken bool
	// team governs the set's namespace; nil if none does.
	team *match.Team
	// stays is for how long the cluster still keeps what it has, if it is not selected.
	stays time.Duration
	// elsewhere is true if the set selects another registration of the cluster.
	elsewhere bool
	// made are the add-ons whose Flux objects are there, and going is true if there is one that is on its way out.
	made  []string
	going bool
}

func newWorld() *world {
	w := &world{set: &hubv1.AddonSet{}, reg: &hubv1.ClusterRegistration{}, delivery: &hubv1.AddonDelivery{}, platform: true}
	w.set.Namespace = "sets"
	w.set.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}
	w.reg.Namespace, w.reg.Name, w.reg.Labels = "tenants", "one", map[string]string{"tier": "prod"}
	w.delivery.UID, w.delivery.Generation, w.delivery.Status.ObservedGeneration = types.UID("u"), 1, 1
	w.delivery.Status.Conditions = []metav1.Condition{{Type: hubv1.ReadyCondition, Status: metav1.ConditionTrue}}
	for _, a := range []string{"a", "b"} {
		w.set.Spec.Addons = append(w.set.Spec.Addons, hubv1.Addon{Name: a})
		w.delivery.Status.Addons = append(w.delivery.Status.Addons, hubv1.AddonStatus{Name: a, State: hubv1.AddonReady, AppliedGeneration: 1})
	}
	return w
}

func (w *world) asks(addon, removal string) {
	for i := range w.delivery.Status.Addons {
		if a := &w.delivery.Status.Addons[i]; a.Name == addon {
			a.State, a.Removal = hubv1.AddonHeld, removal
		}
	}
}

// removing is where an add-on stands that was dropped: on Hold, or being uninstalled once its removal is granted.
func (w *world) removing(addon, removal string) {
	for i := range w.delivery.Status.Addons {
		if a := &w.delivery.Status.Addons[i]; a.Name == addon {
			a.State, a.Removal, a.AppliedGeneration = hubv1.AddonRemoving, removal, 0
		}
	}
}

// asked says in words what is asked for.
func (w *world) asked(t *testing.T) string {
	t.Helper()
	aim := match.Aim{Reach: match.Reach{Namespace: w.set.Namespace, Platform: w.platform, Team: w.team}}
	if !w.broken {
		var err error
		if aim.Selector, err = match.New(aim.Reach, &w.set.Spec); err != nil {
			t.Fatal(err)
		}
	}
	r := (&Reconciler{}).newRemovals(t.Context(), w.set, aim)
	r.stays = func(*hubv1.AddonDelivery) time.Duration { return w.stays }
	r.made = func(*hubv1.AddonDelivery) ([]string, bool, error) { return w.made, w.going, nil }
	r.elsewhere = func(*hubv1.ClusterRegistration) bool { return w.elsewhere }
	leaves, waits := r.of(w.delivery, w.reg)
	if waits != (r.wait > 0) || waits && (!leaves || len(r.wanted) > 0 && w.delivery.Status.Addons[1].Removal == "") {
		t.Errorf("it leaves: %t, it waits: %t, for %s, and asks for %v", leaves, waits, r.wait, r.wanted)
	}
	if len(r.wanted) == 0 {
		return ""
	}
	asked := r.wanted[0]
	what := "all of it"
	switch q := r.requests[asked.Digest]; {
	case q.empty:
		return what + ", unmarked"
	case q.grants != nil:
		what = cmp.Or(strings.Join(q.grants, " "), "takes back")
	case q.orphan:
		what = "all of it orphaned"
	}
	if len(asked.Addons) == 0 {
		return what + ", free"
	}
	return fmt.Sprintf("%s: %s", what, strings.Join(asked.Addons, " "))
}
