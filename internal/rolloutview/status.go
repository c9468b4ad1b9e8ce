// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// Status says how the rollout of a set stands; clusters adds each cluster.
func Status(in *Input, clusters bool) (*page.Page, error) {
	p, is := &page.Page{}, in.state()
	p.Fields(in.header(&is))
	p.Notes(append(slices.Clone(in.Notes), in.doubts()...))
	p.Table("", []string{"WAVE", "TOTAL", "DONE", "RUNNING", "FAILED", "SKIPPED", "STATE"}, rowsOf(waves(&is), (*WaveDocument).row))
	failed := failedClusters(&is)
	p.Table("", []string{"FAILED", "WHY"}, rowsOf(failed, (*FailureDocument).row))
	if n := failures(&is); n > len(failed) {
		p.Line(fmt.Sprintf("and %d more: %s", n-len(failed), command(in.Set, "status", "--per-cluster")))
	}
	p.Table("", []string{"FOLLOWS", "PINNED", "UPSTREAM"}, follows(in.Set))
	if !clusters {
		return p, nil
	}
	list, err := in.clusterStates(&is)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		p.Text("\nThe set selects no cluster.\n")
	}
	p.Table("", []string{"CLUSTER", "WAVE", "REVISION", "STATE", "WHY"}, rowsOf(list, (*ClusterDocument).row))
	return p, nil
}

// rowsOf returns the rows of a table.
func rowsOf[T any](list []T, row func(*T) []string) (rows [][]string) {
	for i := range list {
		rows = append(rows, row(&list[i]))
	}
	return rows
}

func (w *WaveDocument) row() []string {
	row := []string{w.Name}
	for _, n := range []int32{w.Total, w.Done, w.Running, w.Failed, w.Skipped} {
		row = append(row, strconv.Itoa(int(n)))
	}
	return append(row, w.State)
}

func (f *FailureDocument) row() []string { return []string{f.Cluster, f.Why} }

func (c *ClusterDocument) row() []string {
	return []string{c.Cluster, page.Dash(c.Wave), page.Dash(c.Revision), c.State, c.Why}
}

// follows are the sources that the set pins, with what upstream has if that is something else.
func follows(set *hubv1.AddonSet) [][]string {
	var out [][]string
	for i := range set.Status.Sources {
		s := &set.Status.Sources[i]
		upstream := cmp.Or(s.Upstream, "not known: "+cmp.Or(s.Message, "Flux has not read it yet"))
		if s.Upstream == s.Pinned {
			upstream = "the same"
		}
		out = append(out, []string{excerpt.Line(s.What), page.Dash(s.Pinned), excerpt.Line(upstream)})
	}
	return out
}

// header describes the rollout.
func (in *Input) header(is *hubv1.RolloutStatus) []page.Field {
	fields := []page.Field{{Name: "AddonSet", Text: in.key()}}
	add := func(name, text string) {
		if text != "" {
			fields = append(fields, page.Field{Name: name, Text: excerpt.Line(text)})
		}
	}
	if is.Phase == "" {
		add("Phase", "none: the hub has not rolled out a revision of the set yet")
		return fields
	}
	add("Phase", string(is.Phase))
	add("Revision", is.Revision)
	if is.Started != nil {
		add("Started", ago(is.Started.Time, in.Now))
	}
	add("Present wave", is.Wave)
	if is.WaveReady != nil {
		add("Wave Ready", ago(is.WaveReady.Time, in.Now))
	}
	if c := in.Set.Status.Clusters; c != nil && len(is.Waves) == 0 && is.Phase != hubv1.RolloutWithdrawing {
		add("Clusters", fmt.Sprintf("all at once; %s have been Ready on the newest revision, %d failed, %d offline", c.UpdatedSummary,
			c.Failed, c.Offline))
	}
	if is.CompletedRevision != is.Revision {
		add("Completed", is.CompletedRevision)
	}
	add("Ahead", in.ahead(is))
	orders := rollout.Read(in.Set.Annotations)
	if reason, ok := orders.Expedited(is.Revision); ok {
		add("Expedited", cmp.Or(reason, "yes"))
	}
	add("Waits for", is.WaitingFor)
	for i, w := range in.ways(is) {
		fields = append(fields, page.Field{Name: []string{"To go on", "Or"}[min(i, 1)], Text: excerpt.Line(w.text), Command: w.command})
	}
	return fields
}

// ahead says that the set has a revision that its clusters do not get; "" if that is not so.
func (in *Input) ahead(is *hubv1.RolloutStatus) string {
	newest := in.Set.Status.Revision
	if is.Phase != hubv1.RolloutRolledBack && is.Phase != hubv1.RolloutRollingBack || newest == is.Revision {
		return ""
	}
	have := "have"
	if is.Phase == hubv1.RolloutRollingBack {
		have = "get"
	}
	why := "a user has undone (annotation " + hubv1.UndoAnnotation + ")"
	if !in.undone() {
		why = "failed, and is not rolled out again by itself"
	}
	return fmt.Sprintf("the set (Git) is ahead of its clusters: they %s %s, and not %s, which %s", have, is.Revision, newest, why)
}

// undone returns whether somebody has undone the newest revision.
func (in *Input) undone() bool {
	orders := rollout.Read(in.Set.Annotations)
	return orders.Undone(in.Set.Status.Revision) != ""
}

