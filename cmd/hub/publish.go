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
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
)

// publisher writes the hub's shared flags into a ConfigMap in its namespace, so that users need not repeat them for
// the command line. The hub itself reads only the shards there.
type publisher struct {
	client    client.Client
	live      client.Reader
	namespace string
	data      map[string]string
	// learned are the keys whose values stay as a process before has published them.
	learned []string
}

// newPublisher makes the publisher of a hub in a namespace. Shards that the hub has learned stay as they are published: a process that has
// learned others starts again with these.
func newPublisher(mgr manager.Manager, namespace string, config *hubconfig.Config) *publisher {
	p := &publisher{client: mgr.GetClient(), live: mgr.GetAPIReader(), namespace: namespace, data: config.Published()}
	if config.LearnShards {
		p.learned = []string{hubconfig.FlagFluxShards}
	}
	return p
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
	data := maps.Clone(p.data)
	for _, key := range p.learned {
		if value, ok := there.Data[key]; ok {
			data[key] = value
		}
	}
	if err == nil && maps.Equal(there.Data, data) {
		return nil
	}
	want := corev1ac.ConfigMap(hubconfig.ConfigMapName, p.namespace).WithData(data)
	if err := p.client.Apply(ctx, want, client.FieldOwner(hubv1.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", p.namespace, hubconfig.ConfigMapName, err)
	}
	return nil
}
