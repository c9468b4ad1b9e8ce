// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/plan"
)

// The Flux objects of a new cluster are written beside each other: none waits for the API server's answer to another one. One that fails
// stops no other, and each comes to what its own write came to.
func TestObjectsAreWrittenBesideEachOther(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"), releaseAddon("web"), releaseAddon("db"))...)
	m.r.Config.WritesOfCluster = 8
	refused := errors.New("refused")
	var mu sync.Mutex
	var underWay []string
	all := make(chan struct{})
	m.r.Client = interceptor.NewClient(m.api, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			o, ok := obj.(interface{ GetLabels() map[string]string })
			if ok && o.GetLabels()[hubv1.AddonLabel] != "" {
				mu.Lock()
				if underWay = append(underWay, o.GetLabels()[hubv1.AddonLabel]); len(underWay) == 3 {
					close(all)
				}
				mu.Unlock()
				select {
				case <-all:
				case <-time.After(10 * time.Second):
					t.Error("the writes wait for each other")
				}
				if o.GetLabels()[hubv1.AddonLabel] == "web" {
					return refused
				}
			}
			mu.Lock()
			defer mu.Unlock()
			return c.Apply(ctx, obj, opts...)
		},
	})
	if err := m.reconcile(testCluster); !errors.Is(err, refused) {
		t.Errorf("got error %v, want the refusal of one write", err)
	}
	for _, name := range []string{"app", "web", "db"} {
		if got, want := m.object(testCluster, name) != nil, name != "web"; got != want {
			t.Errorf("%s: made %t, want %t", name, got, want)
		}
		a := m.delivery(testCluster, testSet).Status.Addons
		for i := range a {
			if a[i].Name == name && (a[i].State == hubv1.AddonFailed) != (name == "web") {
				t.Errorf("%s is %s: %s", name, a[i].State, a[i].Message)
			}
		}
	}
	m.r.Client = m.api
	m.settle()
	for _, a := range m.delivery(testCluster, testSet).Status.Addons {
		if a.State != hubv1.AddonReady || a.AppliedGeneration != 1 {
			t.Errorf("%s is %s at %d: %s", a.Name, a.State, a.AppliedGeneration, a.Message)
		}
	}
}

// Only writes that come in a row are carried out together.
func TestTogether(t *testing.T) {
	key := func(name string) plan.Key {
		return plan.Key{Kind: fluxspec.HelmReleaseKind, Namespace: "flux-system", Name: name}
	}
	step := func(verb plan.Verb, name string) plan.Step { return plan.Step{Verb: verb, Key: key(name)} }
	cases := map[string]struct {
		steps []plan.Step
		most  int
		want  int
	}{
		"AllWrites":       {[]plan.Step{step(plan.Create, "a"), step(plan.Update, "there"), step(plan.Create, "b")}, 8, 3},
		"NoMoreThanMay":   {[]plan.Step{step(plan.Create, "a"), step(plan.Create, "b"), step(plan.Create, "c")}, 2, 2},
		"NoSettingIsOne":  {[]plan.Step{step(plan.Create, "a"), step(plan.Create, "b")}, 0, 1},
		"ARemovalBetween": {[]plan.Step{step(plan.Create, "a"), step(plan.HandOver, "there"), step(plan.Create, "b")}, 8, 1},
		"ARemovalFirst":   {[]plan.Step{step(plan.Uninstall, "there"), step(plan.Create, "a")}, 8, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := together(tc.steps, tc.most); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
