// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
)

// TestLookAroundLease: another hub is there if the Lease is its, and it has not been silent for an hour.
func TestLookAroundLease(t *testing.T) {
	for name, tc := range map[string]struct {
		installation string
		renewed      time.Duration
		want         string
	}{
		"the one that is looked for": {installation: "chandler-system"},
		"another one":                {installation: "other", want: "other"},
		"another one, restarting":    {installation: "other", renewed: 50 * time.Minute, want: "other"},
		"another one, long gone":     {installation: "other", renewed: 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: hubconfig.LeaseNamespace, Name: hubconfig.LeaseName,
				Labels: map[string]string{hubconfig.InstallationLabel: tc.installation}}}
			lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-tc.renewed)}
			api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(lease).Build()
			there, err := Look(t.Context(), api, "chandler-system")
			if err != nil || there.Elsewhere != tc.want {
				t.Errorf("%q, %v; want %q", there.Elsewhere, err, tc.want)
			}
		})
	}
}
