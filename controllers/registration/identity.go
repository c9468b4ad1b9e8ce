// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/serving"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

// access finds out how to log in to a cluster, and what is known of the cluster.
func (r *Reconciler) access(ctx context.Context, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured,
	verdict origin.Verdict) (resolution, *serving.Refusal, error) {
	kc := reg.Spec.KubeConfig
	if kc == nil || kc.WorkloadIdentity == nil {
		found := r.resolve(ctx, reg, obj, verdict)
		refused := r.probe(reg, found)
		r.hurry(reg, obj, found)
		return found, refused, nil
	}
	r.secrets.drop(client.ObjectKeyFromObject(reg))
	access, err := workloadidentity.Check(kc.WorkloadIdentity, r.Config.Rules)
	if err != nil {
		status.Set(reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, reasonOf(err), err.Error(), r.Clock.Now())
		if !reg.Status.UsesWorkloadIdentity() { // what was in use before still is
			found := r.fromCopy(ctx, reg, resolution{})
			return found, r.probe(reg, found), nil
		}
		return resolution{}, nil, r.evidence(ctx, reg)
	}
	r.publishIdentity(reg, kc.WorkloadIdentity, access)
	return resolution{}, nil, r.evidence(ctx, reg)
}

// publishIdentity makes the Flux objects use a workload identity. It does so at once, because the hub cannot try it
// first.
func (r *Reconciler) publishIdentity(reg *hubv1.ClusterRegistration, w *hubv1.WorkloadIdentity, access *workloadidentity.Access) {
	r.notes.probes(client.ObjectKeyFromObject(reg), nil, r.Pool.Remove)
	status.Set(reg, hubv1.KubeConfigValidCondition, metav1.ConditionTrue, hubv1.SucceededReason,
		fmt.Sprintf("workload identity of provider %s, as ServiceAccount %q of each set's namespace", w.Provider, w.ServiceAccountName),
		r.Clock.Now())
	reg.Status.Credential = &hubv1.CredentialStatus{
		WorkloadIdentity: w.Provider, Fingerprint: access.Fingerprint(), TargetFingerprint: workloadidentity.Cluster(w),
	}
	reg.Status.Endpoint = access.Server
	// What a probe found was found with another credential, perhaps of another cluster.
	reg.Status.KubernetesVersion, reg.Status.ClusterUID, reg.Status.Nodes = "", "", nil
}

// evidence sets Reachable from what Flux achieves on the cluster.
func (r *Reconciler) evidence(ctx context.Context, reg *hubv1.ClusterRegistration) error {
	states, err := r.fluxStates(ctx, reg)
	if err != nil {
		return err
	}
	c := byFlux(fluxstate.Reachability(states), status.Find(reg, hubv1.ReachableCondition))
	status.Set(reg, hubv1.ReachableCondition, c.Status, c.Reason, c.Message, r.Clock.Now())
	return nil
}

// byFlux returns the Reachable condition that follows from Flux's results. The result of an earlier probe does not
// count any more.
func byFlux(reach fluxstate.Reach, was *metav1.Condition) metav1.Condition {
	known := was != nil && (was.Reason == hubv1.FluxSucceedsReason || was.Reason == hubv1.FluxFailsReason)
	switch {
	case reach == fluxstate.ReachSucceeds:
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.FluxSucceedsReason,
			Message: "Flux is at work on the cluster, which the hub itself cannot probe"}
	case reach == fluxstate.ReachFails:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: hubv1.FluxFailsReason,
			Message: "none of its Flux objects gets through to the cluster; the AddonDeliveries quote what Flux says"}
	case reach == fluxstate.ReachUnchanged && known:
		return *was
	}
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: hubv1.NotProbedReason,
		Message: "the hub has no identity to probe the cluster with: it is known to answer when the first Flux object is Ready there"}
}

// fluxStates returns the states of a cluster's Flux objects that log in by workload identity. Objects that were made
// for a former kubeconfig say nothing about it, and neither do those of namespaces whose sets do not reach the cluster:
// a tenant may write such an object there, and have Flux succeed on another cluster with it.
func (r *Reconciler) fluxStates(ctx context.Context, reg *hubv1.ClusterRegistration) ([]fluxstate.State, error) {
	objects, err := index.FluxObjects(ctx, r.Client, identity.ClusterKey(r.Config.HubID, client.ObjectKeyFromObject(reg)))
	if err != nil {
		return nil, err
	}
	var out []fluxstate.State
	for _, obj := range objects {
		inReach := obj.GetNamespace() == reg.Namespace || r.Config.IsPlatform(obj.GetNamespace())
		if inReach && obj.GetAnnotations()[hubv1.ClusterUIDAnnotation] == reg.Status.ClusterID() && index.ByWorkloadIdentity(obj) {
			out = append(out, fluxstate.Of(obj))
		}
	}
	return out, nil
}

// evidenceChanges lets through changes of Flux's states, but only for clusters that the hub cannot probe.
func evidenceChanges() predicate.Predicate {
	return predicate.And(predicate.NewPredicateFuncs(index.ByWorkloadIdentity), predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return fluxstate.Of(e.ObjectOld) != fluxstate.Of(e.ObjectNew)
	}})
}
