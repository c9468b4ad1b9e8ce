// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
)

// publisher writes the hub's shared flags into a ConfigMap in its namespace, so that users need not repeat them for
// the command line. The hub itself never reads it.
type publisher struct {
	client    client.Client
	live      client.Reader
	namespace string
	data      map[string]string
}

// Start implements manager.Runnable: the leader writes once. If that fails, the hub logs it and serves the fleet all
// the same.
func (p *publisher) Start(ctx context.Context) error {
	if err := p.publish(ctx); err != nil {
		ctrl.Log.WithName("publisher").Error(err, "the command line cannot ask this hub for its flags")
	}
	return nil
}

func (p *publisher) publish(ctx context.Context) error {
	there := &corev1.ConfigMap{}
	err := p.live.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: hubconfig.ConfigMapName}, there)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %s/%s: %w", p.namespace, hubconfig.ConfigMapName, err)
	}
	if err == nil && maps.Equal(there.Data, p.data) {
		return nil
	}
	want := corev1ac.ConfigMap(hubconfig.ConfigMapName, p.namespace).WithData(p.data)
	if err := p.client.Apply(ctx, want, client.FieldOwner(hubv1.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", p.namespace, hubconfig.ConfigMapName, err)
	}
	return nil
}
