// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/render"
)

// A namespace that was a platform namespace may still deliver to clusters that its sets do not reach any more: what is there of it stays in
// everybody's way until it is withdrawn, since Flux is at work from there. But whoever writes AddonDeliveries and Flux objects in a namespace of his
// own can make it look so for any cluster. What he cannot make is the cluster's kubeconfig. Without that Flux does nothing there, and what lies
// there is nobody's business.

// lookOutside ignores a delivery out of reach in a namespace that does not have the cluster's kubeconfig.
func (r *Reconciler) lookOutside(ctx context.Context, c *cluster, d *delivery) error {
	if d.Standing != provenance.Held || d.Reason != hubv1.OutOfReachReason {
		return nil
	}
	acts, known := c.acts[d.Namespace]
	if !known {
		var err error
		if acts, err = r.hasKubeconfig(ctx, c, d.Namespace); err != nil {
			return err
		}
		c.acts[d.Namespace] = acts
	}
	if !acts {
		d.Standing = provenance.Ignored
		d.Message = fmt.Sprintf("namespace %q is not a platform namespace (any more), and does not have the present kubeconfig of ClusterRegistration %s. The delivery is ignored, and what is there of it is left to Flux; delete it",
			d.Namespace, c.key)
	}
	return nil
}

// hasKubeconfig returns whether the mirror in a namespace holds what Flux gets at the cluster by. While nobody knows what that is, nothing is made for
// the cluster either, and it may be so.
func (r *Reconciler) hasKubeconfig(ctx context.Context, c *cluster, namespace string) (bool, error) {
	if c.registration == nil || c.registration.Status.Credential == nil {
		return true, nil
	}
	if c.unprobed() {
		return false, nil // anybody can write down how Flux is to log in
	}
	fingerprint := c.registration.Status.Credential.Fingerprint
	there, err := r.mirrorThere(ctx, r.Client, c, secretKind, namespace)
	if err != nil || there == nil || there.Annotations[hubv1.FingerprintAnnotation] != fingerprint {
		return false, ignoreNotOwned(err)
	}
	mirror := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(there), mirror); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	config, err := kubeconfig.Parse(mirror.Data[render.MirrorKey], r.Config.RulesFor(c.registration))
	return err == nil && config.Fingerprint() == fingerprint, nil
}
