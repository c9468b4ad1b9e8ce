// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/memory"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// A namespace that was a platform namespace may still deliver to clusters that its sets do not reach any more. Its
// objects block other sets until they are withdrawn, since Flux reconciles them. But each user who may write
// AddonDeliveries and Flux objects in a namespace can make it look like that, for any cluster. He cannot make the
// cluster's kubeconfig. Without the kubeconfig Flux does nothing there, and the objects are ignored.

// lookOutside ignores a delivery out of reach in a namespace that does not have the cluster's kubeconfig.
func (r *Reader) lookOutside(ctx context.Context, c *Cluster, d *Delivery) error {
	if d.Standing != provenance.Held || d.Reason != hubv1.OutOfReachReason {
		return nil
	}
	if c.Reach[d.Namespace].ByTeam() {
		return nil // what it has is a scope of its own, so that a forged one concerns no other
	}
	if was, err := r.wasTeams(ctx, c, d); err != nil || was {
		return err
	}
	seen, known := c.outside[d.Namespace]
	if !known {
		var err error
		if seen, err = r.lookInto(ctx, c, d.Namespace); err != nil {
			return err
		}
		c.outside[d.Namespace] = seen
	}
	if !seen.Acts {
		d.Standing = provenance.Ignored
		d.Message = fmt.Sprintf("namespace %q is not a platform namespace (any more), and does not have the present kubeconfig "+
			"of ClusterRegistration %s. The delivery is ignored, and what is there of it is left to Flux; delete it",
			d.Namespace, c.Key)
	}
	return nil
}

// wasTeams returns whether a Team governed the namespace of a delivery when it was delivered: the hub has reported on it,
// and the namespace has a kubeconfig with a team's token. Only the hub writes the former.
func (r *Reader) wasTeams(ctx context.Context, c *Cluster, d *Delivery) (bool, error) {
	if len(d.Status.Addons) == 0 {
		return false, nil
	}
	there, err := r.CopyThere(ctx, r.Client, c, SecretKind, d.Namespace)
	was := there != nil && there.Labels[hubv1.CopyLabel] == identity.TeamCopy
	c.wasTeam[d.Namespace] = c.wasTeam[d.Namespace] || was
	return was, IgnoreNotOwned(err)
}

// look is what was seen of a cluster's kubeconfig in a namespace: the Secret, the fingerprint that was looked for,
// and whether Flux reaches the cluster with it.
type look struct {
	uid                  types.UID
	version, fingerprint string
	Acts                 bool
}

// Looks are what was seen of each cluster in the namespaces out of reach that have deliveries to it. Otherwise
// a user who writes many such deliveries would have a Secret read in every reconcile of those clusters.
type Looks = memory.Map[types.NamespacedName, map[string]look]

// lookInto returns whether the kubeconfig copy in a namespace holds what Flux reaches the cluster with. If that is not known
// yet, it returns that it may be so: nothing is made for the cluster then either.
func (r *Reader) lookInto(ctx context.Context, c *Cluster, namespace string) (look, error) {
	if c.Registration == nil || c.Registration.Status.Credential == nil {
		return look{Acts: true}, nil
	}
	if c.Unprobed() {
		return look{}, nil // each user can write down how Flux is to log in
	}
	fingerprint := c.Registration.Status.Credential.Fingerprint
	there, err := r.CopyThere(ctx, r.Client, c, SecretKind, namespace)
	if err != nil || there == nil || there.Annotations[hubv1.FingerprintAnnotation] != fingerprint {
		return look{}, IgnoreNotOwned(err)
	}
	looks, _ := r.Looks.Get(c.Key)
	if seen := looks[namespace]; seen.uid == there.UID && seen.version == there.ResourceVersion &&
		seen.fingerprint == fingerprint {
		return seen, nil
	}
	copied := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(there), copied); err != nil {
		return look{}, client.IgnoreNotFound(err)
	}
	config, err := kubeconfig.Parse(copied.Data[flux.KubeconfigKey], r.Config.RulesFor(c.Registration))
	return look{copied.UID, copied.ResourceVersion, fingerprint, err == nil && config.Fingerprint() == fingerprint}, nil
}
