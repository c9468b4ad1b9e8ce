// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
)

func content(s string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(s), nil }
}

// TestCompiledOnce: however often, and by however many at once, a content is compiled once; what is wrong with it as well.
func TestCompiledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var compiled []string
		gate := make(chan struct{})
		c := &programs.Cache{Compile: func(raw []byte, _ compile.Author) (*compile.Program, error) {
			<-gate
			compiled = append(compiled, string(raw))
			if string(raw) == "wrong" {
				return nil, errors.New("it is wrong")
			}
			return &compile.Program{}, nil
		}}
		platform := compile.Author{Namespace: "flux-system", Set: "a", Platform: true}
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if p, err := c.Get(fmt.Sprint("name", i), platform, content("one")); p == nil || err != nil {
					t.Error(p, err)
				}
			})
		}
		synctest.Wait()
		close(gate)
		all.Wait()
		for range 3 {
			if _, err := c.Get("wrong", platform, content("wrong")); err == nil || err.Error() != "it is wrong" {
				t.Error(err)
			}
		}
		if _, err := c.Get("name0", platform, func() ([]byte, error) { return nil, errors.New("asked for again") }); err != nil {
			t.Error(err)
		}
		other := platform
		other.Set = "b"
		if _, err := c.Get("other", other, content("one")); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(compiled); got != "[one wrong one]" {
			t.Errorf("compiled: %s", got)
		}
	})
}

// TestTeamsHaveTheirOwn: a program is compiled again when what the Team allows changes, although the set, its revision and their
// names are the same; and nobody gets what was compiled for others.
func TestTeamsHaveTheirOwn(t *testing.T) {
	var compiled []string
	c := &programs.Cache{Compile: func(_ []byte, author compile.Author) (*compile.Program, error) {
		compiled = append(compiled, author.Team.Hash())
		return &compile.Program{Team: author.Team}, nil
	}}
	strict := &fluxspec.TeamRules{Name: "dev-team", Namespaces: []string{"apps"}}
	wide := &fluxspec.TeamRules{Name: "dev-team", Namespaces: []string{"apps", "more"}}
	again := &fluxspec.TeamRules{Name: "dev-team", Namespaces: []string{"apps"}}
	for _, name := range []string{"revision 1", ""} {
		for _, r := range []*fluxspec.TeamRules{nil, strict, wide, again, nil} {
			p, err := c.Get(name, compile.Author{Namespace: "dev-team", Set: "a", Team: r}, content("one"))
			if err != nil || p.Team.Hash() != r.Hash() {
				t.Errorf("name %q: the program is for %v, want %v: %v", name, p.Team, r, err)
			}
		}
	}
	if want := []string{"", strict.Hash(), wide.Hash()}; !slices.Equal(compiled, want) {
		t.Errorf("compiled for %q, want %q", compiled, want)
	}
}

// TestTenantsHoldUpNobody: while the sets of sixteen tenants are being compiled, for ever, no worker waits for them but as many as there
// are slots, and a set of the platform is compiled at once. One tenant has one slot, however many sets he writes.
func TestTenantsHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		c := &programs.Cache{Slots: 2, Compile: func(_ []byte, author compile.Author) (*compile.Program, error) {
			if !author.Platform {
				<-gate
			}
			return &compile.Program{}, nil
		}}
		var inside, busy int
		var mu sync.Mutex
		get := func(namespace, set string) {
			_, err := c.Get(namespace+set, compile.Author{Namespace: namespace, Set: set}, content(set))
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, programs.ErrBusy) {
				busy++
			} else {
				inside++
			}
		}
		for i := range 5 {
			go get("greedy", fmt.Sprint(i))
		}
		synctest.Wait()
		if busy != 4 {
			t.Errorf("%d of five sets of one tenant were sent away, want 4", busy)
		}
		for i := range 16 {
			go get(fmt.Sprint("tenant", i), "large")
		}
		synctest.Wait()
		if busy != 4+15 || inside != 0 {
			t.Errorf("%d were sent away, want 19: the others hold their workers", busy)
		}
		if _, err := c.Get("p", compile.Author{Namespace: "flux-system", Set: "p", Platform: true}, content("p")); err != nil {
			t.Error(err)
		}
		close(gate)
		synctest.Wait()
		if inside != 2 {
			t.Errorf("%d were compiled, want 2", inside)
		}
		if get("tenant7", "large"); inside != 3 {
			t.Error("whoever looks again is not let in")
		}
	})
}

// TestCacheIsBounded: what was not used for longest goes when there are too many, or they are too large.
func TestCacheIsBounded(t *testing.T) {
	compiled := 0
	c := &programs.Cache{Compile: func([]byte, compile.Author) (*compile.Program, error) {
		compiled++
		return &compile.Program{}, nil
	}}
	platform := compile.Author{Platform: true}
	get := func(name, raw string) {
		t.Helper()
		must.Get(c.Get(name, platform, content(raw))).Or(t)
	}
	for i := range 1500 {
		get(fmt.Sprint(i), fmt.Sprint(i))
		get("0", "0") // in use
	}
	if compiled != 1500 {
		t.Errorf("compiled %d times, want 1500", compiled)
	}
	get("1", "1")
	if compiled != 1501 {
		t.Error("what was not used for long is kept")
	}
	large := string(make([]byte, 20<<20))
	for i := range 4 {
		get(fmt.Sprint("large", i), large+fmt.Sprint(i))
	}
	get("large0", large+"0")
	if compiled != 1506 {
		t.Errorf("compiled %d times, want 1506: 320 MiB were kept", compiled)
	}
	get("huge", large+large+large+large)
	get("huge", large+large+large+large)
	if compiled != 1508 {
		t.Errorf("compiled %d times, want 1508: what is larger than the cache is not kept", compiled)
	}
}

// TestSchemas: a program that was compiled by other CRDs is not taken for the same, whatever name its content has.
func TestSchemas(t *testing.T) {
	schemas := &crdschema.Library{ID: "one"}
	var compiled []string
	c := &programs.Cache{Schemas: func() *crdschema.Library { return schemas }, Compile: func(_ []byte, author compile.Author) (*compile.Program, error) {
		compiled = append(compiled, author.Schemas.ID)
		return &compile.Program{}, nil
	}}
	for _, id := range []string{"one", "one", "two", "two", "one"} {
		schemas = &crdschema.Library{ID: id}
		for _, name := range []string{"revision", ""} {
			must.Get(c.Get(name, compile.Author{Namespace: "flux-system", Set: "a", Platform: true}, content("one"))).Or(t)
		}
	}
	if !slices.Equal(compiled, []string{"one", "two"}) {
		t.Errorf("compiled by %v", compiled)
	}
}
