// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// Ask fills in Hub with the configuration that the hub publishes in its namespace. flags were made by Hub's own
// methods; a flag that the user has set keeps its value. If the hub publishes nothing, or the caller may not read it,
// the defaults apply.
func (r *Reader) Ask(ctx context.Context, namespace string, flags *pflag.FlagSet) error {
	published := &corev1.ConfigMap{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hubconfig.ConfigMapName}, published)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("read ConfigMap %s/%s: %w", namespace, hubconfig.ConfigMapName, err)
	}
	if err := hubconfig.Adopt(flags, published.Data); err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", namespace, hubconfig.ConfigMapName, err)
	}
	if err := r.Hub.TakeRegistrationRules(published.Data); err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", namespace, hubconfig.ConfigMapName, err)
	}
	return r.Hub.Complete(namespace)
}

// Published returns the flags that the hub publishes; nil if it publishes none, or the caller may not read them.
func (r *Reader) Published(ctx context.Context, namespace string) map[string]string {
	published := &corev1.ConfigMap{}
	if r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hubconfig.ConfigMapName}, published) != nil {
		return nil
	}
	return published.Data
}

// Rules returns the rules by which the hub checks kubeconfigs, as it publishes them. If it is not known which they are, it says why, and
// they are those of a hub without flags.
func (r *Reader) Rules(ctx context.Context, namespace string) (rules kubeconfig.Rules, unknown string, err error) {
	where := fmt.Sprintf("ConfigMap %s/%s", namespace, hubconfig.ConfigMapName)
	published := &corev1.ConfigMap{}
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hubconfig.ConfigMapName}, published)
	switch {
	case apierrors.IsForbidden(err):
		return rules, "you may not read " + where, nil
	case apierrors.IsNotFound(err):
		return rules, "there is no " + where + " (--hub-namespace)", nil
	case err != nil:
		return rules, "", fmt.Errorf("read %s: %w", where, err)
	}
	rules, whole, err := hubconfig.PublishedRules(published.Data)
	if err != nil {
		return rules, "", fmt.Errorf("%s: %w", where, err)
	}
	if !whole {
		unknown = where + " has none, or not all: it is that of another version of the hub"
	}
	return rules, unknown, nil
}
