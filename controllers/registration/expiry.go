// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/token"
)

// expiry reports when the kubeconfig in use is about to expire. The message names the time, and not how much is left,
// so that it does not change by itself. A token that the hub renews is not shown while it is in time.
func (r *Reconciler) expiry(ctx context.Context, reg *hubv1.ClusterRegistration) error {
	inTime, err := r.renewed(ctx, reg)
	if err != nil {
		return err
	}
	c := reg.Status.Credential
	reason := ""
	if c != nil && c.ExpirationTime != nil && !inTime {
		reason = status.Expiring(c.ExpirationTime.Time, r.Clock.Now())
	}
	if reason == "" {
		status.Clear(reg, hubv1.CredentialExpiringCondition)
		return nil
	}
	verb, who := "expires", "the author of that Secret has to renew it"
	if reason == hubv1.ExpiredReason {
		verb = "expired"
	}
	if c.Renewed {
		who = "the hub renews it, and has not been able to: see the events, or run chandler register again"
	}
	status.Set(reg, hubv1.CredentialExpiringCondition, metav1.ConditionTrue, reason, fmt.Sprintf(
		"the kubeconfig in Secret %q, key %s, %s at %s; %s", c.SecretName, c.Key, verb, c.ExpirationTime.UTC().Format(time.RFC3339), who),
		r.Clock.Now())
	return nil
}

// renewed notes whether the hub renews the token of a registration, and returns whether that is in time: less than half of
// the token's life is over, and the hub asks for another after a third.
func (r *Reconciler) renewed(ctx context.Context, reg *hubv1.ClusterRegistration) (inTime bool, err error) {
	c := reg.Status.Credential
	if c == nil || c.SecretName == "" {
		return false, nil
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: reg.Namespace, Name: c.SecretName}, secret); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	c.Renewed = secret.Annotations[hubv1.RenewTokenAnnotation] != ""
	if !c.Renewed || c.ExpirationTime == nil {
		return false, nil
	}
	now := r.Clock.Now()
	notes, ok := token.NotesOf(secret.Annotations, c.Fingerprint, now)
	life := min(notes.Expires.Sub(notes.Issued), c.ExpirationTime.Sub(notes.Issued))
	return ok && now.Before(notes.Issued.Add(life/2)), nil
}

// tellExpiry sends an event when a kubeconfig begins to expire, and each time that it becomes more urgent.
func (r *Reconciler) tellExpiry(before, after *hubv1.ClusterRegistration) {
	was, is := status.Find(before, hubv1.CredentialExpiringCondition), status.Find(after, hubv1.CredentialExpiringCondition)
	if is != nil && (was == nil || was.Reason != is.Reason) {
		r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, hubv1.CredentialExpiringCondition, is.Reason, "%s", is.Message)
	}
}
