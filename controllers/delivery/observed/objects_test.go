// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/plan"
)

// An annotation may have 256 KiB, and whoever may write Flux objects in his own namespace can write it on many: all that leaves the cluster
// waited for what it cost to look up each name. What a set can have is read.
func TestDependsOnMoreThanASetCan(t *testing.T) {
	names := func(n int, prefix string, length int) string {
		return strings.Join(slices.Repeat([]string{prefix + strings.Repeat("a", length)}, n), ",")
	}
	for name, tc := range map[string]struct {
		annotation string
		want       int
	}{
		"Nothing":       {"", 0},
		"One":           {"app", 1},
		"AsMuchAsItCan": {names(17, "", 53) + "," + names(16, plan.SetBefore(""), 63), 33},
		"OneMore":       {names(34, "", 1), 0},
		"ManyOfNothing": {strings.Repeat(",", 200_000), 0},
		"OneLongName":   {strings.Repeat("a", 200_000), 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "x", Annotations: map[string]string{hubv1.DependsOnAnnotation: tc.annotation}}}
			o := (&Reader{Sightings: &Sightings{}, Ledger: &Ledger{}}).observe(&Cluster{Objects: map[plan.Key]*Object{}}, k, fluxspec.KustomizationKind)
			if len(o.DependsOn) != tc.want {
				t.Errorf("%d names, want %d", len(o.DependsOn), tc.want)
			}
		})
	}
}
