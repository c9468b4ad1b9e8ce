// SPDX-License-Identifier: Apache-2.0

// Package tokens is the controller that keeps the credentials of Teams. For each cluster to which the AddonSets of a Team
// deliver, it keeps a kubeconfig with a token of the Team's ServiceAccount there, beside the sets. It asks the cluster
// for tokens with the registration's kubeconfig, which never leaves the hub. Tokens are renewed after a third of
// their time. They are revoked when the ServiceAccount goes, with the Team's rights.
//
// It also renews the tokens by which the hub itself logs in to clusters, where Secrets ask for that (Renewal).
package tokens

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/credential"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/reach"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/pace"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/team"
	"github.com/chandler-hub/chandler/internal/token"
)

// Reconciler works on one cluster at a time.
type Reconciler struct {
	Client   client.Client
	Live     client.Reader
	Config   *hubconfig.Config
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	// Token is probe.Token, except in tests.
	Token Request

	failures failures
}

// Request asks a cluster for a token, as probe.Token does.
type Request func(ctx context.Context, cfg *kubeconfig.Config, account types.NamespacedName, lifetime time.Duration,
	opts probe.Options) (token string, expires time.Time, failure *probe.Failure)

// answerTime bounds a request for a token. A cluster that answers probes, and nothing here, holds a worker for so long.
const answerTime = 5 * time.Second

// Reconcile keeps the tokens of all Teams on one cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	reg := &hubv1.ClusterRegistration{}
	if err := r.Client.Get(ctx, req.NamespacedName, reg); apierrors.IsNotFound(err) {
		r.failures.forgetCluster(req.NamespacedName)
		return ctrl.Result{}, nil // the delivery controller drops what is left on the hub
	} else if err != nil {
		return ctrl.Result{}, err
	}
	namespaces, err := r.namespaces(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.failures.retain(req.NamespacedName, namespaces, r.Clock.Now())
	errs := []error{r.dropUnused(ctx, reg, namespaces)}
	var again time.Duration
	for _, namespace := range namespaces {
		from, err := reach.Of(ctx, r.Client, r.Config, namespace)
		if err != nil || !from.ByTeam() {
			errs = append(errs, err)
			continue
		}
		after, err := r.keep(ctx, reg, from)
		again, errs = pace.Sooner(again, after), append(errs, err)
	}
	return apply.Retried(ctrl.Result{RequeueAfter: again}, errors.Join(errs...))
}

// namespaces returns those that have deliveries to a cluster, in order.
func (r *Reconciler) namespaces(ctx context.Context, reg types.NamespacedName) ([]string, error) {
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, index.DeliveriesOf(reg), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the deliveries: %w", err)
	}
	var out []string
	for i := range list.Items {
		if ns := list.Items[i].Namespace; !slices.Contains(out, ns) {
			out = append(out, ns)
		}
	}
	slices.Sort(out)
	return out, nil
}

// keep keeps the token of one Team in one of its hub namespaces. It returns after how long to look again.
func (r *Reconciler) keep(ctx context.Context, reg *hubv1.ClusterRegistration, from match.Reach) (time.Duration, error) {
	there, err := r.there(ctx, reg, from.Namespace)
	if err != nil {
		return 0, err
	}
	rights, err := r.rights(ctx, reg, from)
	if err != nil || rights == nil {
		return 0, err // without them, the cluster has no such ServiceAccount
	}
	u, err := r.uses(ctx, reg, from.Namespace)
	if err != nil {
		return 0, err
	}
	print, now := credential.TeamFingerprint(reg, from, rights), r.Clock.Now()
	if wait := due(there, print, u.refused, now); wait > 0 {
		return wait, nil
	}
	if !mayHave(reg, from, rights, u, there != nil) {
		if u.ofAnother {
			return otherTime, nil // the delivery controller lets them go, and no event tells this controller when they are gone
		}
		return 0, nil // what it waits for wakes this controller
	}
	if wait := r.failures.wait(place{client.ObjectKeyFromObject(reg), from.Namespace}, now); wait > 0 {
		return wait, nil
	}
	return r.renew(ctx, reg, from, there, print)
}

// renew asks for a token, and writes it. It returns after how long to look again.
func (r *Reconciler) renew(ctx context.Context, reg *hubv1.ClusterRegistration, from match.Reach, there *metav1.PartialObjectMetadata,
	print string) (time.Duration, error) {
	admin, err := credential.Read(ctx, r.Live, r.Config, reg)
	if err == nil && admin == nil && status.IsTrue(reg, hubv1.KubeConfigValidCondition) {
		return credential.LostTime, nil
	}
	if err != nil || admin == nil {
		return 0, err
	}
	issued := r.Clock.Now()
	account := types.NamespacedName{Namespace: team.AccountNamespace(from.Team.Name), Name: from.Team.Name}
	at := place{client.ObjectKeyFromObject(reg), from.Namespace}
	if err := admin.CheckShared(); err != nil { // a member of the Team reads what is in the copy
		r.Recorder.Eventf(reg, nil, corev1.EventTypeWarning, hubv1.TokenFailedEvent, "RequestToken",
			"no token for Team %s/%s: the cluster's kubeconfig cannot be given to a Team: %s", from.Team.Namespace, from.Team.Name, err)
		if err := r.shutProxy(ctx, there); err != nil {
			return 0, err
		}
		return r.failures.note(at, issued), nil
	}
	text, expires, failure := r.Token(ctx, admin, account, team.TokenLifetime,
		probe.Options{Rules: admin.Rules(), UserAgent: "chandler-hub", Total: answerTime})
	if failure != nil {
		r.Recorder.Eventf(reg, nil, corev1.EventTypeWarning, hubv1.TokenFailedEvent, "RequestToken",
			"no token for Team %s/%s: ServiceAccount %s on the cluster: %s", from.Team.Namespace, from.Team.Name, account, failure.Message)
		return r.failures.note(at, issued), nil
	}
	r.failures.forget(at)
	config, err := admin.WithToken(text)
	if err != nil {
		return 0, fmt.Errorf("write the kubeconfig of Team %s: %w", from.Team.Name, err)
	}
	expires = token.Expiry(issued, token.Of(config, expires), team.TokenLifetime)
	u := r.secret(reg, from, config.Minimal(), print, issued, expires)
	if there != nil && there.DeletionTimestamp != nil {
		u.SetUID(there.UID) // a user has deleted it, and the hub's finalizer keeps it for as long as Flux needs it
		u.SetFinalizers(there.Finalizers)
	}
	if _, err := apply.Update(ctx, r.Client, u, hubv1.FieldManager); err != nil {
		return 0, err
	}
	return token.RenewIn(issued, expires, r.Clock.Now()), nil
}

