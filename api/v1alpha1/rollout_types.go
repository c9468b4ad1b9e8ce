// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rollout says how a revision of a set reaches its clusters, the first one too. A cluster that was registered after a revision was
// completed gets that one at once.
//
// +kubebuilder:validation:XValidation:rule="!has(self.strategy) || self.strategy != 'AllAtOnce' || !has(self.waves)",message="strategy AllAtOnce has no waves: remove one of the two"
type Rollout struct {
	// strategy is Waves (the default), or AllAtOnce: every cluster gets a new revision at once.
	// +optional
	Strategy RolloutStrategy `json:"strategy,omitempty"`

	// waves get a new revision one after the other. The first wave that matches a cluster owns it. What no wave owns is
	// one more wave at the end, "rest". If there is none, a fleet of two clusters or more has the waves "first" (one cluster),
	// "quarter" (25 %) and "rest".
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Waves []Wave `json:"waves,omitempty"`

	// deadline is how long a cluster may take to be Ready on a new revision; 30 minutes by default. It counts from when
	// the hub gave the cluster the revision, also while the cluster does not answer. After it, the cluster has failed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration of more than nothing, such as 30m"
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// onFailure says what follows when more clusters of a wave fail than its maxFailures: Pause (the default) stops and
	// leaves each cluster as it is. Rollback also gives the clusters with the new revision the last completed one again.
	// +optional
	OnFailure RolloutFailurePolicy `json:"onFailure,omitempty"`

	// windows are the times at which clusters may get a new revision; at any time if there is none. A cluster that has
	// it already goes on when the window closes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Windows []RolloutWindow `json:"windows,omitempty"`

	// sources says what becomes of upstream news: a new version in the range of a chart, a new commit of a branch, another image
	// under an OCI tag, other content of a ConfigMap in variablesFrom. Pin (the default, but for strategy AllAtOnce) makes it a new
	// revision of the set, which goes through the waves; each revision holds the versions, commits and digests that it was made
	// with. Follow (the default of AllAtOnce) lets it reach all clusters at once, past every wave.
	// +optional
	Sources SourcesPolicy `json:"sources,omitempty"`
}

// SourcesPolicy says what becomes of upstream news.
//
// +kubebuilder:validation:Enum=Pin;Follow
type SourcesPolicy string

// The policies for sources.
const (
	// PinSources: upstream news is a new revision.
	PinSources SourcesPolicy = "Pin"
	// FollowSources: Flux follows upstream for every cluster.
	FollowSources SourcesPolicy = "Follow"
)

// FollowedSource is something that a set follows upstream, because its revisions pin it.
type FollowedSource struct {
	// kind is HelmChart, GitRepository, OCIRepository or ConfigMap.
	// +required
	Kind string `json:"kind"`
	// namespace and name of the object. But for a ConfigMap, the hub made it, and no cluster uses it.
	// +required
	Namespace string `json:"namespace"`
	// +required
	Name string `json:"name"`
	// what it follows, for people.
	// +optional
	What string `json:"what,omitempty"`
	// pinned is the version, commit or digest that the newest revision holds, or a hash of the ConfigMap's data.
	// +optional
	Pinned string `json:"pinned,omitempty"`
	// upstream is what there is now. If it differs, the next revision has it, when the rollout of this one is over.
	// +optional
	Upstream string `json:"upstream,omitempty"`
	// message says why upstream is not known.
	// +optional
	Message string `json:"message,omitempty"`
}

// RolloutStrategy is how a new revision reaches the clusters.
//
// +kubebuilder:validation:Enum=Waves;AllAtOnce
type RolloutStrategy string

// The strategies.
const (
	// WavesStrategy: wave by wave.
	WavesStrategy RolloutStrategy = "Waves"
	// AllAtOnceStrategy: all clusters at once.
	AllAtOnceStrategy RolloutStrategy = "AllAtOnce"
)

// RolloutFailurePolicy says what follows when a rollout has failed.
//
// +kubebuilder:validation:Enum=Pause;Rollback
type RolloutFailurePolicy string

// The failure policies.
const (
	// PauseOnFailure: no further cluster gets the revision.
	PauseOnFailure RolloutFailurePolicy = "Pause"
	// RollbackOnFailure: the clusters that have the revision get the last completed one again.
	RollbackOnFailure RolloutFailurePolicy = "Rollback"
)

