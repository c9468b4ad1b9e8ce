// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"errors"

	"github.com/chandler-hub/chandler/internal/expression"
)

// Fact returns the fact about a cluster that an error is for want of, such as cluster.version, if that may become known by
// itself; "" for any other error.
func Fact(err error) string {
	if unknown := (*expression.Unknown)(nil); errors.As(err, &unknown) && !unknown.Stays {
		return unknown.Fact
	}
	return ""
}

// Waits returns whether an error of rendering is only for want of facts about the cluster: what has it waits for them.
func Waits(err error) bool {
	if one := (Error{}); errors.As(err, &one) {
		return one.Fact != ""
	}
	var all Errors
	return errors.As(err, &all) && all.Waits()
}

// Waits returns whether all errors are for want of facts about the cluster.
func (e Errors) Waits() bool {
	for _, one := range e {
		if one.Fact == "" {
			return false
		}
	}
	return len(e) > 0
}
