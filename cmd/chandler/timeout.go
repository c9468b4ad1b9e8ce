// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// addTimeout adds --timeout, which means the same for every command: 0 is without an end.
func addTimeout(f *pflag.FlagSet, timeout *time.Duration, usual time.Duration, usage string) {
	*timeout = usual
	f.Var((*patience)(timeout), "timeout", usage+"; 0 is without an end")
}

// patience is a duration that is not negative.
type patience time.Duration

func (p *patience) String() string { return time.Duration(*p).String() }
func (*patience) Type() string     { return "duration" }

func (p *patience) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("write a duration such as 10m, in ms, s, m and h")
	case d < 0:
		return fmt.Errorf("%s is negative; 0 is without an end", d)
	}
	*p = patience(d)
	return nil
}

// limited returns a context that ends after a time of --timeout.
func limited(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errTimeout)
}
