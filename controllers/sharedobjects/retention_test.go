// SPDX-License-Identifier: Apache-2.0

package sharedobjects

import (
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// TestRetentionBeginsWithTheLastUse: what was asked for long ago, and used ever since, is kept for its time when its last user goes.
func TestRetentionBeginsWithTheLastUse(t *testing.T) {
	source := &sourcev1.HelmRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "charts", Labels: map[string]string{hubv1.SourceLabel: "hub"}}}
	api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(source).Build()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := &Keeper{Client: api, Live: api, Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub"}, ChartRetention: time.Minute}, Clock: clock}
	whole := must.Get(runtime.DefaultUnstructuredConverter.ToUnstructured(source)).Or(t)
	u := &unstructured.Unstructured{Object: whole}
	u.SetGroupVersionKind(sourcev1.GroupVersion.WithKind(sourcev1.HelmRepositoryKind))
	must.Get(k.Ensure(t.Context(), &flux.Shared{Object: u})).Or(t)
	clock.SetTime(clock.Now().Add(time.Hour))
	got, err := k.reconcile(t.Context(), id{sourcev1.HelmRepositoryKind, client.ObjectKeyFromObject(source)})
	if err != nil || got.RequeueAfter < time.Minute {
		t.Errorf("looks again after %s, %v", got.RequeueAfter, err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(source), &sourcev1.HelmRepository{}); err != nil {
		t.Error(err)
	}
}
