// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
	rules "github.com/chandler-hub/chandler/internal/team"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// tokenTime is for how long a token is good that a cluster of the model gives: less than is asked for, so that it is renewed
// often, and expires while a cluster is silent.
const tokenTime = 2 * time.Hour

// team is a Team as the platform keeps it in Git. It has one hub namespace, and one namespace on each of its clusters.
type team struct {
	name, hub, home string
	selector        map[string]any
	// deleted is true when the platform has removed it.
	deleted bool
	// lost is since when it has not been meant to have a cluster.
	lost map[*cluster]time.Time
}

func (t *team) key() apiserver.Key { return keyOf("Team", "flux-system", t.name) }

// rightsOf returns the AddonSet that the hub keeps for a Team.
func (w *World) rightsOf(t *team) *set { return w.sets[rules.SetName(t.name)] }

// teamOf returns the Team whose hub namespace this is or was; nil if there is none.
func (w *World) teamOf(namespace string) *team {
	for _, t := range w.teams { // a namespace is the hub namespace of one
		if t.hub == namespace {
			return t
		}
	}
	return nil
}

// scope returns what the sets of a namespace compete with: those of a Team only with each other, all others among themselves.
func (w *World) scope(namespace string) string {
	if w.teamOf(namespace) != nil {
		return namespace
	}
	return ""
}

// actor names who reaches a cluster: a Team, or the cluster's admin.
func (t *team) actor() string {
	if t == nil {
		return "its admin"
	}
	return "Team " + t.name
}

// has returns whether a Team has a cluster with these labels.
func (t *team) has(labels map[string]string) bool {
	return !t.deleted && labels != nil && matches(t.selector, labels)
}

// writeTeam makes a Team, or changes the clusters that it has.
func (w *World) writeTeam(name, hub string, selector map[string]any) {
	t := w.teams[name]
	if t == nil {
		t = &team{name: name, hub: hub, home: name + "-apps", lost: map[*cluster]time.Time{}}
		w.teams[name] = t
		w.make(apiserver.Key{Kind: "Namespace", Name: hub}, apiserver.Object{"apiVersion": "v1"})
		w.make(apiserver.Key{Group: sourceGroup, Kind: "GitRepository", Namespace: hub, Name: "git"},
			apiserver.Object{"apiVersion": "source.toolkit.fluxcd.io/v1", "spec": apiserver.Object{}})
		rights := rules.SetName(name)
		w.sets[rights] = &set{namespace: "flux-system", name: rights, addons: []addon{{name: rights, form: "manifests"}}}
	}
	t.selector, t.deleted = selector, nested(w.server.Get(t.key()), "metadata", "deletionTimestamp") != nil
	spec := apiserver.Object{"hubNamespaces": []any{hub}, "namespaces": []any{apiserver.Object{"name": t.home}}}
	if selector == nil {
		spec["selectAll"] = true
	} else {
		spec["clusterSelector"] = apiserver.Object{"matchLabels": selector}
	}
	_, err := w.server.Apply("user", t.key(), apiserver.Object{
		"apiVersion": "chandler.dev/v1alpha1", "kind": "Team", "spec": spec,
		"metadata": apiserver.Object{"namespace": "flux-system", "name": name},
	}, true)
	w.refused(err)
	rights := w.rightsOf(t)
	rights.selector, rights.deleted = selector, t.deleted || nested(w.server.Get(rights.key()), "metadata", "deletionTimestamp") != nil
}

// noteRights is called after every write. A Team's AddonSet that somebody has deleted is made again when it is gone.
func (w *World) noteRights(write apiserver.Write) {
	if write.Key.Kind != "AddonSet" || write.Old != nil || write.New == nil {
		return
	}
	if t := w.teams[apiserver.Label(write.New, hubv1.TeamLabel)]; t != nil {
		w.rightsOf(t).deleted = t.deleted
	}
}

// issued is a token that a cluster has given for the ServiceAccount of a Team. It is good for as long as that ServiceAccount
// exists, which comes and goes with the Team's rights.
type issued struct {
	team    *team
	cluster *cluster
	account int
	expires time.Time
}

// account returns the identity of a Team's ServiceAccount on a cluster; 0 if it has none.
func (c *cluster) account(t *team) int {
	for _, work := range c.workloads {
		if work.addon == rules.SetName(t.name) {
			return work.id
		}
	}
	return 0
}

// token is what the hub asks clusters for tokens with.
func (w *World) token(_ context.Context, cfg *kubeconfig.Config, account types.NamespacedName, _ time.Duration,
	_ probe.Options) (token string, expires time.Time, failure *probe.Failure) {
	c, who, err := w.dial(cfg.Host(), cfg.RESTConfig().BearerToken)
	if err != nil {
		return "", time.Time{}, &probe.Failure{Reason: probe.ReasonConnectionRefused, Message: err.Error()}
	}
	t := w.teams[account.Name]
	switch {
	case who != nil:
		w.violated("teams", "the hub asks %s for a token as Team %s", c.name, who.name)
		fallthrough
	case c.refuses || t == nil || account.Namespace != rules.AccountNamespace(t.name) || c.account(t) == 0:
		return "", time.Time{}, &probe.Failure{Reason: probe.ReasonForbidden, Message: "the cluster gives no token"}
	}
	token, expires = fmt.Sprintf("token-of-team-%s-%d", t.name, len(w.tokens)), w.clock.Now().Add(tokenTime)
	w.tokens[token] = issued{t, c, c.account(t), expires}
	return token, expires, nil
}