// there returns the metadata of the kubeconfig copy in a namespace; nil if there is none. It returns an error if an object of
// that name is not the hub's.
func (r *Reconciler) there(ctx context.Context, reg *hubv1.ClusterRegistration, namespace string) (*metav1.PartialObjectMetadata, error) {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	name := types.NamespacedName{Namespace: namespace, Name: identity.KubeconfigCopy(r.Config.HubID, client.ObjectKeyFromObject(reg))}
	switch err := r.Client.Get(ctx, name, there); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the kubeconfig copy: %w", err)
	case there.Labels[hubv1.ClusterKeyLabel] != identity.ClusterKey(r.Config.HubID, client.ObjectKeyFromObject(reg)):
		return nil, fmt.Errorf("Secret %s: %w", name, apply.ErrNotOwned)
	}
	return there, nil
}

// due returns after how long the token of a kubeconfig copy is renewed; 0 if that is now. A token is for one endpoint, and for one
// ServiceAccount, which the rights bring: if either is another one, or the cluster refuses the token, it is renewed before
// its time.
func due(there *metav1.PartialObjectMetadata, print string, refused bool, now time.Time) time.Duration {
	if there == nil || there.Labels[hubv1.CopyLabel] != identity.TeamCopy {
		return 0
	}
	notes, ok := token.NotesOf(there.Annotations, print, now)
	if !ok {
		return 0
	}
	wait := notes.RenewIn(now)
	if refused {
		wait = min(wait, max(notes.Issued.Add(refusedTime).Sub(now), 0))
	}
	return wait
}

// refusedTime is how old a token is at least that is renewed because the cluster refuses it.
const refusedTime = 2 * time.Minute

// otherTime is after how long to look again for Flux objects that were made for another cluster.
const otherTime = 30 * time.Second

// rights returns the delivery that brings a Team's rights to a cluster; nil if there is none.
func (r *Reconciler) rights(ctx context.Context, reg *hubv1.ClusterRegistration, from match.Reach) (*hubv1.AddonDelivery, error) {
	d := &hubv1.AddonDelivery{}
	if err := r.Client.Get(ctx, team.Rights(from.Team, client.ObjectKeyFromObject(reg)), d); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return d, nil
}

// mayHave returns whether a Team gets a token for a cluster now. It gets its first one when its rights are Ready there.
// Flux keeps what it has while anything of the Team is on the cluster, so a token is renewed also if the Team does not
// have the cluster any more. It gets none while objects are there that were made for another cluster behind the
// registration: Flux must not meet this cluster with what it remembers of that one.
func mayHave(reg *hubv1.ClusterRegistration, from match.Reach, rights *hubv1.AddonDelivery, u uses, renewal bool) bool {
	if !status.Online(reg) || reg.Status.ClusterID() == "" || reg.Status.UsesWorkloadIdentity() || u.ofAnother {
		return false
	}
	if renewal && u.objects && (from.To(reg) || u.reported) {
		return true
	}
	return from.To(reg) && u.wanted && slices.ContainsFunc(rights.Status.Addons, func(a hubv1.AddonStatus) bool {
		return a.Name == team.SetName(from.Team.Name) && a.State == hubv1.AddonReady
	})
}

func (r *Reconciler) secret(reg *hubv1.ClusterRegistration, from match.Reach, content []byte,
	print string, issued, expires time.Time) *unstructured.Unstructured {
	key := client.ObjectKeyFromObject(reg)
	u := &unstructured.Unstructured{Object: map[string]any{
		"type": string(corev1.SecretTypeOpaque),
		"data": map[string]any{flux.KubeconfigKey: base64.StdEncoding.EncodeToString(content)},
	}}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	u.SetNamespace(from.Namespace)
	u.SetName(identity.KubeconfigCopy(r.Config.HubID, key))
	u.SetFinalizers([]string{hubv1.Finalizer})
	u.SetLabels(map[string]string{
		"app.kubernetes.io/managed-by": "chandler",
		hubv1.CopyLabel:                identity.TeamCopy,
		hubv1.TeamLabel:                from.Team.Name,
		hubv1.ClusterKeyLabel:          identity.ClusterKey(r.Config.HubID, key),
		hubv1.ClusterLabel:             identity.LabelValue(reg.Name),
		fluxmeta.LabelKeyWatch:         fluxmeta.LabelValueWatchEnabled,
	})
	annotations := token.Notes{Issued: issued, Expires: expires, Fingerprint: print}.Annotations()
	annotations[hubv1.RegistrationAnnotation] = key.String()
	u.SetAnnotations(annotations)
	return u
}
