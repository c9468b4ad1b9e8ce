// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/serving"
	"github.com/chandler-hub/chandler/internal/status"
)

// probe hands the candidates to the pool, and takes over its results: Reachable, the facts, and which kubeconfig the
// Flux objects use. It never waits for a cluster.
func (r *Reconciler) probe(reg *hubv1.ClusterRegistration, found resolution) *serving.Refusal {
	if len(found.candidates) == 0 {
		// A probe in progress goes on: the cluster may well answer while its Secret is being written.
		if status.Find(reg, hubv1.ReachableCondition) == nil {
			status.Set(reg, hubv1.ReachableCondition, metav1.ConditionUnknown, hubv1.NotProbedReason,
				"there is no kubeconfig to probe with yet", r.Clock.Now())
		}
		return nil
	}
	key := client.ObjectKeyFromObject(reg)
	r.notes.probes(key, found.candidates, r.Pool.Remove)
	chosen, answered := r.choose(key, reg, found)
	known := !answered && r.known(key, reg, found.secret, chosen)
	for _, c := range found.candidates {
		pk := c.poolKey(key)
		switch {
		case (answered || known) && c != chosen && !chosen.former:
			r.Pool.Remove(pk)
		case known:
			r.Pool.SetKnown(pk, c.config)
		case status.Find(reg, hubv1.ReachableCondition) != nil && status.Find(reg, hubv1.ReachableCondition).Status == metav1.ConditionFalse:
			r.Pool.SetSuspect(pk, c.config)
		default:
			r.Pool.Set(pk, c.config)
		}
	}
	result, fingerprint, ok := r.Pool.Result(chosen.poolKey(key))
	fresh := ok && fingerprint == chosen.config.Fingerprint()
	refused := r.reachable(reg, found, chosen, result, fresh)
	if refused == nil {
		r.publish(reg, found, chosen, fresh && result.Err == nil)
	}
	return refused
}

// known returns whether the status says that the cluster answers to a candidate, and no probe of this process has
// said otherwise: the hub has just started.
func (r *Reconciler) known(key types.NamespacedName, reg *hubv1.ClusterRegistration, secret string, c candidate) bool {
	_, _, probed := r.Pool.Result(c.poolKey(key))
	inUse := reg.Status.Credential
	return !probed && status.Online(reg) && inUse != nil && inUse.SecretName == secret && inUse.Key == c.key &&
		inUse.Fingerprint == c.config.Fingerprint()
}

// unheard returns whether a cluster is being probed, and no probe of this process has ended: the hub has just started.
func (r *Reconciler) unheard(key types.NamespacedName) bool {
	is, _ := r.notes.of.Get(key)
	return len(is.keys) > 0 && !slices.ContainsFunc(is.keys, func(k string) bool { _, _, ok := r.Pool.Result(k); return ok })
}

// hurry has a cluster probed at once when its origin says that its state has changed. A tenant of Kamaji has a
// kubeconfig some time before its API server answers. Probes during that time fail, and the next one would be as late
// as that of a dead cluster.
func (r *Reconciler) hurry(reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured, found resolution) {
	kind, err := kindOf(reg)
	key := client.ObjectKeyFromObject(reg)
	if err != nil || !r.notes.turned(key, kind.State(obj)) {
		return
	}
	for _, c := range found.candidates {
		r.Pool.Now(c.poolKey(key))
	}
}

// choose returns the candidate to use: the one in use, while it answers or no other does; else the first that
// answers. The copy that was in use before is chosen only if it answers and nothing of the Secret's does.
func (r *Reconciler) choose(key types.NamespacedName, reg *hubv1.ClusterRegistration, found resolution) (chosen candidate, answered bool) {
	good := func(c candidate) bool {
		result, fingerprint, ok := r.Pool.Result(c.poolKey(key))
		return ok && fingerprint == c.config.Fingerprint() && result.Err == nil
	}
	all := found.candidates
	last := all[len(all)-1]
	if last.former {
		all = all[:len(all)-1]
	}
	chosen = all[len(all)-1]
	inUse := ""
	if c := reg.Status.Credential; c != nil && c.SecretName == found.secret {
		inUse = c.Key
	}
	for _, c := range all {
		switch is := good(c); {
		case is && c.key == inUse:
			return c, true
		case is && !answered:
			chosen, answered = c, true
		case !answered && c.key == inUse:
			chosen = c
		}
	}
	if !answered && last.former && good(last) {
		return last, true
	}
	return chosen, answered
}