// ApprovalMode says who lets the next wave begin.
//
// +kubebuilder:validation:Enum=Automatic;Manual
type ApprovalMode string

// The approval modes.
const (
	// AutomaticApproval: no approval is needed.
	AutomaticApproval ApprovalMode = "Automatic"
	// ManualApproval: a person, with the annotation chandler.dev/approve, or `chandler rollout approve`.
	ManualApproval ApprovalMode = "Manual"
)

// Wave is some of a set's clusters, which get a new revision together.
type Wave struct {
	// name of the wave.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'rest'",message="rest is the name of the last wave, which has all clusters that no other wave owns"
	Name string `json:"name"`

	// clusterSelector selects ClusterRegistrations by their labels. Without it, the wave has every cluster that no earlier
	// wave owns.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// size limits the wave to so many of those clusters, a number or a percentage, rounded up. Which ones is decided by a
	// hash of cluster and set: they are the same every time, and others for each set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == string || self >= 0 && self <= 2147483647",message="must be a number such as 5, or a percentage such as 25%"
	Size *intstr.IntOrString `json:"size,omitempty"`

	// maxConcurrency is how many clusters of the wave may work on the new revision at once, a number or a percentage of those
	// that take part, rounded up, at least 1; by default the whole wave.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == string || self >= 0 && self <= 2147483647",message="must be a number such as 5, or a percentage such as 25%"
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// maxFailures is how many clusters of the wave may fail, a number or a percentage of those that take part, rounded down; 0
	// by default. One more stops the rollout. A cluster takes part if it was healthy before and the revision changes something
	// there.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == string || self >= 0 && self <= 2147483647",message="must be a number such as 5, or a percentage such as 25%"
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`

	// soak is how long the next wave waits after the last cluster of this one was Ready on the revision, by the hub's clock.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 30m"
	Soak *metav1.Duration `json:"soak,omitempty"`

	// approval is Automatic (the default), or Manual: the next wave waits for a person.
	// +optional
	Approval ApprovalMode `json:"approval,omitempty"`
}

// RolloutWindow is a time that comes again and again.
type RolloutWindow struct {
	// schedule is when the window opens: five fields, as in a CronJob.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Schedule string `json:"schedule"`
	// duration is how long it stays open.
	// +required
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration of more than nothing, such as 30m"
	Duration metav1.Duration `json:"duration"`
	// timeZone of the schedule, such as Europe/Berlin; UTC by default.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	TimeZone string `json:"timeZone,omitempty"`
}

// RolloutPause holds back new revisions of a set. Nothing is suspended: Flux goes on with what each cluster has.
type RolloutPause struct {
	// until is when it ends; without it, when it is removed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self > timestamp('1970-01-01T00:00:00Z')",message="must be a time such as 2026-12-01T00:00:00Z"
	Until *metav1.Time `json:"until,omitempty"`
	// reason, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// RolloutPhase is the state of a rollout.
type RolloutPhase string

// The phases.
const (
	// RolloutProgressing: clusters of a wave are getting the revision.
	RolloutProgressing RolloutPhase = "Progressing"
	// RolloutSoaking: a wave is Ready, and its soak runs.
	RolloutSoaking RolloutPhase = "Soaking"
	// RolloutWaitingForApproval: a wave is Ready, and a person has to let the next one begin.
	RolloutWaitingForApproval RolloutPhase = "WaitingForApproval"
	// RolloutWaitingForWindow: clusters are to get the revision when a window opens.
	RolloutWaitingForWindow RolloutPhase = "WaitingForWindow"
	// RolloutPaused: spec.pause holds it.
	RolloutPaused RolloutPhase = "Paused"
	// RolloutFailed: too many clusters failed, and no cluster gets the revision any more.
	RolloutFailed RolloutPhase = "Failed"
	// RolloutRollingBack: clusters with a revision that failed, or that a user has undone, get the older one again.
	RolloutRollingBack RolloutPhase = "RollingBack"
	// RolloutRolledBack: no cluster has the newest revision, and it is not rolled out again.
	RolloutRolledBack RolloutPhase = "RolledBack"
	// RolloutDone: every wave has passed.
	RolloutDone RolloutPhase = "Complete"
	// RolloutWithdrawing: the set is being deleted.
	RolloutWithdrawing RolloutPhase = "Withdrawing"
)

// RolloutStatus is the state of a rollout. What it says of the past decides what comes next, also after a restart of the
// hub.
type RolloutStatus struct {
	// revision that is rolled out: the newest one, or an older one during a rollback.
	// +optional
	Revision string `json:"revision,omitempty"`
	// phase of the rollout.
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`
	// wave is the name of the present wave.
	// +optional
	Wave string `json:"wave,omitempty"`
	// started is when the rollout of this revision began.
	// +optional
	Started *metav1.Time `json:"started,omitempty"`
	// waveReady is when the hub saw that the last cluster of the present wave was Ready on the revision. Its soak counts
	// from here.
	// +optional
	WaveReady *metav1.Time `json:"waveReady,omitempty"`
	// waitingFor says what the rollout waits for.
	// +optional
	WaitingFor string `json:"waitingFor,omitempty"`
	// completedRevision is the last revision that was Ready on every cluster that took part in its rollout: all that were not skipped,
	// and one at least.
	// +optional
	CompletedRevision string `json:"completedRevision,omitempty"`
	// completedTime is when that was. A cluster that is registered later gets that revision at once, and waits for no wave.
	// +optional
	CompletedTime *metav1.Time `json:"completedTime,omitempty"`
	// completedBefore are the revisions that were completed before it, the last one first. `chandler rollout undo` goes back to the
	// first of them that still exists and has not failed since.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	CompletedBefore []string `json:"completedBefore,omitempty"`
	// failedRevisions are those that failed. They are rolled out again only if a user says so. One that still exists is not
	// forgotten; of the others the last 5 are kept.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	FailedRevisions []string `json:"failedRevisions,omitempty"`
	// retried is the annotation chandler.dev/retry that the hub has followed last.
	// +optional
	Retried string `json:"retried,omitempty"`
	// waves counts the clusters of each wave.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=17
	Waves []WaveStatus `json:"waves,omitempty"`
	// failed names some of the clusters that failed, and why.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Failed []string `json:"failed,omitempty"`
}

