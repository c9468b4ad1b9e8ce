// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
)

// namesake reports that an origin with the registration's name asks to be registered, and that discovery does not
// register it: a user has written the registration, perhaps for another cluster.
func (r *Reconciler) namesake(ctx context.Context, reg *hubv1.ClusterRegistration) error {
	message, err := r.ignored(ctx, reg)
	if err != nil {
		return err
	}
	if message == "" {
		status.Clear(reg, hubv1.OriginIgnoredCondition)
		return nil
	}
	status.Set(reg, hubv1.OriginIgnoredCondition, metav1.ConditionTrue, hubv1.WrittenByHandReason, message, r.Clock.Now())
	return nil
}

// ignored returns the origin that is not registered because of a registration; "" for none. It reads the cache only.
func (r *Reconciler) ignored(ctx context.Context, reg *hubv1.ClusterRegistration) (string, error) {
	if reg.Spec.OriginRef != nil || reg.Spec.KubeConfig == nil {
		return "", nil
	}
	asking, err := r.Origins.Asking(ctx, client.ObjectKeyFromObject(reg))
	if err != nil {
		return "", err
	}
	for _, one := range asking {
		list := &hubv1.ClusterRegistrationList{}
		if err := r.Client.List(ctx, list, client.InNamespace(reg.Namespace),
			client.MatchingFields{index.RegistrationOrigin: index.Origin(one.Kind.Reference(one.Name))},
			client.UnsafeDisableDeepCopy); err != nil {
			return "", fmt.Errorf("look for the registration of %s %s: %w", one.Kind.Kind, one.Name, err)
		}
		if len(list.Items) == 0 { // else it was registered under another name, before this one came
			return one.Kind.Ignored(one.Name), nil
		}
	}
	return "", nil
}

// named returns the registration of the name that an origin would get, if it has no origin.
func (r *Reconciler) named(ctx context.Context, kind origin.Kind, obj client.Object) []reconcile.Request {
	reg := &hubv1.ClusterRegistration{}
	key := client.ObjectKeyFromObject(obj)
	if by := r.Config.Origins.Ruling(kind, obj); by != nil {
		key.Name = by.Name
	}
	if err := r.Client.Get(ctx, key, reg, client.UnsafeDisableDeepCopy); err != nil || reg.Spec.OriginRef != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}
