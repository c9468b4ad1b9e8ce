// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/cli/exit"
)

// AddTimeout adds --timeout, which means the same for every command: 0 is without an end.
func AddTimeout(f *pflag.FlagSet, timeout *time.Duration, usual time.Duration, usage string) {
	*timeout = usual
	f.Var((*Patience)(timeout), "timeout", usage+"; 0 is without an end")
}

// Patience is a duration that is not negative.
type Patience time.Duration

func (p *Patience) String() string { return time.Duration(*p).String() }

// Type is what a help calls the value.
func (*Patience) Type() string { return "duration" }

// Set reads a duration.
func (p *Patience) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("write a duration such as 10m, in ms, s, m and h")
	case d < 0:
		return fmt.Errorf("%s is negative; 0 is without an end", d)
	}
	*p = Patience(d)
	return nil
}

// Limited returns a context that ends after a time of --timeout.
func Limited(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, exit.ErrTimeout)
}
