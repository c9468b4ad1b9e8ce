// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/credential"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/pace"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/token"
)

// Renewal renews the tokens by which the hub itself logs in to clusters, in the Secrets that ask for it
// (chandler.dev/renew-token). It works on one cluster at a time.
//
// A user who may write such a Secret has the credential in it, and no more by this: the hub asks the server that the
// Secret names, with the token of the Secret, for another token of the ServiceAccount whose token it is. It writes the
// answer where that token was.
type Renewal struct {
	Client   client.Client
	Live     client.Reader
	Config   *hubconfig.Config
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	// Token is probe.Token, and Probe is probe.Once, except in tests.
	Token Request
	Probe Probe

	failures failures
	// asked are the requests to clusters that are under way, by the namespace of their registrations. The controller's queue hands out what
	// changes in the order in which it came, so a thousand clusters of one namespace that let the hub wait would hold all workers, one after
	// the other.
	asked pace.UnderWay
}

// Probe asks a cluster who it is, as probe.Once does.
type Probe func(ctx context.Context, cfg *kubeconfig.Config, opts probe.Options) probe.Result

// Reconcile renews the token of one registration if a third of its time is over.
func (r *Renewal) Reconcile(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	at := place{cluster: req.NamespacedName}
	reg := &hubv1.ClusterRegistration{}
	if err := r.Client.Get(ctx, req.NamespacedName, reg); err != nil {
		if apierrors.IsNotFound(err) {
			r.failures.forgetCluster(at.cluster)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !status.Online(reg) {
		r.failures.forgive(at) // when it answers again, it may give a token again
	}
	if !may(reg) {
		return ctrl.Result{}, nil // what it waits for wakes this controller
	}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	key := types.NamespacedName{Namespace: reg.Namespace, Name: reg.Status.Credential.SecretName}
	if err := r.Client.Get(ctx, key, meta); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	asked, asks := asksFor(meta)
	if !asks {
		return ctrl.Result{}, nil
	}
	now := r.Clock.Now()
	lifetime, ok := token.Lifetime(asked)
	if !ok {
		r.tell(reg, fmt.Sprintf("annotation %s is no duration from %s to %s, such as 720h: correct it", hubv1.RenewTokenAnnotation,
			token.Shortest, token.Longest))
		return ctrl.Result{}, nil
	}
	if notes, ok := token.NotesOf(meta.Annotations, reg.Status.Credential.Fingerprint, now); ok {
		if wait := notes.RenewIn(now); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
	}
	if wait := r.failures.wait(at, now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if !r.asked.Enter(reg.Namespace, func(has, all int) bool { return begins(has, all, r.Config.Concurrency) }) {
		return ctrl.Result{RequeueAfter: wait.Jitter(turnTime, 4)}, nil
	}
	defer r.asked.Leave(reg.Namespace)
	again, err := r.renew(ctx, reg, at, lifetime)
	return apply.Retried(ctrl.Result{RequeueAfter: again}, err)
}

// begins returns whether a namespace may have one more request, if it has some of all that are under way. It may always have one, and never
// as many as there are free workers: so each further namespace finds some.
func begins(has, all, workers int) bool { return has == 0 || has < workers-all }

// asksFor returns the lifetime of the tokens that a Secret asks for; false if it asks for none, or goes, or is a kubeconfig copy.
func asksFor(secret metav1.Object) (lifetime string, ok bool) {
	lifetime, ok = secret.GetAnnotations()[hubv1.RenewTokenAnnotation]
	_, copied := secret.GetLabels()[hubv1.CopyLabel]
	return lifetime, ok && !copied && secret.GetDeletionTimestamp() == nil
}

// may returns whether a registration is one whose credential a user may have the hub renew: the cluster answers to the
// kubeconfig that the Secret has, and no other controller renews it, as Kamaji and Cluster API do.
func may(reg *hubv1.ClusterRegistration) bool {
	ref, c := reg.Spec.OriginRef, reg.Status.Credential
	foreign := ref != nil && reg.Spec.KubeConfig == nil && ref.Kind != origin.Secret.Kind
	return c != nil && c.SecretName != "" && !foreign && status.Online(reg) && status.IsTrue(reg, hubv1.KubeConfigValidCondition)
}

// renew asks for a token and writes it. It returns after how long to look again.
func (r *Renewal) renew(ctx context.Context, reg *hubv1.ClusterRegistration, at place, lifetime time.Duration) (time.Duration, error) {
	secret, config, err := credential.Secret(ctx, r.Live, r.Config, reg)
	if err != nil {
		return 0, err
	}
	if secret == nil {
		// The registration controller reads it anew, and that wakes this one, unless it is put back before.
		return otherSecret, nil
	}
	if _, asks := asksFor(secret); !asks {
		return 0, nil // the annotation is new, and the cache does not know yet
	}
	account, began, ok := config.Account()
	if !ok {
		r.tell(reg, "the credential in it is not the token of a ServiceAccount alone, and the hub renews no other: "+
			"run chandler register again, or take the annotation off")
		return 0, nil
	}
	issued := r.Clock.Now()
	notes, noted := token.NotesOf(secret.Annotations, config.Fingerprint(), issued)
	ends := notes.Expires
	if !noted {
		ends, _ = config.Expiration()
	}
	if !noted && !ends.IsZero() && !began.IsZero() && !began.After(issued) {
		// Another tool has written it, which notes nothing. When it was issued is by the clock of the cluster: if that is behind, the token
		// is renewed too soon, and if it is ahead, at once, or somewhat late this one time.
		if wait := (token.Notes{Issued: began, Expires: ends}).RenewIn(issued); wait > 0 {
			return wait, nil
		}
	}
	raw, notes, why := r.another(ctx, config, account, lifetime, secret.Data[reg.Status.Credential.Key])
	if why != "" {
		r.tell(reg, why)
		return r.failures.noteUntil(at, issued, ends), nil
	}
	if err := r.write(ctx, secret, reg.Status.Credential.Key, raw, notes); err != nil {
		if again := r.failures.noteUntil(at, issued, ends); !apply.Lagged(err) {
			// Not the text of the API server, which may quote what was refused.
			r.tell(reg, fmt.Sprintf("the Secret cannot be written: %s", cmp.Or(apierrors.ReasonForError(err), "the API server does not answer")))
			return again, nil
		}
		return 0, err
	}
	// However short the token lives, and if a user puts the old one back each time.
	r.failures.rest(at, issued, token.Apart)
	return max(notes.RenewIn(r.Clock.Now()), token.Apart), nil
}

// another asks the cluster for another token of an account, and tries it. It returns raw, the kubeconfig, with that token, or why there
// is none: what works is never replaced by what may not, since that could not be taken back.
func (r *Renewal) another(ctx context.Context, config *kubeconfig.Config, account types.NamespacedName, lifetime time.Duration,
	raw []byte) (out []byte, notes token.Notes, why string) {
	issued := r.Clock.Now()
	opts := probe.Options{Rules: config.Rules(), UserAgent: "chandler-hub", Total: answerTime}
	text, says, failure := r.Token(ctx, config, account, lifetime, opts)
	if failure != nil {
		return nil, notes, fmt.Sprintf("no new token of ServiceAccount %s: %s", account, failure.Message)
	}
	out, renewed, ok := config.Retoken(raw, text)
	if !ok || !of(renewed, account) {
		return nil, notes, fmt.Sprintf("what the cluster gives is no token of ServiceAccount %s, or cannot be written in the place of the "+
			"old one", account)
	}
	if failure := r.Probe(ctx, renewed, opts).Err; failure != nil {
		return nil, notes, fmt.Sprintf("the cluster has given a new token of ServiceAccount %s, which does not work, and the old one stays: %s",
			account, failure.Message)
	}
	return out, token.Notes{Issued: issued, Expires: token.Expiry(issued, token.Of(renewed, says), lifetime),
		Fingerprint: renewed.Fingerprint()}, ""
}

// turnTime is how long to wait at least while other clusters of the namespace are asked. The time differs, so that they do not all come at
// once.
const turnTime = time.Second

// otherSecret is how long to wait while the Secret is another one than the registration controller has read.
const otherSecret = time.Minute

// of returns whether a kubeconfig has a token of an account.
func of(c *kubeconfig.Config, account types.NamespacedName) bool {
	got, _, ok := c.Account()
	return ok && got == account
}

// write puts a kubeconfig into the Secret that was read, if it is still as it was then.
func (r *Renewal) write(ctx context.Context, secret *corev1.Secret, key string, raw []byte, notes token.Notes) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": secret.UID, "resourceVersion": secret.ResourceVersion, "annotations": notes.Annotations()},
		"data":     map[string][]byte{key: raw},
	})
	if err != nil {
		return fmt.Errorf("write the token into Secret %s: the patch cannot be written", secret.Name)
	}
	there := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}
	change := client.RawPatch(types.MergePatchType, patch)
	return client.IgnoreNotFound(r.Client.Patch(ctx, there, change, client.FieldOwner(hubv1.FieldManager)))
}

func (r *Renewal) tell(reg *hubv1.ClusterRegistration, why string) {
	r.Recorder.Eventf(reg, nil, corev1.EventTypeWarning, hubv1.TokenFailedEvent, "RenewToken",
		"the token in Secret %q is not renewed: %s", reg.Status.Credential.SecretName, why)
}
