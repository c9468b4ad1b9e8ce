// SPDX-License-Identifier: Apache-2.0

// Package programs caches compiled sets for all controllers. Compiling a set takes up to a second, and most reconciles need
// a set that was compiled before.
//
// Tenants write sets too, so the package bounds how many tenants' sets are compiled at once, and compiles one set of
// a namespace at a time. A reconcile that gets no slot is requeued, so that it does not hold a worker. Sets of the
// platform never wait.
package programs

import (
	"errors"
	"time"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/memory"
	"github.com/chandler-hub/chandler/internal/pace"
)

// ErrBusy says that too many tenants' sets are being compiled. It is no failure: requeue after Wait.
var ErrBusy = errors.New("other sets are being compiled")

// Wait is after how long to requeue on ErrBusy.
const Wait = 250 * time.Millisecond

// The limits of a Cache.
const (
	maxPrograms = 1000
	maxCost     = 256 << 20
	// maxNames bounds the names of contents. Each edit that does not change the content has a new one.
	maxNames = 16 * maxPrograms
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

	names    memory.Recent[string, string] // to the content's hash
	programs memory.Recent[string, *entry] // by that
	tenants  pace.UnderWay                 // whose set is being compiled, by namespace
}

// entry is a program, or the errors of the set. done is closed when one of them is known.
type entry struct {
	done    chan struct{}
	program *compile.Program
	err     error
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
	if hash, named := c.names.Get(name); named {
		if e, known := c.programs.Get(hash); known {
			<-e.done
			return e.program, e.err
		}
	}
	if !author.Platform {
		if !c.tenants.Enter(author.Namespace, func(has, all int) bool { return has == 0 && all < max(1, c.Slots) }) {
			return nil, ErrBusy
		}
		defer c.tenants.Leave(author.Namespace)
	}
	raw, err := content()
	if err != nil {
		return nil, err
	}
	platform := ""
	if author.Platform {
		platform = "platform"
	}
	hash := identity.Hash(64, author.Namespace, author.Set, platform, team, schemas, string(raw))
	e, mine := c.of(hash, name)
	if mine {
		c.fill(e, hash, raw, author)
	}
	<-e.done
	return e.program, e.err
}

// of returns the entry of a content, and whether it is new, so that the caller has to fill it.
func (c *Cache) of(hash, name string) (e *entry, fresh bool) {
	e, known := c.programs.GetOrPut(hash, &entry{done: make(chan struct{})})
	if name != "" {
		c.names.Put(name, hash, 0, memory.Bound{Entries: maxNames})
	}
	return e, !known
}

// fill compiles, and makes room.
func (c *Cache) fill(e *entry, hash string, raw []byte, author compile.Author) {
	defer close(e.done)
	errPanic := errors.New("the compiler has failed")
	e.err = errPanic // a caller that waits must not take nothing for a program
	defer func() {
		if errors.Is(e.err, errPanic) { // the compiler panicked, which says nothing of the content: the next caller compiles it again
			c.programs.Delete(hash)
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
	c.programs.Put(hash, e, cost, memory.Bound{Entries: maxPrograms, Bytes: maxCost})
}

// Kept returns how many programs are kept, and how many bytes they take, about.
func (c *Cache) Kept() (entries, bytes int) { return c.programs.Kept() }