// reachable sets Reachable and the facts from the last result. One failed probe of a cluster that answered before
// changes nothing; several in a row do. A kubeconfig that leads elsewhere has to be answered first: until then it is not known
// of which cluster the registration is, and nothing is to be uninstalled from the one that it was of.
func (r *Reconciler) reachable(reg *hubv1.ClusterRegistration, found resolution, chosen candidate, result probe.Result,
	fresh bool) *serving.Refusal {
	was := status.Find(reg, hubv1.ReachableCondition)
	now := r.Clock.Now()
	answered := was != nil && was.Status == metav1.ConditionTrue
	switch {
	case !fresh && was == nil, result.Err != nil && young(was, result):
		status.Set(reg, hubv1.ReachableCondition, metav1.ConditionUnknown, hubv1.NotProbedReason,
			"it has not answered yet: the first probes are under way", now)
	case !fresh && answered && leadsElsewhere(reg, chosen):
		status.Set(reg, hubv1.ReachableCondition, metav1.ConditionUnknown, hubv1.NotProbedReason,
			"its kubeconfig leads to another API server now, or has another CA, and that has not answered yet", now)
	case !fresh:
	case result.Err != nil && answered && !leadsElsewhere(reg, chosen) && result.Failures < probe.FailureThreshold:
	case result.Err != nil:
		status.Set(reg, hubv1.ReachableCondition, metav1.ConditionFalse, result.Err.Reason, r.failures(reg, found, result), now)
	default:
		if refused := r.accept(result); refused != nil {
			status.Set(reg, hubv1.ReachableCondition, metav1.ConditionFalse, refused.Reason, refused.Message, now)
			return refused
		}
		reg.Status.Endpoint = chosen.config.Server()
		reg.Status.KubernetesVersion, reg.Status.ClusterUID = result.Version, result.ClusterUID
		reg.Status.Nodes = nil
		if result.NodesKnown {
			reg.Status.Nodes = &result.Nodes
		}
		status.Set(reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason,
			fmt.Sprintf("%s answers as Kubernetes %s", chosen.config.Server(), result.Version), now)
	}
	return nil
}

// leadsElsewhere returns whether a kubeconfig leads to another API server than the one in use, or has another CA.
func leadsElsewhere(reg *hubv1.ClusterRegistration, c candidate) bool {
	inUse := reg.Status.Credential
	return inUse != nil && inUse.TargetFingerprint != "" && inUse.TargetFingerprint != c.config.TargetFingerprint()
}

// young returns whether a cluster that has never answered may still be starting. It gets as many probes as one that
// has answered before.
func young(was *metav1.Condition, result probe.Result) bool {
	return (was == nil || was.Status == metav1.ConditionUnknown) && result.Failures < probe.FailureThreshold && probe.Young(result.Err.Reason)
}

// accept refuses the management cluster itself.
func (r *Reconciler) accept(result probe.Result) *serving.Refusal {
	if result.ClusterUID == r.HubUID {
		return &serving.Refusal{Reason: hubv1.HubItselfReason,
			Message: "the kubeconfig points at the management cluster itself; Chandler delivers to workload clusters only"}
	}
	return nil
}

// failures says how each candidate failed, if there are several, and why other keys were not tried.
func (r *Reconciler) failures(reg *hubv1.ClusterRegistration, found resolution, chosen probe.Result) string {
	if len(found.candidates)+len(found.refused) == 1 {
		return chosen.Err.Message
	}
	var parts []string
	for _, c := range found.candidates {
		if result, _, ok := r.Pool.Result(c.poolKey(client.ObjectKeyFromObject(reg))); ok && result.Err != nil {
			parts = append(parts, fmt.Sprintf("key %s: %s", c.key, result.Err.Message))
		}
	}
	return strings.Join(append(parts, found.refused...), "; ")
}

// publish decides which kubeconfig the Flux objects use: the last one to which the cluster has answered. Until it has,
// it is not known which cluster that is: one of the same address may have been built anew, and Flux would uninstall there
// what it remembers of the old one. Flux could do nothing with credentials to which the cluster does not answer.
func (r *Reconciler) publish(reg *hubv1.ClusterRegistration, found resolution, chosen candidate, answered bool) {
	c := reg.Status.Credential
	if inUse := c != nil && c.Fingerprint == chosen.config.Fingerprint(); !answered && !inUse {
		return
	}
	next := &hubv1.CredentialStatus{
		SecretName: found.secret, FromSpec: found.fromSpec, Key: chosen.key, Context: chosen.context,
		Fingerprint: chosen.config.Fingerprint(), TargetFingerprint: chosen.config.TargetFingerprint(),
		AuthorityFingerprint: chosen.config.AuthorityFingerprint(),
	}
	if at, ok := chosen.config.Expiration(); ok {
		t := metav1.NewTime(at)
		next.ExpirationTime, next.ExpiresIn = &t, status.ExpiresIn(at, r.Clock.Now())
	}
	reg.Status.Credential = next
}

// probeKey is the pool's key for one candidate of a registration.
func probeKey(key types.NamespacedName, secretKey string) string {
	return key.Namespace + "/" + key.Name + "/" + secretKey
}

// registrationOf is the reverse of probeKey.
func registrationOf(poolKey string) types.NamespacedName {
	parts := strings.SplitN(poolKey, "/", 3)
	if len(parts) < 3 {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: parts[0], Name: parts[1]}
}

// forget drops all that is remembered of a registration.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.notes.probes(key, nil, r.Pool.Remove)
	r.notes.of.Delete(key)
	r.waiting.Forget(key)
	r.expectations.Forget(key)
	r.secrets.drop(key)
}

// kubernetesMinor returns "1.33" of "v1.33.4-gke.1", or "".
func kubernetesMinor(gitVersion string) string {
	v, err := version.ParseGeneric(gitVersion)
	if err != nil {
		return ""
	}
	return strconv.Itoa(int(v.Major())) + "." + strconv.Itoa(int(v.Minor()))
}
