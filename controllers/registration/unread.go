// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/teardown"
)

// unread remembers since when the origins of registrations that go cannot be read. A registration may have been deleted long before. A
// process that starts counts anew: what is orphaned cannot be taken back.
type unread struct {
	mu  sync.Mutex
	all map[types.NamespacedName]time.Time
}

// since notes what is known of an origin, and returns since when it cannot be read; zero if it can.
func (u *unread) since(reg types.NamespacedName, is teardown.Origin, now time.Time) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if is != teardown.OriginUnknown {
		delete(u.all, reg)
		return time.Time{}
	}
	if u.all == nil {
		u.all = map[types.NamespacedName]time.Time{}
	}
	if _, known := u.all[reg]; !known {
		u.all[reg] = now
	}
	return u.all[reg]
}

func (u *unread) forget(reg types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, reg)
}
