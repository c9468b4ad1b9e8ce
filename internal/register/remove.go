// SPDX-License-Identifier: Apache-2.0

package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/live"
)

// removeAccount removes the hub's account from the cluster: by the account itself, or with the rights of the caller there.
func (r *Registrar) removeAccount(ctx context.Context, d *Departure) error {
	config, token, err := r.wayIn(ctx, d)
	if err != nil {
		return err
	}
	own := token != nil
	r.say("Asking the cluster at %s to remove the hub's account", live.Address(config))
	config.Timeout = cmp.Or(config.Timeout, patience)
	c, err := connect(ctx, config)
	if err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	system, err := r.whoIsThere(ctx, d, c, token, live.Address(config))
	if err != nil || system == nil {
		return err
	}
	if uid := d.secret.Annotations[hubv1.ClusterUIDAnnotation]; uid != "" && uid != string(system.UID) {
		return fmt.Errorf("another cluster answers: its kube-system has UID %s, and that of Secret %s/%s had %s", system.UID, d.secret.Namespace,
			d.secret.Name, uid)
	}
	namespace := d.account.Objects("")[0]
	there, err := read(ctx, c, namespace)
	if err != nil {
		return fmt.Errorf("%w on the cluster", err)
	}
	if there == nil {
		r.say("Namespace %s is gone from the cluster", d.account.Name)
		return nil
	}
	if err := d.account.Owns(there); err != nil {
		return err
	}
	return r.remove(ctx, d, c, there, own)
}

// shortened returns the part of an error of HTTP that does not repeat the address.
func shortened(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// whoIsThere returns namespace kube-system of the cluster; nil if the account is gone: the cluster refuses its token (nil for an
// administrator's), though that has not expired, and goes on to refuse it. An API server that has just started may do so for a
// moment. If the cluster refuses everybody, nothing is lost but the Secret of an account that nobody can use.
func (r *Registrar) whoIsThere(ctx context.Context, d *Departure, c client.Client, token *kubeconfig.Config,
	at string) (*corev1.Namespace, error) {
	system, began, refused, expired := &corev1.Namespace{}, time.Now(), false, true
	if token != nil {
		end, known := token.Expiration()
		expired = !known || !began.Before(end)
	}
	err := until(ctx, accountTime, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Name: "kube-system"}, system)
		refused = token != nil && apierrors.IsUnauthorized(err)
		early := time.Since(began) <= min(settled, r.Wait/3)
		switch {
		case refused:
			return expired || !early, nil
		case early && token != nil && apierrors.IsForbidden(err):
			// An API server remembers a token for ten seconds. If the account has just gone, the API server forbids what it later refuses.
			return false, nil
		}
		return err == nil, err
	})
	switch {
	case err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown: // nobody has answered as an API server does
		return nil, fmt.Errorf("the cluster at %s cannot be reached, so the hub's account stays there: %w", at, shortened(err))
	case err != nil:
		return nil, fmt.Errorf("look which cluster it is: %w", err)
	case refused && expired:
		return nil, fmt.Errorf("the cluster does not accept the token of ServiceAccount %s, which has expired, or does not say when it does. "+
			"With kubectl get namespace %s you see whether a former run has removed the account", d.account.Key(), d.account.Name)
	case refused:
		r.say(`The cluster does not accept the token of ServiceAccount %s, which has not expired: the account is gone. If the cluster refuses
it for another reason, the account is still there, and its administrator removes it:
%s`, d.account.Key(), d.byHand())
		return nil, nil
	}
	return system, nil
}

// wayIn returns how to reach the cluster, and the account's own token if it is by that.
func (r *Registrar) wayIn(ctx context.Context, d *Departure) (*rest.Config, *kubeconfig.Config, error) {
	if r.Cluster != nil {
		return rest.CopyConfig(r.Cluster), nil, nil
	}
	s := &corev1.Secret{} // again: the hub may have renewed the token
	if err := r.Hub.Client.Get(ctx, client.ObjectKeyFromObject(d.secret), s); err != nil {
		return nil, nil, fmt.Errorf("read Secret %s/%s: %w", d.secret.Namespace, d.secret.Name, err)
	}
	config, err := kubeconfig.Parse(s.Data[account.SecretKey], account.Lenient())
	if err != nil {
		return nil, nil, fmt.Errorf("Secret %s/%s: key %q: %w", s.Namespace, s.Name, account.SecretKey, err)
	}
	if of, _, ok := config.Account(); !ok || of != d.account.Key() {
		return nil, nil, fmt.Errorf("Secret %s/%s: the credential in it is no token of ServiceAccount "+
			"%s", s.Namespace, s.Name, d.account.Key())
	}
	return config.RESTConfig(), config, nil
}

// remove deletes the namespace of the account, which owns the rest, and waits until the cluster refuses the account.
func (r *Registrar) remove(ctx context.Context, d *Departure, c client.Client, namespace *unstructured.Unstructured, own bool) error {
	uid := namespace.GetUID()
	binding := d.account.Objects("")
	left, err := read(ctx, c, binding[len(binding)-1])
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("%w on the cluster", err)
	}
	if left != nil && len(left.GetOwnerReferences()) == 0 {
		return errors.New("the account was made from YAML, as for Git, so nothing on the cluster removes its parts together: remove them " +
			"where they were applied from")
	}
	// In the foreground: the binding goes before the name of the namespace is free for somebody else.
	err = c.Delete(ctx, namespace, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Namespace %s on the cluster: %w", d.account.Name, err)
	}
	r.say("Namespace %s deleted on the cluster, with the hub's account", d.account.Name)
	err = until(ctx, min(accountTime, max(r.Wait, accountTime/4)), func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace.DeepCopy())
		// An account that may not even look has lost its binding. The rest goes with the namespace.
		return apierrors.IsNotFound(err) || own && (apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)), nil
	})
	if err != nil {
		return fmt.Errorf("the cluster has not removed Namespace %s within %s: kubectl get namespace %s there says what it waits "+
			"for", d.account.Name,
			accountTime, d.account.Name)
	}
	return nil
}
