// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/pin"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// Order is what somebody wants of a rollout.
type Order struct {
	// Patch is a JSON merge patch of the set; nil if nothing is to change.
	Patch map[string]any
	// Says is what follows, in one line.
	Says string
	// Notes are what else there is to know.
	Notes []string
}

// Print writes what follows.
func (o *Order) Print(w io.Writer) {
	fmt.Fprintln(w, o.Says)
	for _, note := range o.Notes {
		fmt.Fprintln(w, "Note: "+note)
	}
}

// annotate returns an order that sets an annotation, or removes it if the value is nil. The patch applies to the set as it was read:
// an order that somebody else has given meanwhile is not overwritten.
func (in *Input) annotate(key string, value any, format string, args ...any) *Order {
	metadata := map[string]any{"annotations": map[string]any{key: value}}
	if in.Set.ResourceVersion != "" {
		metadata["resourceVersion"] = in.Set.ResourceVersion
	}
	o := &Order{Patch: map[string]any{"metadata": metadata}}
	o.Says = in.says(format, args...)
	return o
}

func (in *Input) says(format string, args ...any) string {
	return excerpt.Line("AddonSet " + in.key() + ": " + fmt.Sprintf(format, args...))
}

func (in *Input) refuse(format string, args ...any) error {
	return errors.New(in.says(format, args...))
}

// present returns the state of a rollout that somebody can give orders to. seen is the revision that he means; "" for the present one.
func (in *Input) present(seen string) (hubv1.RolloutStatus, *rollout.Strategy, error) {
	is := in.state()
	if in.Set.DeletionTimestamp != nil {
		return is, nil, in.refuse("the set is being deleted")
	}
	if is.Phase == "" || is.Revision == "" {
		return is, nil, in.refuse("the hub has not rolled out a revision of the set yet")
	}
	if seen != "" && seen != is.Revision {
		return is, nil, in.refuse("revision %s is rolled out now, and not %s; nothing is changed. See %s", is.Revision, seen,
			command(in.Set, "status", ""))
	}
	strategy, err := rollout.New(in.Set.Spec.Rollout)
	if err != nil {
		return is, nil, in.refuse("%s", err)
	}
	if c := in.Set.Status.Clusters; c != nil {
		strategy = strategy.For(int(c.Matched), in.Set.Status.Rollout)
	}
	return is, strategy, nil
}

// held says what else holds a rollout that an order sets going.
func (in *Input) held() string {
	if p := in.Set.Spec.Pause; p != nil && (p.Until == nil || in.Now.Before(p.Until.Time)) {
		return "; the pause still holds it (" + pauseText(p) + ")"
	}
	return ""
}

// Approve lets the wave after a given one begin; by default the one that waits for it.
func Approve(in *Input, wave, seen string) (*Order, error) {
	is, strategy, err := in.present(seen)
	if err != nil {
		return nil, err
	}
	waits := is.Phase == hubv1.RolloutWaitingForApproval
	switch {
	case complete(&is) || is.Phase == hubv1.RolloutFailed || is.Phase == hubv1.RolloutRollingBack:
		return nil, in.refuse("nothing waits for approval: the rollout of %s is %s", is.Revision, is.Phase)
	case wave == "" && !waits:
		return nil, in.refuse("nothing waits for approval: the rollout of %s is %s, in wave %s; name a wave to approve it before it is done",
			is.Revision, is.Phase, is.Wave)
	}
	wave = cmp.Or(wave, is.Wave)
	all := strategy.Waves()
	at := slices.IndexFunc(all, func(w rollout.Wave) bool { return w.Name == wave })
	orders := rollout.Read(in.Set.Annotations)
	switch now := slices.IndexFunc(all, func(w rollout.Wave) bool { return w.Name == is.Wave }); {
	case at < 0:
		return nil, in.refuse("there is no wave %q; there are %s", wave, names(all))
	case !all[at].Manual:
		return nil, in.refuse("wave %s needs no approval: it has no approval: Manual", wave)
	case at < now:
		return nil, in.refuse("wave %s has passed already; the present wave is %s", wave, is.Wave)
	case orders.Approves(is.Revision, wave):
		return &Order{Says: in.says("wave %s is approved already for revision %s", wave, is.Revision)}, nil
	}
	values := []string{rollout.Approval(is.Revision, wave)}
	for text := range strings.SplitSeq(in.Set.Annotations[hubv1.ApproveAnnotation], ",") {
		if of, _, ok := strings.Cut(strings.TrimSpace(text), "/"); ok && of == is.Revision {
			values = append(values, strings.TrimSpace(text))
		}
	}
	then := "the rollout is complete"
	if at+1 < len(all) {
		then = "wave " + all[at+1].Name + " begins"
	}
	if !waits || wave != is.Wave {
		then += " when wave " + wave + " is done"
	}
	return in.annotate(hubv1.ApproveAnnotation, strings.Join(values, ","), "wave %s is approved for revision %s; %s%s", wave, is.Revision,
		then, in.held()), nil
}

