// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"slices"
	"sync"
	"time"
)

const (
	// window is over what time the turns of a namespace are counted.
	window = 2 * time.Second
	// patience is how long a namespace counts as one that waits, after it has asked in vain. A cluster that waits asks once a second.
	patience = 2 * time.Second
	// counts is how long a turn is remembered.
	counts = time.Minute
)

// Shares divides turns between namespaces, of which there are so many in a second for all of them. While others wait, a namespace gets its
// equal share and no more. While no other waits, it gets all. The zero value is ready for use.
type Shares struct {
	mu      sync.Mutex
	taken   []taken
	waiting map[string]time.Time // when each has asked in vain
}

// taken is a turn that a namespace has had.
type taken struct {
	by string
	at time.Time
}

// May returns whether a namespace may take a turn now.
func (s *Shares) May(namespace string, perSecond int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	others := 0
	for other, at := range s.waiting {
		if other != namespace && now.Sub(at) < patience {
			others++
		}
	}
	return may(s.taken, namespace, others, perSecond, now)
}

// may returns whether a namespace has had less than its share of the turns, while so many others wait. If there are more namespaces than
// turns in the window, each gets one in a longer time.
func may(of []taken, namespace string, others, perSecond int, now time.Time) bool {
	if others == 0 {
		return true
	}
	within := max(window, time.Duration(others+1)*time.Second/time.Duration(perSecond))
	share, had := max(1, perSecond*int(window/time.Second)/(others+1)), 0
	for _, t := range of {
		if t.by == namespace && now.Sub(t.at) < within {
			had++
		}
	}
	return had < share
}

// Wait notes that a namespace has asked for a turn in vain.
func (s *Shares) Wait(namespace string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[string]time.Time{}
	}
	s.waiting[namespace] = now
}

// Take notes that a namespace has taken a turn, and forgets what counts no more.
func (s *Shares) Take(namespace string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(slices.DeleteFunc(s.taken, func(t taken) bool { return now.Sub(t.at) >= counts }), taken{namespace, now})
	for other, at := range s.waiting {
		if now.Sub(at) >= patience {
			delete(s.waiting, other)
		}
	}
}
