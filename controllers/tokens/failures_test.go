// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/probe"
)

// TestFailuresAreForgotten: when a cluster that has given no token is asked again is remembered while it is registered, and a delivery of the
// namespace is there or its time is not over. Otherwise somebody who deletes his deliveries has the cluster asked at once.
func TestFailuresAreForgotten(t *testing.T) {
	m := newFixture(t)
	api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(m.reg, m.team, m.rights, m.delivery, m.adminSecret()).Build()
	clock := clocktesting.NewFakeClock(now)
	r := &Reconciler{Client: api, Live: api, Clock: clock, Recorder: events.NewFakeRecorder(100),
		Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}, Rules: rules()},
		Token: func(context.Context, *kubeconfig.Config, types.NamespacedName, time.Duration, probe.Options) (string, time.Time, *probe.Failure) {
			return "", time.Time{}, &probe.Failure{Reason: probe.ReasonForbidden}
		}}
	look := func(want int, why string) {
		t.Helper()
		must.Get(r.Reconcile(t.Context(), reconcile.Request{NamespacedName: cluster})).Or(t)
		if n := r.failures.of.Len(); n != want {
			t.Errorf("%d clusters are remembered, want %d: %s", n, want, why)
		}
	}
	remove := func(obj client.Object) {
		t.Helper()
		must.Do(t, api.Delete(t.Context(), obj))
	}
	look(1, "it gives no token")
	remove(m.delivery)
	look(1, "its time is not over")
	clock.Step(firstRetry)
	look(0, "no delivery is there")
	m.delivery.ResourceVersion = ""
	must.Do(t, api.Create(t.Context(), m.delivery))
	look(1, "it gives no token to another delivery")
	remove(m.reg)
	look(0, "somebody has deleted the registration")
	if !answersOrMoves().Delete(event.DeleteEvent{Object: m.reg}) {
		t.Error("the controller does not hear of that")
	}
}
