// SPDX-License-Identifier: Apache-2.0

package registrar

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// removeAccount removes the hub's account from the cluster: by the account itself, or with the rights of the caller there.
func (r *Registrar) removeAccount(ctx context.Context, d *Departure) error {
	config, own, err := r.wayIn(ctx, d)
	if err != nil {
		return err
	}
	config.Timeout = 15 * time.Second
	c, err := client.New(config, client.Options{Scheme: hubscheme.New()})
	if err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	system := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: "kube-system"}, system); err != nil {
		if own && apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the cluster does not accept the token of ServiceAccount %s: it has expired, or a former run has removed the "+
				"account. "+
				"With kubectl get namespace %s you see which", d.account.Key(), d.account.Name)
		}
		return fmt.Errorf("look which cluster it is: %w", err)
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

// wayIn returns how to reach the cluster, and whether that is by the account's own token.
func (r *Registrar) wayIn(ctx context.Context, d *Departure) (*rest.Config, bool, error) {
	if r.Cluster != nil {
		return rest.CopyConfig(r.Cluster), false, nil
	}
	s := &corev1.Secret{} // again: the hub may have renewed the token
	if err := r.Hub.Client.Get(ctx, client.ObjectKeyFromObject(d.secret), s); err != nil {
		return nil, false, fmt.Errorf("read Secret %s/%s: %w", d.secret.Namespace, d.secret.Name, err)
	}
	config, err := kubeconfig.Parse(s.Data[account.SecretKey], account.Lenient())
	if err != nil {
		return nil, false, fmt.Errorf("Secret %s/%s: key %q: %w", s.Namespace, s.Name, account.SecretKey, err)
	}
	if of, _, ok := config.Account(); !ok || of != d.account.Key() {
		return nil, false, fmt.Errorf("Secret %s/%s: the credential in it is no token of ServiceAccount "+
			"%s", s.Namespace, s.Name, d.account.Key())
	}
	return config.RESTConfig(), true, nil
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
