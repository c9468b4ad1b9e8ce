// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"github.com/google/cel-go/interpreter"

	"github.com/chandler-hub/chandler/internal/expression/meter"
)

// run is one evaluation: what its expressions may read, and the budget. It is the activation of the CEL programs.
type run struct {
	in Input
	meter.Meter
}

// ResolveName returns the variable of that name.
func (r *run) ResolveName(name string) (any, bool) {
	switch name {
	case varsName:
		return r.in.Vars, true
	case originName:
		return r.in.Origin, true
	case clusterName:
		return r.in.Cluster, r.in.Cluster != nil
	case meter.Name:
		return &r.Meter, true
	}
	return nil, false
}

// Parent returns nil: nothing is outside of an evaluation.
func (r *run) Parent() interpreter.Activation { return nil }