// valid returns whether a cluster accepts a Team's token.
func (w *World) valid(t issued, c *cluster) bool {
	return t.cluster == c && t.account == c.account(t.team) && w.clock.Now().Before(t.expires)
}

// checkActor: Flux acts for a team as the team, in the team's namespaces, and for nobody else so.
func (w *World) checkActor(k apiserver.Key, c *cluster, who *team, namespaces ...string) {
	t := w.teamOf(k.Namespace)
	if t != who {
		w.violated("teams", "Flux reaches %s for %s as %s", c.name, k, who.actor())
		return
	}
	for _, ns := range namespaces {
		if t != nil && ns != t.home {
			w.violated("teams", "%s asks for something in namespace %s of %s, which is not Team %s's", k, ns, c.name, t.name)
		}
	}
}

// noteTeams notes since when each Team has not been meant to have each cluster.
func (w *World) noteTeams() {
	for _, name := range sortedKeys(w.teams) {
		t := w.teams[name]
		for _, c := range w.clusters {
			if _, known := t.lost[c]; w.selects(w.rightsOf(t), c) {
				delete(t.lost, c)
			} else if !known {
				t.lost[c] = w.clock.Now().Truncate(time.Second) // as a deletionTimestamp has it
			}
		}
	}
}

// checkRightsLast: a Team's rights go after what Flux needs them for, unless that has taken a process --teardown-grace. What one before it
// has deleted is not that one's business.
func (w *World) checkRightsLast(c *cluster, rights *workload) {
	object := w.object(rights.ownerUID)
	if at, deleted := nested(object, "metadata", "deletionTimestamp").(string); deleted {
		if t, err := time.Parse(time.RFC3339, at); err == nil && !t.After(w.hubBegan) { // it says seconds
			return
		}
	}
	over := func(since time.Time) bool {
		if since.Before(w.hubBegan) {
			since = w.hubBegan.Truncate(time.Second)
		}
		return w.clock.Now().Sub(since) >= w.config.TeardownGrace
	}
	for _, name := range sortedKeys(w.teams) {
		t := w.teams[name]
		r := w.registrationOf(object)
		if since, lost := t.lost[r]; rights.addon != rules.SetName(name) || lost && over(since) {
			continue
		}
		if begun := w.withdrawnAt(object); !begun.IsZero() && over(begun) {
			continue // it has the cluster again, and what has begun goes on
		}
		for k := range w.flux.due {
			o := w.server.Get(k)
			if k.Namespace == t.hub && w.registrationOf(o) == r && held(o, fluxFinalizer) {
				w.violated("teams", "the rights of Team %s leave %s before %s", name, c.name, k)
			}
		}
	}
}

// withdrawnAt returns when the delivery of a Flux object was deleted; zero if it was not.
func (w *World) withdrawnAt(o apiserver.Object) time.Time {
	namespace, _ := nested(o, "metadata", "namespace").(string)
	name, _ := nested(o, "metadata", "annotations", hubv1.DeliveryAnnotation).(string)
	at, _ := nested(w.server.Get(keyOf("AddonDelivery", namespace, name)), "metadata", "deletionTimestamp").(string)
	begun, _ := time.Parse(time.RFC3339, at) // zero if there is none
	return begun
}

// checkTeams: a Team has tokens of its clusters and of no others, and says how it stands.
func (w *World) checkTeams() {
	for _, o := range w.server.List(kinds["Secret"].GroupKind(), "") {
		t, c := w.teamOf(nested(o, "metadata", "namespace").(string)), w.registrationOf(o)
		if t == nil || c == nil || apiserver.Label(o, hubv1.CopyLabel) == "" || t.has(w.labelsOf(c)) || w.nobodyKeeps(c, o) || w.unheard(c) {
			continue
		}
		if w.server.Get(c.registration()) == nil && w.copyServes(o) {
			continue // nobody makes the registration again: nothing changes, and the deliveries say so
		}
		w.violated("teams", "Team %s does not have %s, and has the Secret %v", t.name, c.name, nested(o, "metadata", "name"))
	}
	for _, name := range sortedKeys(w.teams) {
		o := w.server.Get(w.teams[name].key())
		if o == nil {
			if !w.teams[name].deleted {
				w.violated("convergence", "Team %s is gone, and nobody has deleted it", name)
			}
			continue
		}
		there, rights := typed(w, o, &hubv1.Team{}), w.server.Get(w.rightsOf(w.teams[name]).key())
		if rights == nil {
			w.violated("convergence", "Team %s has no AddonSet", name)
			continue
		}
		ready := status.IsTrue(typed(w, rights, &hubv1.AddonSet{}), hubv1.ReadyCondition)
		if ready != status.IsTrue(there, hubv1.ReadyCondition) {
			w.violated("status", "the AddonSet of Team %s is Ready: %t, and the Team says %s", name, ready, conditionOf(there))
		}
	}
}

// held returns whether an object has a finalizer.
func held(o apiserver.Object, finalizer string) bool {
	list, _ := nested(o, "metadata", "finalizers").([]any)
	return slices.Contains(list, any(finalizer))
}
