// SPDX-License-Identifier: Apache-2.0

// Package listing says what `chandler get` shows of each object: the columns, the cells, and whether something has failed there.
package listing

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/status"
)

// Row is one line of a table.
type Row struct {
	// Key tells the row from all others.
	Key string
	page.Row
	// Failed says that somebody has to look at it.
	Failed bool
	// Age is the column whose text grows by itself.
	Age int
}

// Told returns what a row says, without its age: a row that says the same again need not be shown again.
func (r *Row) Told() string {
	out := ""
	for i, cell := range r.Cells {
		if i != r.Age {
			out += cell + "\x00"
		}
	}
	return out
}

// Gone makes of a row that of an object that does not exist any more.
func (r *Row) Gone() {
	r.Cells[r.State] = "Deleted"
	r.Tone = page.Plain
}

const namespace = "Namespace"

// ClusterColumns are those of `chandler get clusters`.
var ClusterColumns = []page.Column{{Name: namespace}, {Name: "Name"}, {Name: "Ready"}, {Name: "Reachable"}, {Name: "Version"},
	{Name: "Addons"}, {Name: "Reason"}, {Name: "Age"}, {Name: "Provider", Wide: true}, {Name: "Endpoint", Wide: true},
	{Name: "Nodes", Wide: true}, {Name: "Credential", Wide: true}, {Name: "Paused-Until", Wide: true}, {Name: "Message"}}

// Cluster returns the row of a cluster.
func Cluster(reg *hubv1.ClusterRegistration, now time.Time) Row {
	ready, reason, message := summary(reg, reg.DeletionTimestamp)
	if r := status.Reason(reg, hubv1.SuspendedCondition); r != "" {
		reason = r // Ready keeps its value
	}
	nodes, addons, plain, failing := "", "", "", false
	if reg.Status.Nodes != nil {
		nodes = strconv.Itoa(int(*reg.Status.Nodes))
	}
	if c := reg.Status.AddonCounts; c != nil {
		addons, failing = cmp.Or(c.Summary, status.Fraction(c.Ready, c.Total)), c.Failed > 0
		if c.Ready == c.Total {
			plain = status.SomeReady(c.Ready, c.Total)
		}
	}
	credential, paused := "", ""
	if c := reg.Status.Credential; c != nil {
		credential = c.ExpiresIn
		if c.WorkloadIdentity != "" {
			credential = "none, " + c.WorkloadIdentity
		}
	}
	if p := reg.Spec.Pause; p != nil {
		if paused = "until ended"; p.Until != nil {
			paused = p.Until.UTC().Format(time.RFC3339)
		}
	}
	failed := failing || status.IsTrue(reg, hubv1.StalledCondition) ||
		isFalse(reg, hubv1.ReachableCondition, hubv1.NotProbedReason) ||
		isFalse(reg, hubv1.KubeConfigValidCondition, hubv1.KubeConfigNotReadyReason)
	return row(reg, failed, ready, plain, 2, 7, reg.Namespace, reg.Name, ready, found(reg, hubv1.ReachableCondition),
		reg.Status.KubernetesVersion, addons, reason, age(reg, now), reg.Status.Provider, reg.Status.Endpoint, nodes, credential, paused, message)
}

// SetColumns are those of `chandler get sets`.
var SetColumns = []page.Column{{Name: namespace}, {Name: "Name"}, {Name: "Ready"}, {Name: "Clusters"}, {Name: "Updated"}, {Name: "Failed"},
	{Name: "Offline"}, {Name: "Held"}, {Name: "Rollout"}, {Name: "Age"}, {Name: "Priority", Wide: true}, {Name: "Revision", Wide: true},
	{Name: "Message"}}

// Set returns the row of a set.
func Set(set *hubv1.AddonSet, now time.Time) Row {
	ready, _, message := summary(set, set.DeletionTimestamp)
	var counts [5]string
	plain, failed := "", status.IsTrue(set, hubv1.StalledCondition)
	if c := set.Status.Clusters; c != nil {
		counts = [...]string{c.ReadySummary, c.UpdatedSummary, number(c.Failed), number(c.Offline), number(c.Held)}
		failed = failed || c.Failed > 0
		if c.Updated == c.Matched {
			plain = status.DeliveredTo(c.UpdatedSummary)
		}
	}
	phase := ""
	if r := set.Status.Rollout; r != nil {
		phase = string(r.Phase)
		failed = failed || r.Phase == hubv1.RolloutFailed
	}
	return row(set, failed, ready, plain, 2, 9, set.Namespace, set.Name, ready, counts[0], counts[1], counts[2], counts[3], counts[4], phase,
		age(set, now), number(set.Spec.Priority), set.Status.Revision, message)
}

