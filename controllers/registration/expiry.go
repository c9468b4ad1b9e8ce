// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// expiry reports when the kubeconfig in use is about to expire. The message names the time, and not how much is left,
// so that it does not change by itself.
func (r *Reconciler) expiry(reg *hubv1.ClusterRegistration) {
	c := reg.Status.Credential
	reason := ""
	if c != nil && c.ExpirationTime != nil {
		reason = status.Expiring(c.ExpirationTime.Time, r.Clock.Now())
	}
	if reason == "" {
		status.Clear(reg, hubv1.CredentialExpiringCondition)
		return
	}
	verb := "expires"
	if reason == hubv1.ExpiredReason {
		verb = "expired"
	}
	status.Set(reg, hubv1.CredentialExpiringCondition, metav1.ConditionTrue, reason, fmt.Sprintf(
		"the kubeconfig in Secret %q, key %s, %s at %s; whoever writes that Secret has to renew it",
		c.SecretName, c.Key, verb, c.ExpirationTime.UTC().Format(time.RFC3339)), r.Clock.Now())
}

// tellExpiry sends an event when a kubeconfig begins to expire, and each time that it becomes more urgent.
func (r *Reconciler) tellExpiry(before, after *hubv1.ClusterRegistration) {
	was, is := status.Find(before, hubv1.CredentialExpiringCondition), status.Find(after, hubv1.CredentialExpiringCondition)
	if is != nil && (was == nil || was.Reason != is.Reason) {
		r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, hubv1.CredentialEvent, is.Reason, "%s", is.Message)
	}
}
