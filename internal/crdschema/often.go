// SPDX-License-Identifier: Apache-2.0

package crdschema

import (
	"encoding/json"

	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/memory"
)

// CheckOften is Check, for objects of which many are the same: it remembers what has passed. A fleet gets one add-on in
// few different forms, if values are left out, and a check costs a tenth of a millisecond.
func (s *Schema) CheckOften(object map[string]any) []Problem {
	raw, err := json.Marshal(object)
	if err != nil {
		return s.Check(object, Options{})
	}
	key := identity.Hash(32, string(raw))
	if _, passed := s.passed.Get(key); passed {
		return nil
	}
	problems := s.Check(object, Options{})
	if len(problems) == 0 {
		s.passed.Put(key, struct{}{}, 0, memory.Bound{Entries: maxPassed})
	}
	return problems
}

// maxPassed bounds what is remembered for one schema: some 4 MB.
const maxPassed = 20_000
