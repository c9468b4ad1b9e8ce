// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
)

func TestStill(t *testing.T) {
	for state, want := range map[string]string{
		"Sleeping": hubv1.ClusterSleepingReason, "WriteLimited": hubv1.ClusterWriteLimitedReason,
		"Ready": "", "Upgrading": "", "Provisioning": "", "NotReady": "", "ANewOne": "", "": "",
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"kubernetesResources": map[string]any{"version": map[string]any{"status": state}}}}}
		if got := origin.Still(origin.Kamaji, u); got.Reason != want || (want == "") != (got.Message == "") {
			t.Errorf("%q: %+v, want %q", state, got, want)
		}
		if got := origin.Still(origin.ClusterAPI, u); got.Reason != "" {
			t.Errorf("%q of a Cluster: %+v", state, got)
		}
	}
	if got := origin.Still(origin.Kamaji, nil); got.Reason != "" {
		t.Errorf("of nothing: %+v", got)
	}
}
