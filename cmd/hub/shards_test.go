// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/must"
)

// controllerOf is a Deployment of a controller of Flux for a shard; "" is the one for the rest.
func controllerOf(namespace, component, shard string) *appsv1.Deployment {
	selector := "!sharding.fluxcd.io/key"
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component}}
	if shard != "" {
		d.Name += "-" + shard
		selector = "sharding.fluxcd.io/key=" + shard
	}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "ghcr.io/fluxcd/" + component + ":v1.8.0@sha256:0123",
		Args: []string{"--events-addr=http://notification-controller", "--watch-all-namespaces=true", "--log-level", "info", "--watch-label-selector=" + selector}}}
	return d
}

// fluxOf are the controllers of a Flux with shards.
func fluxOf(namespace string, shards ...string) []client.Object {
	var out []client.Object
	for _, s := range append(shards, "") {
		out = append(out, controllerOf(namespace, "kustomize-controller", s), controllerOf(namespace, "helm-controller", s))
	}
	return out
}

func published(shards string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: hubconfig.ConfigMapName},
		Data: map[string]string{"hub-id": "x", hubconfig.FlagFluxShards: shards}}
}

func TestLearnShards(t *testing.T) {
	stopped := controllerOf("flux-system", "helm-controller", "b")
	stopped.Spec.Replicas = ptr.To(int32(0))
	for name, tc := range map[string]struct {
		there []client.Object
		want  []string
	}{
		"NoFlux":         {nil, nil},
		"NotSharded":     {fluxOf("flux-system"), nil},
		"Two":            {fluxOf("flux-system", "a", "b"), []string{"a", "b"}},
		"OfATenant":      {fluxOf("flux-system", "a", "t"), []string{"a"}},
		"Elsewhere":      {fluxOf("team", "a", "b"), nil}, // a Deployment of another namespace decides nothing
		"OneKind":        {append(fluxOf("flux-system", "a"), controllerOf("flux-system", "kustomize-controller", "b")), []string{"a"}},
		"Stopped":        {append(fluxOf("flux-system", "a"), controllerOf("flux-system", "kustomize-controller", "b"), stopped), []string{"a"}},
		"Published":      {append(fluxOf("flux-system", "a"), published("a,b")), []string{"a", "b"}}, // b may be about to come back
		"PublishedNone":  {append(fluxOf("flux-system", "a"), published("")), nil},
		"PublishedFirst": {append(fluxOf("flux-system"), published("a")), []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(tc.there...).Build()
			s := &shards{client: c, live: c, flux: "flux-system", hub: "hub"}
			if got, err := s.learn(t.Context(), []string{"t"}); err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

// TestShardsChange: another shard counts when it has lasted, is published for the next process, and ends this one. What comes back in time
// does not count.
func TestShardsChange(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(append(fluxOf("flux-system", "a"), published("a"))...).Build()
	of := func(leads bool) *shards {
		s := &shards{client: c, live: c, leads: func() bool { return leads }, flux: "flux-system", hub: "hub"}
		must.Get(s.learn(t.Context(), nil)).Or(t)
		return s
	}
	s, standby, now := of(true), of(false), time.Now()
	looks := func(minutes int) {
		t.Helper()
		for range minutes {
			now = now.Add(time.Minute)
			if err := errors.Join(s.look(t.Context(), now), standby.look(t.Context(), now)); err != nil {
				t.Fatalf("too soon: %v", err)
			}
		}
	}
	second := func(do func(client.Object) error) {
		t.Helper()
		for _, o := range fluxOf("flux-system", "b")[:2] {
			must.Do(t, do(o))
		}
	}
	comes := func(o client.Object) error { return c.Create(t.Context(), o) }
	second(comes)
	looks(4)
	second(func(o client.Object) error { return c.Delete(t.Context(), o) })
	looks(1)
	second(comes)
	looks(5)
	if err := standby.look(t.Context(), now.Add(time.Minute)); err != nil {
		t.Errorf("the standby publishes others, or ends: %v", err)
	}
	if other := (errShards{}); !errors.As(s.look(t.Context(), now.Add(time.Minute)), &other) || !slices.Equal(other.now, []string{"a", "b"}) {
		t.Errorf("it goes on, or ends with %+v", other)
	}
	// The standby leads before it has looked again: what it publishes does not undo that, and it starts again as well.
	p := &publisher{client: c, live: c, namespace: "hub", data: map[string]string{"hub-id": "x", hubconfig.FlagFluxShards: "a"}, learned: []string{hubconfig.FlagFluxShards}}
	must.Do(t, p.publish(t.Context()))
	if other := (errShards{}); !errors.As(standby.look(t.Context(), now.Add(2*time.Minute)), &other) || !slices.Equal(other.now, []string{"a", "b"}) {
		t.Errorf("the standby goes on, or ends with %+v", other)
	}
	if next := of(false); !slices.Equal(next.known, []string{"a", "b"}) {
		t.Errorf("the next process learns %q", next.known)
	}
}
