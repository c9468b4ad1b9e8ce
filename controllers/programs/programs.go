// SPDX-License-Identifier: Apache-2.0

// Package programs caches compiled sets for all controllers. Compiling a set takes up to a second, and most reconciles need
// a set that was compiled before.
//
// Tenants write sets too, so the package bounds how many tenants' sets are compiled at once, and compiles one set of
// a namespace at a time. A reconcile that gets no slot is requeued, so that it does not hold a worker. Sets of the
// platform never wait.
package programs

import (
	"container/list"
	"errors"
	"sync"
	"time"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/identity"
)

// ErrBusy says that too many tenants' sets are being compiled. It is no failure: requeue after Wait.
var ErrBusy = errors.New("other sets are being compiled")

// Wait is after how long to requeue on ErrBusy.
const Wait = 250 * time.Millisecond

// The limits of a Cache.
const (
	maxPrograms = 1000
	maxCost     = 256 << 20
	// The approximate memory of a program: a multiple of its text, and so much for each expression.
	costOfByte, costOfExpression = 4, 8 << 10
)

// Cache keeps programs by their content, and by the names that controllers have for it. A nil Cache keeps nothing.
type Cache struct {
	// Slots is how many tenants' sets are compiled at once; 1 if it is not set.
	Slots int
	// Compile is compile.Compile, except in tests.
	Compile func(raw []byte, author compile.Author) (*compile.Program, error)
	// Schemas returns those of Flux's CRDs that bodies are held to; nil for those that are built in.
	Schemas func() *crdschema.Library

	mu      sync.Mutex
	names   map[string]string // to the content's hash
	entries map[string]*entry
	recent  list.List // of hashes, the last used first
	cost    int
	busy    map[string]bool // namespaces of tenants whose set is being compiled
}

// entry is a program, or the errors of the set. done is closed when one of them is known.
type entry struct {
	done    chan struct{}
	program *compile.Program
	err     error
	hash    string
	names   []string
	cost    int
	at      *list.Element
}

// Get returns a program, or the errors of its author. name identifies the content as long as the hub runs; empty for
// no name. content is called only if the name is not known. What a Team allows may change while content and name stay,
// so it is part of what programs are kept by.
func (c *Cache) Get(name string, author compile.Author, content func() ([]byte, error)) (*compile.Program, error) {
	if c == nil {
		raw, err := content()
		if err != nil {
			return nil, err
		}
		return compile.Revision(raw, author)
	}
	if c.Schemas != nil {
		author.Schemas = c.Schemas()
	}
	team, schemas := author.Team.Hash(), author.Schemas.Hash()
	if name != "" && team+schemas != "" {
		name += " team " + team + " schemas " + schemas
	}
	if e := c.named(name); e != nil {
		<-e.done
		return e.program, e.err
	}
	if !author.Platform {
		if !c.enter(author.Namespace) {
			return nil, ErrBusy
		}
		defer c.leave(author.Namespace)
	}
	raw, err := content()
	if err != nil {
		return nil, err
	}
	platform := ""
	if author.Platform {
		platform = "platform"
	}
	e, mine := c.of(identity.Hash(64, author.Namespace, author.Set, platform, team, schemas, string(raw)), name)
	if mine {
		c.fill(e, raw, author)
	}
	<-e.done
	return e.program, e.err
}

// named returns the entry of a name; nil if the name is not known.
func (c *Cache) named(name string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[c.names[name]]
	if e != nil {
		c.recent.MoveToFront(e.at)
	}
	return e
}

// of returns the entry of a content, and whether it is new, so that the caller has to fill it.
func (c *Cache) of(hash, name string) (e *entry, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries, c.names = map[string]*entry{}, map[string]string{}
	}
	if e = c.entries[hash]; e == nil {
		e, fresh = &entry{done: make(chan struct{}), hash: hash, at: c.recent.PushFront(hash)}, true
		c.entries[hash] = e
	}
	if name != "" {
		if len(e.names) == maxNames {
			delete(c.names, e.names[0])
			e.names = e.names[1:]
		}
		c.names[name], e.names = hash, append(e.names, name)
	}
	return e, fresh
}

// maxNames is how many names are remembered for one content. Each edit that does not change the content has a new
// name.
const maxNames = 16

// fill compiles without holding the lock, and makes room.
func (c *Cache) fill(e *entry, raw []byte, author compile.Author) {
	defer close(e.done)
	errPanic := errors.New("the compiler has failed")
	e.err = errPanic // a caller that waits must not take nothing for a program
	defer func() {
		if errors.Is(e.err, errPanic) { // the compiler panicked, which says nothing of the content: the next caller compiles it again
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.entries[e.hash] == e {
				c.drop(e)
			}
		}
	}()
	do := c.Compile
	if do == nil {
		do = compile.Revision
	}
	e.program, e.err = do(raw, author)
	cost := costOfByte * len(raw)
	if e.program != nil {
		cost += costOfExpression * e.program.Expressions()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[e.hash] != e {
		return // it has gone meanwhile
	}
	e.cost = cost
	c.cost += cost
	for len(c.entries) > maxPrograms || c.cost > maxCost {
		last := c.entries[c.recent.Back().Value.(string)]
		c.drop(last)
		if last == e {
			return
		}
	}
}

// Kept returns how many programs are kept, and how many bytes they take, about.
func (c *Cache) Kept() (entries, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries), c.cost
}

func (c *Cache) drop(e *entry) {
	c.recent.Remove(e.at)
	c.cost -= e.cost
	delete(c.entries, e.hash)
	for _, n := range e.names {
		delete(c.names, n)
	}
}

// enter returns whether a tenant's set may be compiled now.
func (c *Cache) enter(namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[namespace] || len(c.busy) >= max(1, c.Slots) {
		return false
	}
	if c.busy == nil {
		c.busy = map[string]bool{}
	}
	c.busy[namespace] = true
	return true
}

func (c *Cache) leave(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, namespace)
}
