// SPDX-License-Identifier: Apache-2.0

package pace

import "testing"

func TestUnderWay(t *testing.T) {
	var u UnderWay
	atMost := func(mine, all int) func(int, int) bool {
		return func(has, is int) bool { return has < mine && is < all }
	}
	for i, step := range []struct {
		namespace string
		mine, all int
		want      bool
	}{{"a", 0, 0, false}, {"a", 1, 1, true}, {"a", 1, 9, false}, {"a", 2, 9, true}, {"b", 1, 2, false}, {"b", 1, 3, true}} {
		if got := u.Enter(step.namespace, atMost(step.mine, step.all)); got != step.want {
			t.Errorf("%d: %t", i, got)
		}
	}
	u.Leave("a")
	if u.Enter("a", atMost(1, 9)) || !u.Enter("a", atMost(2, 3)) {
		t.Error("who has left is counted, or who has not is not")
	}
	for _, namespace := range []string{"a", "a", "b"} {
		u.Leave(namespace)
	}
	if len(u.of) != 0 || u.all != 0 {
		t.Errorf("nothing is under way, and counted are %v, %d", u.of, u.all)
	}
}
