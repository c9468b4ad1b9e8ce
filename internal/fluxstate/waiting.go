// SPDX-License-Identifier: Apache-2.0

package fluxstate

import (
	"regexp"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client" //nolint:depguard // the Object interface

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// first matches what Flux says while it makes a client for a cluster: it asks for the ping and the discovery, without a deadline.
// What it does later ends in time: each request of an action or of a health check has a deadline.
var first = regexp.MustCompile(`^(Fulfilling prerequisites|Fetching manifests|Building manifests)`)

// Begins returns whether a condition says that Flux has begun a reconcile, and has not had the cluster's first answers.
func Begins(c *metav1.Condition) bool {
	return c.Type == fluxmeta.ReconcilingCondition && c.Status == metav1.ConditionTrue && c.Reason == fluxmeta.ProgressingReason &&
		first.MatchString(c.Message)
}

// FirstWords returns what Begins reads of a condition's message.
func FirstWords(c *metav1.Condition) string { return first.FindString(c.Message) }

// Waiting returns since when Flux waits for a cluster's first answers to a reconcile of an object; zero if it does not. If current, only a
// reconcile of the present generation counts, which Flux has begun since the object was last written. A failure of that generation
// says that Flux waits for something on the management cluster: helm-controller leaves the other condition as it is then.
func Waiting(obj client.Object, current bool) time.Time {
	var conditions []metav1.Condition
	switch o := obj.(type) {
	case *helmv2.HelmRelease:
		conditions = o.Status.Conditions
	case *kustomizev1.Kustomization:
		conditions = o.Status.Conditions
	}
	c, ready := meta.FindStatusCondition(conditions, fluxmeta.ReconcilingCondition), meta.FindStatusCondition(conditions, hubv1.ReadyCondition)
	if c == nil || !Begins(c) || current && c.ObservedGeneration != obj.GetGeneration() ||
		ready != nil && ready.Status == metav1.ConditionFalse && ready.ObservedGeneration >= c.ObservedGeneration {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
