// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
)

// orphanEvents returns what has been told of orphans.
func (m *fixture) orphanEvents() []string {
	var out []string
	for {
		select {
		case e := <-m.events.Events:
			if strings.Contains(e, hubv1.AddonOrphanedEvent) {
				out = append(out, e)
			}
		default:
			return out
		}
	}
}

// TestTellOvertaken: what Flux has applied in part, and not in whole, it never notes if it is to apply something else then.
func TestTellOvertaken(t *testing.T) {
	marked := plan.Observed{AppliedAs: "a", Mark: "1 a"}
	never := kustomizev1.KustomizationStatus{History: fluxmeta.History{{TotalReconciliations: 1}}}
	failed := func(of, succeeded int64) kustomizev1.KustomizationStatus {
		return kustomizev1.KustomizationStatus{ObservedGeneration: succeeded, LastAppliedRevision: "main@sha1:0", Conditions: []metav1.Condition{
			{Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "ReconciliationFailed", ObservedGeneration: of}}}
	}
	stalled := failed(3, 3)
	stalled.Conditions[0].Reason = fluxmeta.InvalidCELExpressionReason
	for name, tc := range map[string]struct {
		there   plan.Observed
		version string
		live    *kustomizev1.KustomizationStatus
		to      string
		want    bool
	}{
		"it failed with the folder before":                {marked, "main@sha1:0", new(failed(2, 1)), "./c", true},
		"it has stalled, and may have failed before that": {marked, "main@sha1:0", &stalled, "./c", true},
		"it goes back":                          {marked, "main@sha1:0", new(failed(2, 1)), "./a", true},
		"the folder stays":                      {marked, "main@sha1:0", new(failed(2, 1)), "./b", false},
		"Flux has not come to that":             {marked, "main@sha1:0", new(failed(1, 1)), "./c", false},
		"it has succeeded, as the cache lags":   {marked, "main@sha1:0", new(failed(3, 2)), "./c", false},
		"it has never succeeded":                {plan.Observed{}, "", &never, "./c", true},
		"it has never been tried":               {plan.Observed{}, "", &kustomizev1.KustomizationStatus{}, "./c", false},
		"it has succeeded":                      {plan.Observed{}, "main@sha1:0", &never, "./c", false},
		"it is gone, and nothing is made of it": {marked, "main@sha1:0", nil, "./c", false},
	} {
		t.Run(name, func(t *testing.T) {
			m, d := newFixture(t), leaving()
			c := passOf(&observed.Cluster{Key: testCluster, Now: m.clock.Now(), Objects: map[plan.Key]*observed.Object{}}, d)
			k := plan.Key{Kind: fluxspec.KustomizationKind, Namespace: "flux-system", Name: "one-app"}
			tc.there.Key, tc.there.Addon, tc.there.Folder = k, "app", plan.FolderOf("./b")
			if tc.live != nil {
				m.must(m.api.Create(t.Context(), &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}, Status: *tc.live}))
			}
			w := &assembly.Wanted{Object: render.Object{Addon: "app", Kind: k.Kind, Path: tc.to}}
			m.must(m.r.tellOvertaken(t.Context(), c, d, w, &observed.Object{Observed: tc.there, State: fluxstate.State{Version: tc.version}}))
			if got := m.orphanEvents(); len(got) > 0 != tc.want || tc.want && (!strings.Contains(got[0], `"app"`) || !strings.Contains(got[0], testCluster.String())) {
				t.Errorf("told: %v", got)
			}
		})
	}
}
