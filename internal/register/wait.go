// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/clusterreader"
	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/status"
)

// Reachable waits until the hub reaches the cluster with what Apply has written. If it does not, it prints what
// `chandler explain` says of the cluster.
func (r *Registrar) Reachable(ctx context.Context, w *Work) error {
	var reg *hubv1.ClusterRegistration
	told, began := "", time.Now()
	err := until(ctx, r.Wait, func(ctx context.Context) (bool, error) {
		found, err := r.registered(ctx, w.req.Name)
		if err != nil || found == nil {
			return false, err
		}
		reg = found
		state := standing(reg)
		if state != told {
			r.say("ClusterRegistration %s: %s", w.req.Name, state)
		}
		told = state
		valid := status.Find(reg, hubv1.KubeConfigValidCondition)
		if valid != nil && valid.Status == metav1.ConditionFalse && time.Since(began) > settled {
			return false, fmt.Errorf("the hub does not accept the kubeconfig (%s): %s", valid.Reason, valid.Message)
		}
		c := reg.Status.Credential
		return status.Online(reg) && c != nil && c.Fingerprint == w.current.Fingerprint(), nil
	})
	if err == nil {
		return nil
	}
	if reg != nil {
		if in, failed := clusterreader.Read(ctx, &r.Hub, reg, "", time.Now()); failed == nil {
			r.say("")
			_ = explain.Cluster(in).Print(r.Out)
		}
	}
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	case reg == nil:
		return fmt.Errorf("the hub has not registered the cluster within %s: is it running, and is it the one with --hub-id %s? "+
			"kubectl -n %s describe secret %s shows its events", r.Wait, r.Hub.Hub.HubID, w.req.Name.Namespace, w.req.Name.Name)
	}
	return fmt.Errorf("the hub has not reached the cluster within %s; it goes on trying, and chandler explain %s says how that "+
		"goes", r.Wait, w.req.Name)
}

// settled is after how long the hub has seen what was written: before, it may still say what it thinks of what was there.
const settled = 10 * time.Second

// registered returns a registration; nil if there is none.
func (r *Registrar) registered(ctx context.Context, name types.NamespacedName) (*hubv1.ClusterRegistration, error) {
	reg := &hubv1.ClusterRegistration{}
	if err := r.Hub.Client.Get(ctx, name, reg); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read ClusterRegistration %s: %w", name, err)
	}
	return reg, nil
}

// standing says in a line how the hub stands to a cluster.
func standing(reg *hubv1.ClusterRegistration) string {
	c := status.Find(reg, hubv1.ReachableCondition)
	if c == nil {
		return "the hub has not looked at it yet"
	}
	return c.Message
}
