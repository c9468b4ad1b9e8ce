// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
)

// StatusDocument is what `chandler rollout status -o json` writes.
type StatusDocument struct {
	Set       string                 `json:"set" about:"namespace/name of the AddonSet"`
	Phase     hubv1.RolloutPhase     `json:"phase" about:"phase of the rollout; empty if there was none yet"`
	Revision  string                 `json:"revision,omitempty" about:"revision that is rolled out"`
	Newest    string                 `json:"newest,omitempty" about:"revision of the set"`
	Completed string                 `json:"completed,omitempty" about:"last revision that reached every wave"`
	Started   *metav1.Time           `json:"started,omitempty"`
	Wave      string                 `json:"wave,omitempty" about:"current wave"`
	WaveReady *metav1.Time           `json:"waveReady,omitempty" about:"when the current wave became Ready"`
	WaitsFor  string                 `json:"waitsFor,omitempty"`
	Next      []string               `json:"next,omitempty" about:"what makes it go on: commands, or a new revision in Git"`
	Notes     []string               `json:"notes,omitempty"`
	Waves     []WaveDocument         `json:"waves,omitempty"`
	Failed    []FailureDocument      `json:"failed,omitempty" about:"some of the clusters that failed"`
	Sources   []hubv1.FollowedSource `json:"sources,omitempty" about:"sources that the set pins"`
	Clusters  []ClusterDocument      `json:"clusters,omitempty" about:"with --per-cluster"`
}

// WaveDocument is a wave.
type WaveDocument struct {
	Name    string `json:"name"`
	State   string `json:"state" about:"passed, present or to come"`
	Total   int32  `json:"total"`
	Done    int32  `json:"done"`
	Running int32  `json:"running"`
	Failed  int32  `json:"failed"`
	Skipped int32  `json:"skipped"`
}

// FailureDocument is a cluster that failed.
type FailureDocument struct {
	Cluster string `json:"cluster" about:"namespace/name"`
	Why     string `json:"why,omitempty"`
}

// ClusterDocument is a cluster of a rollout.
type ClusterDocument struct {
	Cluster  string `json:"cluster" about:"namespace/name"`
	Wave     string `json:"wave,omitempty" about:"empty if all clusters get a revision at once"`
	Revision string `json:"revision,omitempty"`
	State    string `json:"state"`
	Why      string `json:"why,omitempty"`
}

// StatusOf is Status for a program.
func StatusOf(in *Input, clusters bool) (*StatusDocument, error) {
	is := in.state()
	d := &StatusDocument{Set: in.key(), Phase: is.Phase, Revision: is.Revision, Newest: in.Set.Status.Revision,
		Completed: is.CompletedRevision,
		Started:   is.Started, Wave: is.Wave, WaveReady: is.WaveReady, WaitsFor: is.WaitingFor, Next: in.next(&is),
		Notes: append(append([]string{}, in.Notes...), in.doubts()...), Sources: in.Set.Status.Sources}
	d.Waves, d.Failed = waves(&is), failedClusters(&is)
	if !clusters {
		return d, nil
	}
	var err error
	d.Clusters, err = in.clusterStates(&is)
	return d, err
}

// failedClusters returns some of the clusters that failed, and why.
func failedClusters(is *hubv1.RolloutStatus) (out []FailureDocument) {
	for _, text := range is.Failed {
		name, why, _ := strings.Cut(text, " (")
		out = append(out, FailureDocument{name, excerpt.Line(strings.TrimSuffix(why, ")"))})
	}
	return out
}

// HistoryDocument is what `chandler rollout history -o json` writes.
type HistoryDocument struct {
	Set       string             `json:"set" about:"namespace/name of the AddonSet"`
	Revisions []RevisionDocument `json:"revisions" about:"the oldest first"`
	Notes     []string           `json:"notes,omitempty"`
}

// RevisionDocument is a revision.
type RevisionDocument struct {
	Name     string       `json:"name"`
	Number   int64        `json:"number,omitempty" about:"missing if the revision does not exist any more"`
	Created  *metav1.Time `json:"created,omitempty"`
	Clusters int          `json:"clusters" about:"how many clusters have it"`
	Ready    int          `json:"ready" about:"on how many of them it was Ready"`
	Marks    []string     `json:"marks,omitempty" about:"such as newest, completed and failed"`
}

// PlanDocument is what `chandler rollout plan -o json` writes of each set.
type PlanDocument struct {
	Set      string        `json:"set" about:"namespace/name of the AddonSet"`
	Strategy []page.Field  `json:"strategy,omitempty" about:"what the head of the text says"`
	Waves    []PlannedWave `json:"waves,omitempty" about:"missing if all clusters get a revision at once"`
	Clusters []Start       `json:"clusters"`
	Notes    []string      `json:"notes,omitempty"`
}

// PlannedWave is a wave that is to come.
type PlannedWave struct {
	Name        string `json:"name"`
	Clusters    int    `json:"clusters"`
	AtOnce      int    `json:"atOnce" about:"how many clusters may get it at the same time"`
	MayFail     int    `json:"mayFail" about:"how many clusters may fail"`
	SoakSeconds int    `json:"soakSeconds,omitempty"`
	Manual      bool   `json:"manual,omitempty" about:"the next wave waits for approval"`
}

// Start says when a cluster gets the next revision.
type Start struct {
	Cluster string `json:"cluster" about:"namespace/name"`
	Wave    string `json:"wave,omitempty"`
	Starts  string `json:"starts,omitempty"`
}

// HeldSet is a set with held removals, as `chandler removals list -o json` writes it.
type HeldSet struct {
	Set      string       `json:"set" about:"namespace/name of the AddonSet"`
	Clusters int32        `json:"clusters" about:"how many clusters would lose something"`
	Since    *metav1.Time `json:"since,omitempty"`
	Hash     string       `json:"hash,omitempty" about:"for chandler removals approve --hash"`
	Sample   []string     `json:"sample,omitempty" about:"some of the clusters, with their add-ons"`
	Exact    *bool        `json:"exact,omitempty" about:"of one set: whether the removals are exactly what the hash is of"`
	Removals []HeldLoss   `json:"removals,omitempty" about:"of one set"`
	Notes    []string     `json:"notes,omitempty"`
}

// HeldLoss is an add-on that would leave a cluster, or be reinstalled.
type HeldLoss struct {
	Cluster string `json:"cluster" about:"namespace/name"`
	Addon   string `json:"addon"`
	Version string `json:"version,omitempty"`
	WouldBe string `json:"wouldBe"`
}

// HeldOf returns what the removal guard of a set holds, without a look at its clusters.
func HeldOf(set *hubv1.AddonSet) HeldSet {
	d := HeldSet{Set: set.Namespace + "/" + set.Name}
	if held := set.Status.HeldRemovals; held != nil {
		d.Clusters, d.Since, d.Hash, d.Sample = held.Count, held.Since, held.Hash, held.Sample
	}
	return d
}

// HeldDocument is HeldPage for a program.
func HeldDocument(in *Input) HeldSet {
	d := HeldOf(in.Set)
	if in.Set.Status.HeldRemovals == nil {
		return d
	}
	list, exact := Held(in)
	d.Exact, d.Notes = &exact, in.Notes
	for _, h := range list {
		for i := range h.Losses {
			a := &h.Losses[i]
			d.Removals = append(d.Removals, HeldLoss{h.Delivery.Spec.RegistrationRef.Key().String(), a.Name, a.Version, fate(&h, a)})
		}
	}
	return d
}
