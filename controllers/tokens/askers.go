// SPDX-License-Identifier: Apache-2.0

package tokens

import "sync"

// askers counts the requests to clusters that are under way, by the namespace of their registrations. The controller's queue hands out what
// changes in the order in which it came, so a thousand clusters of one namespace that let the hub wait would hold all workers, one after
// the other. The zero value is ready for use.
type askers struct {
	mu  sync.Mutex
	of  map[string]int
	all int
}

// enter returns whether one more request of a namespace may begin, of so many that the controller has workers for. A request that may begin
// has to leave.
func (a *askers) enter(namespace string, workers int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !begins(a.of[namespace], a.all, workers) {
		return false
	}
	if a.of == nil {
		a.of = map[string]int{}
	}
	a.of[namespace]++
	a.all++
	return true
}

// begins returns whether a namespace may have one more request, if it has some of all that are under way. It may always have one, and never
// as many as there are free workers: so each further namespace finds some.
func begins(has, all, workers int) bool { return has == 0 || has < workers-all }

// leave ends a request.
func (a *askers) leave(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all--
	if a.of[namespace]--; a.of[namespace] == 0 {
		delete(a.of, namespace)
	}
}