// AddonColumns are those of `chandler get addons`.
var AddonColumns = []page.Column{{Name: "Cluster"}, {Name: "Addon"}, {Name: "Set"}, {Name: "State"}, {Name: "Since"}, {Name: "Version"},
	{Name: "Reason", Wide: true}, {Name: "Object", Wide: true}, {Name: "Message"}}

// Addon is one add-on on one cluster, as JSON and YAML show it.
type Addon struct {
	// Cluster and AddonSet are namespace/name, and Delivery is the AddonDelivery in the namespace of the set.
	Cluster           string `json:"cluster"`
	AddonSet          string `json:"addonSet"`
	Delivery          string `json:"delivery"`
	hubv1.AddonStatus `json:",inline"`
}

// groups are the API groups of the Flux objects that an add-on can be.
var groups = map[string]string{"HelmRelease": "helm.toolkit.fluxcd.io", "Kustomization": "kustomize.toolkit.fluxcd.io"}

// FluxObject returns what kubectl calls the Flux object of an add-on; "" if it has none.
func (a *Addon) FluxObject() string {
	if a.Object == "" {
		return ""
	}
	return strings.ToLower(a.Kind) + "." + groups[a.Kind] + "/" + a.Object
}

// Addons returns the add-ons of a delivery: all, or the one with a name.
func Addons(d *hubv1.AddonDelivery, name string) []Addon {
	var out []Addon
	for _, a := range d.Status.Addons {
		if name == "" || a.Name == name {
			out = append(out, Addon{d.Spec.RegistrationRef.Key().String(), d.SetKey().String(), d.Name, a})
		}
	}
	return out
}

// calm are the states in which nobody has to look at an add-on, and nothing is awaited.
var calm = map[hubv1.AddonState]bool{hubv1.AddonReady: true, hubv1.AddonExcluded: true, hubv1.AddonLostTo: true}

// Row returns the row of an add-on.
func (a *Addon) Row(now time.Time) Row {
	since := ""
	if a.Since != nil {
		since = page.Since(&a.Since.Time, now)
	}
	object := a.Object
	if object != "" {
		object = a.Kind + "/" + object
	}
	r := Row{Key: a.Delivery + "/" + a.AddonSet + "/" + a.Name, Failed: a.HasFailed(), Age: 4}
	r.State, r.Cells = 3, cells(a.Cluster, a.Name, a.AddonSet, string(a.State), since, a.Version, a.Reason, object, a.Message)
	r.Tone = tone(r.Failed, calm[a.State])
	return r
}

// HasFailed says that somebody has to look at an add-on.
func (a *Addon) HasFailed() bool {
	return a.State == hubv1.AddonFailed || a.State == hubv1.AddonNotOwned
}

// row returns the row of an object. plain is the message that says no more than the other columns: it is left out.
func row(o metav1.Object, failed bool, ready, plain string, state, age int, text ...string) Row {
	r := Row{Key: o.GetNamespace() + "/" + o.GetName(), Failed: failed, Age: age}
	well := !failed && ready == string(metav1.ConditionTrue)
	r.Cells, r.State, r.Tone = cells(text...), state, tone(failed, ready == string(metav1.ConditionTrue))
	if last := len(r.Cells) - 1; well && r.Cells[last] == plain {
		r.Cells[last] = ""
	}
	return r
}

func tone(failed, calm bool) page.Tone {
	switch {
	case failed:
		return page.Bad
	case !calm:
		return page.Unsettled
	}
	return page.Plain
}

// cells makes texts that other people wrote fit one line each.
func cells(text ...string) []string {
	out := make([]string, len(text))
	for i, s := range text {
		out[i] = excerpt.Line(s)
	}
	return out
}

// summary returns what Ready says.
func summary(o status.Object, deleted *metav1.Time) (ready, reason, message string) {
	ready, reason, message = "Unknown", "", "the hub has not looked at it yet"
	if c := status.Find(o, hubv1.ReadyCondition); c != nil {
		ready, reason, message = string(c.Status), c.Reason, c.Message
	}
	if deleted != nil {
		reason = cmp.Or(reason, hubv1.TerminatingReason)
	}
	return ready, reason, message
}

func found(o status.Object, typ string) string {
	if c := status.Find(o, typ); c != nil {
		return string(c.Status)
	}
	return "Unknown"
}

// isFalse returns whether a condition is False for another reason than one.
func isFalse(o status.Object, typ, but string) bool {
	c := status.Find(o, typ)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason != but
}

func number(n int32) string { return strconv.Itoa(int(n)) }

func age(o metav1.Object, now time.Time) string {
	t := o.GetCreationTimestamp()
	if t.IsZero() {
		return "<unknown>"
	}
	return page.Since(&t.Time, now)
}
