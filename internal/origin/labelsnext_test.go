// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"maps"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
)

// A registration gets the labels of its origin, loses those that this has lost, and keeps its own.
func TestLabels(t *testing.T) {
	has := map[string]string{hubv1.NameLabel: "one", hubv1.ProviderLabel: "kamaji", "tier": "test", "region": "eu", "own": "x", "env": "mine"}
	copied := hubv1.NameLabel + "," + hubv1.ProviderLabel + ",!env,region,tier"
	for name, tc := range map[string]struct{ of, want map[string]string }{
		"Changed": {map[string]string{"tier": "prod", "region": "eu"}, map[string]string{"tier": "prod", "region": "eu", "own": "x", "env": "mine"}},
		"Lost":    {map[string]string{"tier": "test"}, map[string]string{"tier": "test", "own": "x", "env": "mine"}},
		"New":     {map[string]string{"tier": "test", "region": "eu", "new": "y"}, map[string]string{"tier": "test", "region": "eu", "own": "x", "env": "mine", "new": "y"}},
		"NotHis":  {map[string]string{"tier": "test", "region": "eu", "env": "his"}, map[string]string{"tier": "test", "region": "eu", "own": "x", "env": "mine"}},
		"Foreign": {map[string]string{"argocd.argoproj.io/x": "y", hubv1.NameLabel: "z"}, map[string]string{"own": "x", "env": "mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want[hubv1.NameLabel], tc.want[hubv1.ProviderLabel] = "one", "kamaji"
			if got := origin.Labels(has, copied, tc.of); !maps.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
	if got := origin.Labels(nil, "", map[string]string{"a": "b"}); got["a"] != "b" {
		t.Errorf("of a registration without labels: %v", got)
	}
}
