// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/breaker"
	"github.com/chandler-hub/chandler/internal/origin"
)

func TestStill(t *testing.T) {
	for state, want := range map[string]string{
		"Sleeping": hubv1.ClusterSleepingReason, "WriteLimited": hubv1.ClusterWriteLimitedReason, "Migrating": hubv1.ClusterMigratingReason,
		"Ready": "", "Upgrading": "", "Provisioning": "", "NotReady": "", "ANewOne": "", "": "",
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"kubernetesResources": map[string]any{"version": map[string]any{"status": state}}}}}
		if got := origin.Kamaji.Still(u); got.Reason != want || (want == "") != (got.Message == "") {
			t.Errorf("%q: %+v, want %q", state, got, want)
		}
		if got := origin.ClusterAPI.Still(u); got.Reason != "" {
			t.Errorf("%q of a Cluster: %+v", state, got)
		}
	}
	if got := origin.Kamaji.Still(nil); got.Reason != "" {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestMaintenance(t *testing.T) {
	cases := map[string]struct {
		kind     origin.Kind
		object   string
		want     string
		restarts bool
	}{
		"Upgrading":      {origin.Kamaji, `{status: {kubernetesResources: {version: {status: Upgrading}}}}`, hubv1.ClusterUpgradingReason, true},
		"Rotating":       {origin.Kamaji, `{status: {kubernetesResources: {version: {status: CertificateAuthorityRotating}}}}`, hubv1.ClusterRotatingCAReason, true},
		"Ready":          {origin.Kamaji, `{status: {kubernetesResources: {version: {status: Ready}}}}`, "", false},
		"ANewState":      {origin.Kamaji, `{status: {kubernetesResources: {version: {status: Levitating}}}}`, "", false},
		"Paused":         {origin.ClusterAPI, `{spec: {paused: true}}`, hubv1.ClusterAPIPausedReason, false},
		"PausedByMark":   {origin.ClusterAPI, `{metadata: {annotations: {cluster.x-k8s.io/paused: ""}}}`, hubv1.ClusterAPIPausedReason, false},
		"NotPaused":      {origin.ClusterAPI, `{spec: {paused: false}}`, "", false},
		"PausedIsNoBool": {origin.ClusterAPI, `{spec: {paused: "true"}}`, "", false},
		"OfAnotherKind":  {origin.Secret, `{spec: {paused: true}, metadata: {annotations: {cluster.x-k8s.io/paused: ""}}}`, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.kind.Maintenance(object(t, tc.object))
			if got.Reason != tc.want || (tc.want == "") != (got.Message == "") || got.Restarts != tc.restarts {
				t.Errorf("got %+v, want reason %q, restarts %v", got, tc.want, tc.restarts)
			}
		})
	}
	if got := origin.Kamaji.Maintenance(nil); got != (breaker.State{}) {
		t.Errorf("of nothing: %+v", got)
	}
}
