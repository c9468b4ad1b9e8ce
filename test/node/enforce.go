// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/chandler-hub/chandler/test/node/netpolicy"
)

// enforcer has the NetworkPolicies of a cluster hold on the node. No controller that does is a module that can be built.
type enforcer struct {
	client client.Client // reads from a cache
	last   string
	first  chan struct{} // closed when the policies hold
}

// enforce has NetworkPolicies hold until the context ends. It returns when they do.
func (n *Node) enforce(ctx context.Context) error {
	mgr, err := ctrl.NewManager(n.Config, ctrl.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}, GracefulShutdownTimeout: ptr.To(time.Duration(0)),
	})
	if err != nil {
		return err
	}
	e := &enforcer{client: mgr.GetClient(), first: make(chan struct{})}
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request { return []ctrl.Request{{}} })
	if err := ctrl.NewControllerManagedBy(mgr).Named("networkpolicies").
		Watches(&networkingv1.NetworkPolicy{}, all).Watches(&corev1.Pod{}, all).Watches(&corev1.Namespace{}, all).
		WithOptions(controller.Options{SkipNameValidation: ptr.To(true)}).Complete(e); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case <-e.first:
		return nil
	case err := <-ended:
		return fmt.Errorf("NetworkPolicies: %w", err)
	}
}

// Reconcile writes the rules of all policies.
func (e *enforcer) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	policies, pods, namespaces := &networkingv1.NetworkPolicyList{}, &corev1.PodList{}, &corev1.NamespaceList{}
	for _, list := range []client.ObjectList{policies, pods, namespaces} {
		if err := e.client.List(ctx, list); err != nil {
			return ctrl.Result{}, err
		}
	}
	err := e.write(ctx, netpolicy.Set{Policies: policies.Items, Pods: pods.Items, Namespaces: namespaces.Items})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "NetworkPolicies do not hold:", err)
	}
	return ctrl.Result{}, err
}

func (e *enforcer) write(ctx context.Context, p netpolicy.Set) error {
	script, err := p.Script()
	if err != nil || script == e.last {
		return err
	}
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s\n%s", err, out, script)
	}
	if e.last == "" {
		close(e.first)
	}
	e.last = script
	return nil
}
