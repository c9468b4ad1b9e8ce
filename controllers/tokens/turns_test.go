// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/probe"
)

// TestBegins: how many requests of 16 workers a namespace may have under way.
func TestBegins(t *testing.T) {
	for name, tc := range map[string]struct {
		others int
		want   int
	}{"alone": {0, 8}, "beside one": {8, 4}, "beside two": {12, 2}, "beside three": {14, 1}, "always one": {16, 1}} {
		t.Run(name, func(t *testing.T) {
			has := 0
			for begins(has, tc.others+has, 16) {
				has++
			}
			if has != tc.want {
				t.Errorf("it has %d, want %d", has, tc.want)
			}
		})
	}
	if !begins(0, 0, 0) || begins(1, 1, 1) {
		t.Error("of one worker, a namespace has one request")
	}
}

// TestRenewalsTakeTurns: many clusters of one namespace let the hub wait for their tokens. The renewal of another namespace's does not wait for them,
// and they are asked later.
func TestRenewalsTakeTurns(t *testing.T) {
	const workers, many = 4, 12
	m := newRenewable(t, nil)
	m.fixture.Config.Concurrency = workers
	m.clock.SetTime(now.Add(241 * time.Hour))
	for i := range many {
		copied, secret := m.reg.DeepCopy(), m.secret.DeepCopy()
		copied.Name, secret.Name = fmt.Sprint("many", i), fmt.Sprint("many", i)
		copied.Status.Credential.SecretName = secret.Name
		copied.Namespace, secret.Namespace = "crowd", "crowd"
		copied.ResourceVersion, secret.ResourceVersion = "", ""
		for _, o := range []client.Object{copied, secret} {
			if err := m.api.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		until := make(chan struct{})
		m.fixture.Token = func(context.Context, *kubeconfig.Config, types.NamespacedName, time.Duration, probe.Options) (string, time.Time, *probe.Failure) {
			asked.Add(1)
			<-until
			return "", time.Time{}, &probe.Failure{Message: "not now"}
		}
		results := make(chan ctrl.Result, many)
		look := func(namespace, name string) ctrl.Result {
			res, err := m.fixture.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
			if err != nil {
				t.Error(err)
			}
			return res
		}
		for i := range many {
			go func() { results <- look("crowd", fmt.Sprint("many", i)) }()
			synctest.Wait()
		}
		if asked.Load() != workers/2 || len(results) != many-workers/2 {
			t.Errorf("%d of one namespace are asked at a time, and %d wait for their turn", asked.Load(), len(results))
		}
		for range len(results) {
			if res := <-results; res.RequeueAfter < time.Second || res.RequeueAfter > 10*time.Second {
				t.Errorf("one is looked at again after %s", res.RequeueAfter)
			}
		}
		go look(cluster.Namespace, cluster.Name)
		if synctest.Wait(); asked.Load() != workers/2+1 {
			t.Error("another namespace's has to wait")
		}
		close(until)
		synctest.Wait()
		look("crowd", "many10")
		if asked.Load() != workers/2+2 {
			t.Error("nobody's turn comes any more")
		}
	})
}