// ways returns what has the rollout go on.
func (in *Input) ways(is *hubv1.RolloutStatus) []way {
	set, this := in.Set, "--revision "+is.Revision
	commit := way{text: "a new revision in Git"}
	do := func(verb, rest string) way { return way{command(set, verb, rest), true} }
	switch is.Phase {
	case hubv1.RolloutWaitingForApproval:
		return []way{do("approve", this)}
	case hubv1.RolloutSoaking, hubv1.RolloutWaitingForWindow:
		return []way{do("expedite", this+" --reason TEXT")}
	case hubv1.RolloutPaused:
		return []way{{resume(set), true}}
	case hubv1.RolloutFailed:
		if !in.undoable() {
			return []way{commit, do("retry", this)}
		}
		return []way{commit, do("retry", this), do("undo", "")}
	case hubv1.RolloutRolledBack:
		if in.undone() {
			return []way{commit, do("redo", "")}
		}
		return []way{commit, do("retry", "--revision "+set.Status.Revision)}
	case hubv1.RolloutRollingBack:
		if in.undone() {
			return []way{do("redo", "")}
		}
	}
	return nil
}

// way is what has a rollout go on: a command, or something else that a person does.
type way struct {
	text    string
	command bool
}

// next are the texts of what has a rollout go on.
func (in *Input) next(is *hubv1.RolloutStatus) (out []string) {
	for _, w := range in.ways(is) {
		out = append(out, w.text)
	}
	return out
}

// doubts say why the status may not be about the set as it is.
func (in *Input) doubts() []string {
	set := in.Set
	switch c := status.Find(set, hubv1.StalledCondition); {
	case set.DeletionTimestamp != nil:
		return []string{"the set is being deleted, and withdrawn from its clusters"}
	case set.Status.ObservedGeneration != set.Generation:
		return []string{"the hub has not looked at the last change of the set yet; this is about the set as it was before"}
	case c != nil:
		return []string{"the set is not valid, so its last change is not rolled out: " + excerpt.Line(c.Message)}
	}
	return nil
}

// waves returns how each wave stands.
func waves(is *hubv1.RolloutStatus) (out []WaveDocument) {
	present := slices.IndexFunc(is.Waves, func(w hubv1.WaveStatus) bool { return w.Name == is.Wave })
	if present < 0 && complete(is) {
		present = len(is.Waves)
	}
	for i, w := range is.Waves {
		state := "to come"
		switch {
		case w.Passed, i < present:
			state = "passed"
		case i == present:
			state = "present"
		}
		out = append(out, WaveDocument{w.Name, state, w.Total, w.Done, w.Running, w.Failed, w.Skipped})
	}
	return out
}

// complete returns whether nothing is left to do in a rollout.
func complete(is *hubv1.RolloutStatus) bool {
	return is.Phase == hubv1.RolloutDone || is.Phase == hubv1.RolloutRolledBack
}

func failures(is *hubv1.RolloutStatus) (n int) {
	for _, w := range is.Waves {
		n += int(w.Failed)
	}
	return n
}

// clusterStates returns each cluster: wave by wave, in the order in which they start.
func (in *Input) clusterStates(is *hubv1.RolloutStatus) ([]ClusterDocument, error) {
	clusters, err := in.clusters()
	if err != nil {
		return nil, err
	}
	engine, err := in.engine(clusters)
	if err != nil {
		return nil, err
	}
	var out []ClusterDocument
	for _, w := range survey(engine, is.Revision) {
		for _, c := range w.Clusters {
			name := w.Name
			if engine.Strategy.AtOnce() {
				name = ""
			}
			out = append(out, ClusterDocument{c.Key.String(), name, c.Revision, c.State, excerpt.Line(c.Why)})
		}
	}
	return out, nil
}

// Reached says whether nobody has to wait for a rollout any longer, and why it cannot be completed without somebody.
func Reached(set *hubv1.AddonSet) (over bool, err error) {
	is := set.Status.Rollout
	if set.DeletionTimestamp != nil {
		return true, fmt.Errorf("AddonSet %s/%s is being deleted", set.Namespace, set.Name)
	}
	if is == nil || set.Status.ObservedGeneration != set.Generation {
		return false, nil
	}
	if c := status.Find(set, hubv1.StalledCondition); c != nil {
		return true, fmt.Errorf("AddonSet %s/%s is not valid: %s", set.Namespace, set.Name, excerpt.Line(c.Message))
	}
	orders := rollout.Read(set.Annotations)
	switch {
	case is.Revision != "" && !orders.Followed(set.Status.Revision, is):
		return false, nil // it was over before somebody gave an order
	case is.Phase == hubv1.RolloutDone:
		return true, nil
	case is.Phase == hubv1.RolloutFailed, is.Phase == hubv1.RolloutRolledBack:
		return true, fmt.Errorf("the rollout is %s, and waits for %s", is.Phase, excerpt.Line(is.WaitingFor))
	}
	return false, nil
}

// Progress says in one line how a rollout stands, for somebody who waits.
func Progress(set *hubv1.AddonSet) string {
	if set.Status.Rollout == nil || set.Status.ObservedGeneration != set.Generation {
		return "the hub has not looked at the set yet"
	}
	is := set.Status.Rollout
	text := string(is.Phase) + " " + is.Revision
	for _, w := range is.Waves {
		if w.Name == is.Wave {
			text += fmt.Sprintf(", wave %s: %d of %d done", w.Name, w.Done, w.Total)
			for _, n := range []struct {
				n    int32
				what string
			}{{w.Running, "running"}, {w.Failed, "failed"}, {w.Skipped, "skipped"}} {
				if n.n > 0 {
					text += fmt.Sprintf(", %d %s", n.n, n.what)
				}
			}
		}
	}
	if c := set.Status.Clusters; c != nil && len(is.Waves) == 0 {
		text += ", " + c.UpdatedSummary + " clusters updated"
	}
	if is.WaitingFor != "" {
		text += ", waits for " + is.WaitingFor
	}
	return excerpt.Line(text)
}
