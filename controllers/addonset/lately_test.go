// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// What is gone counts once more, and then no longer.
func TestLately(t *testing.T) {
	var l lately
	set, other := types.NamespacedName{Name: "base"}, types.NamespacedName{Name: "other"}
	for i, tc := range []struct {
		of          types.NamespacedName
		going, want map[string][]string
	}{
		{set, map[string][]string{"a": {"w1", "w2"}}, map[string][]string{"a": {"w1", "w2"}}},
		{other, nil, map[string][]string{}},
		{set, map[string][]string{"a": {"w2"}, "b": {"w3"}}, map[string][]string{"a": {"w1", "w2"}, "b": {"w3"}}},
		{set, nil, map[string][]string{"a": {"w2"}, "b": {"w3"}}},
		{set, nil, map[string][]string{}},
	} {
		if got := l.and(tc.of, tc.going); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%d: %v, want %v", i, got, tc.want)
		}
		if again := l.and(tc.of, tc.going); !reflect.DeepEqual(again, tc.want) {
			t.Errorf("%d: again, since the status was not written: %v, want %v", i, again, tc.want)
		}
		l.note(tc.of, tc.going)
	}
	if len(l.going) != 0 {
		t.Errorf("it keeps %v", l.going)
	}
}