func names(waves []rollout.Wave) string {
	out := make([]string, len(waves))
	for i, w := range waves {
		out[i] = w.Name
	}
	return strings.Join(out, ", ")
}

// Expedite ends the soaks of the present revision, and lets it out of the windows.
func Expedite(in *Input, reason, seen string) (*Order, error) {
	is, strategy, err := in.present(seen)
	if err != nil {
		return nil, err
	}
	reason = excerpt.Line(reason)
	windows, _, _ := strategy.Windows(in.Now)
	switch {
	case strategy.AtOnce():
		return nil, in.refuse("there is nothing to expedite: every cluster gets a revision at once")
	case is.Phase == hubv1.RolloutFailed:
		return nil, in.refuse("revision %s failed; what goes on is %s", is.Revision, command(in.Set, "retry", ""))
	case is.Phase == hubv1.RolloutRollingBack, is.Phase == hubv1.RolloutRolledBack:
		return nil, in.refuse("there is nothing to expedite: going back waits for no soak and no window")
	case is.Phase == hubv1.RolloutDone && windows == 0:
		return nil, in.refuse("there is nothing to expedite: the rollout of %s is complete", is.Revision)
	}
	then := "it waits for no soak and no window any more"
	if is.Phase == hubv1.RolloutDone {
		then = "clusters that it has skipped get it outside of the windows too"
	}
	value := strings.TrimSuffix(rollout.Expedition(is.Revision, reason), ": ")
	order := in.annotate(hubv1.ExpediteAnnotation, value, "revision %s is expedited; %s%s", is.Revision, then, in.held())
	orders, all := rollout.Read(in.Set.Annotations), strategy.Waves()
	for _, w := range all[max(0, slices.IndexFunc(all, func(w rollout.Wave) bool { return w.Name == is.Wave })):] {
		if w.Manual && is.Phase != hubv1.RolloutDone && !orders.Approves(is.Revision, w.Name) {
			order.Notes = append(order.Notes, fmt.Sprintf("wave %s still waits for approval: %s", w.Name, command(in.Set, "approve", w.Name)))
		}
	}
	return order, nil
}

// Retry has the newest revision rolled out again, which has failed.
func Retry(in *Input, seen string) (*Order, error) {
	is, strategy, err := in.present("")
	if err != nil {
		return nil, err
	}
	newest := in.Set.Status.Revision
	switch {
	case seen != "" && seen != newest:
		return nil, in.refuse("the newest revision is %s now, and not %s; nothing is changed", newest, seen)
	case !rollout.Listed(newest, is.FailedRevisions):
		return nil, in.refuse("revision %s has not failed: the rollout of %s is %s", newest, is.Revision, is.Phase)
	case in.undone():
		return nil, in.refuse("revision %s is undone: %s first", newest, command(in.Set, "redo", ""))
	}
	then := "it begins again with wave " + strategy.Waves()[0].Name
	if strategy.AtOnce() {
		then = "every cluster gets it at once"
	}
	return in.annotate(hubv1.RetryAnnotation, rollout.Retrial(newest, in.Now.UTC().Format(time.RFC3339)), "revision %s is tried again; %s%s",
		newest, then, in.held()), nil
}