// WaveStatus counts the clusters of a wave.
type WaveStatus struct {
	// name of the wave.
	// +required
	Name string `json:"name"`
	// passed is true if the waves after it need not wait for it any more. Its clusters that were skipped may still get the
	// revision.
	// +optional
	Passed bool `json:"passed,omitempty"`
	// total is how many clusters it has.
	// +optional
	Total int32 `json:"total"`
	// done is how many have been Ready on the revision.
	// +optional
	Done int32 `json:"done"`
	// running is how many have the revision and are not Ready on it yet.
	// +optional
	Running int32 `json:"running"`
	// failed is how many were healthy before and failed on the revision.
	// +optional
	Failed int32 `json:"failed"`
	// skipped is how many the rollout does not wait for: they do not answer, are paused or asleep, have no nodes, wait for the removal
	// guard, or were not healthy before.
	// +optional
	Skipped int32 `json:"skipped"`
}

// DeliveryStart is how a cluster came to the revision that it has.
type DeliveryStart struct {
	// time at which the hub gave it the revision, by the hub's clock.
	// +required
	// +kubebuilder:validation:XValidation:rule="self > timestamp('1970-01-01T00:00:00Z')",message="must be a time such as 2026-12-01T00:00:00Z"
	Time metav1.Time `json:"time"`
	// healthy says that every add-on was Ready, and none had failed, on the revision before. Only such a cluster can
	// fail a rollout.
	// +optional
	Healthy bool `json:"healthy,omitempty"`
	// withoutNodes says that the cluster was known to have no node before. If it is false, a cluster without nodes is not
	// excused: the revision may have taken them away.
	// +optional
	WithoutNodes bool `json:"withoutNodes,omitempty"`
}

// UnmarshalJSON also reads what a hub without waves has stored: status.rollout was the phase alone. The hub that leads
// writes it anew when it starts.
func (r *RolloutStatus) UnmarshalJSON(raw []byte) error {
	var phase RolloutPhase
	if json.Unmarshal(raw, &phase) == nil {
		*r = RolloutStatus{Phase: phase}
		return nil
	}
	type plain RolloutStatus
	return json.Unmarshal(raw, (*plain)(r))
}
