// SPDX-License-Identifier: Apache-2.0

package pace

import "sync"

// UnderWay counts what is under way, by namespace, so that no namespace takes all the room that there is. The zero value is ready for use.
type UnderWay struct {
	mu  sync.Mutex
	of  map[string]int
	all int
}

// Enter returns whether one more of a namespace may begin, while it has some of all that are under way. What begins has to leave.
func (u *UnderWay) Enter(namespace string, may func(has, all int) bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !may(u.of[namespace], u.all) {
		return false
	}
	if u.of == nil {
		u.of = map[string]int{}
	}
	u.of[namespace]++
	u.all++
	return true
}

// Leave ends one.
func (u *UnderWay) Leave(namespace string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all--
	if u.of[namespace]--; u.of[namespace] == 0 {
		delete(u.of, namespace)
	}
}
