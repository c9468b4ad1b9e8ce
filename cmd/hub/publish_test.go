// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/must"
)

// TestPublish: the ConfigMap says what the hub was started with, and a restart with the same flags writes nothing.
func TestPublish(t *testing.T) {
	writes := 0
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, o ...client.ApplyOption) error {
			writes++
			return c.Apply(ctx, obj, o...)
		},
	}).Build()
	for _, step := range []struct {
		id     string
		writes int
	}{{"east", 1}, {"east", 1}, {"west", 2}} {
		p := &publisher{client: c, live: c, namespace: "hub", data: (&hubconfig.Shared{HubID: step.id}).Published()}
		must.Do(t, p.Start(t.Context()))
		got := &corev1.ConfigMap{}
		must.Do(t, c.Get(t.Context(), client.ObjectKey{Namespace: "hub", Name: "chandler-hub"}, got))
		if d := cmp.Diff(p.data, got.Data); d != "" || writes != step.writes {
			t.Errorf("%s: %d writes, want %d; -want +got:\n%s", step.id, writes, step.writes, d)
		}
	}
}
