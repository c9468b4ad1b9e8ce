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
	published, where, err := r.published(ctx, namespace)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return err
	}
	if err := hubconfig.Adopt(flags, published); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if err := r.Hub.TakeRegistrationRules(published); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return r.Hub.Complete(namespace)
}

// Published returns the flags that the hub publishes; nil if it publishes none, or the caller may not read them.
func (r *Reader) Published(ctx context.Context, namespace string) map[string]string {
	published, _, _ := r.published(ctx, namespace)
	return published
}

// published reads the ConfigMap with the flags of the hub. where says which one it is.
func (r *Reader) published(ctx context.Context, namespace string) (flags map[string]string, where string, err error) {
	where = fmt.Sprintf("ConfigMap %s/%s", namespace, hubconfig.ConfigMapName)
	m := &corev1.ConfigMap{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hubconfig.ConfigMapName}, m); err != nil {
		return nil, where, fmt.Errorf("read %s: %w", where, err)
	}
	return m.Data, where, nil
}

// Rules returns the rules by which the hub checks kubeconfigs, as it publishes them. If it is not known which they are, it says why, and
// they are those of a hub without flags.
func (r *Reader) Rules(ctx context.Context, namespace string) (rules kubeconfig.Rules, unknown string, err error) {
	published, where, err := r.published(ctx, namespace)
	switch {
	case apierrors.IsForbidden(err):
		return rules, "you may not read " + where, nil
	case apierrors.IsNotFound(err):
		return rules, "there is no " + where + " (--hub-namespace)", nil
	case err != nil:
		return rules, "", err
	}
	rules, whole, err := hubconfig.PublishedRules(published)
	if err != nil {
		return rules, "", fmt.Errorf("%s: %w", where, err)
	}
	if !whole {
		unknown = where + " has none, or not all: it is that of another version of the hub"
	}
	return rules, unknown, nil
}