// Undo gives the clusters an older revision, by its name or number; by default the last one that was completed.
func Undo(in *Input, to string, now bool) (*Order, error) {
	is, strategy, err := in.present("")
	if err != nil {
		return nil, err
	}
	newest := in.Set.Status.Revision
	target, err := in.target(to)
	if err != nil {
		return nil, err
	}
	orders := rollout.Read(in.Set.Annotations)
	value := rollout.Undoing(newest, target.Name, now)
	if in.Set.Annotations[hubv1.UndoAnnotation] == value && orders.Undone(newest) != "" {
		return &Order{Says: in.says("revision %s is undone already, to %s", newest, target.Name)}, nil
	}
	how := "wave by wave"
	if now || strategy.AtOnce() {
		how = "all at once"
	}
	order := in.annotate(hubv1.UndoAnnotation, value, "the clusters get revision %s (number %d) again, %s; this holds until the set changes%s",
		target.Name, target.Revision, how, in.held())
	order.Notes = append(order.Notes, fmt.Sprintf("the set itself (Git) stays ahead, with revision %s: revert it there, or take the undo "+
		"off by %s", newest, command(in.Set, "redo", "")))
	if rollout.Listed(target.Name, is.FailedRevisions) {
		order.Notes = append(order.Notes, fmt.Sprintf("revision %s has failed before", target.Name))
	}
	if from := in.find(newest); from != nil {
		if charts, err := pin.Downgrades(from.Data.Raw, target.Data.Raw); err == nil && len(charts) > 0 {
			order.Notes = append(order.Notes, "Helm takes back neither CRDs nor what a chart has done to its data: "+status.List(charts, 3))
		}
	}
	return order, nil
}

// target returns the revision that an undo goes to.
func (in *Input) target(to string) (*appsv1.ControllerRevision, error) {
	newest := in.Set.Status.Revision
	if to == "" {
		return in.before(newest)
	}
	at := slices.IndexFunc(in.Revisions, func(r appsv1.ControllerRevision) bool {
		return r.Name == to || strconv.FormatInt(r.Revision, 10) == to
	})
	switch {
	case at < 0:
		return nil, in.refuse("there is no revision %q; by number and name the set has: %s", to, cmp.Or(in.known(""), "none"))
	case identity.SameContent(in.Revisions[at].Name, newest):
		return nil, in.refuse("revision %s is what the set has; the clusters get it by %s", in.Revisions[at].Name, command(in.Set, "redo", ""))
	}
	return &in.Revisions[at], nil
}

// before returns the revision to go back to if nobody names one: the last one that was Ready on every cluster that took part in its
// rollout. It never is one that has failed since, or was completed nowhere.
func (in *Input) before(newest string) (*appsv1.ControllerRevision, error) {
	for _, name := range in.completed(newest) {
		if r := in.find(name); r != nil {
			return r, nil
		}
	}
	const none = "no other revision that still exists was completed, so there is none to go back to"
	if others := in.known(newest); others != "" {
		return nil, in.refuse(none+"; name one by --to: %s", others)
	}
	return nil, in.refuse(none)
}

// completed returns the revisions that an undo may go back to by itself, the best one first, whether they still exist or not.
func (in *Input) completed(newest string) []string {
	is := in.state()
	return slices.DeleteFunc(append([]string{is.CompletedRevision}, is.CompletedBefore...), func(name string) bool {
		return name == "" || identity.SameContent(name, newest) || rollout.Listed(name, is.FailedRevisions)
	})
}

// undoable returns whether an undo that names no revision has one to go back to. Without the revisions, what the set's status says counts.
func (in *Input) undoable() bool {
	completed := in.completed(in.Set.Status.Revision)
	return slices.ContainsFunc(completed, func(name string) bool { return len(in.Revisions) == 0 || in.find(name) != nil })
}

// known lists the revisions, but for one and those of the same content.
func (in *Input) known(but string) string {
	var out []string
	for i := range in.Revisions {
		if r := &in.Revisions[i]; !identity.SameContent(r.Name, but) {
			out = append(out, fmt.Sprintf("%d (%s)", r.Revision, r.Name))
		}
	}
	return strings.Join(out, ", ")
}

// Redo takes an undo back.
func Redo(in *Input) (*Order, error) {
	newest := in.Set.Status.Revision
	if in.Set.Annotations[hubv1.UndoAnnotation] == "" {
		if in.Set.Spec.Pause != nil {
			return nil, in.refuse("nothing is undone, but the set is paused: %s", resume(in.Set))
		}
		if is := in.state(); rollout.Listed(newest, is.FailedRevisions) {
			return nil, in.refuse("nothing is undone: revision %s failed, and %s rolls it out again", newest, command(in.Set, "retry", ""))
		}
		return nil, in.refuse("nothing is undone")
	}
	if !in.undone() {
		return in.annotate(hubv1.UndoAnnotation, nil, "the undo is taken off; it was about another revision, so nothing follows"), nil
	}
	order := in.annotate(hubv1.UndoAnnotation, nil, "the undo is taken off; revision %s is rolled out again%s", newest, in.held())
	if is := in.state(); rollout.Listed(newest, is.FailedRevisions) {
		order.Says = in.says("the undo is taken off; revision %s failed before, so it still waits for %s", newest, command(in.Set, "retry", ""))
	}
	return order, nil
}
