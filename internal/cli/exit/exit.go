// SPDX-License-Identifier: Apache-2.0

// Package exit has the exit codes of the command line, which docs/commands.md promises: 0, Failed and Uncertain.
package exit

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
)

const (
	// Failed is the exit code of a command whose answer is no, or that has tried and not done what it is for. For diff it says that
	// something would change.
	Failed = 1
	// Uncertain is the exit code of a command that could not even ask.
	Uncertain = 2
)

// Error ends the program with an exit code of its own. Without Err the program says nothing.
type Error struct {
	Code int
	Err  error
}

// With returns an error that ends the program with a code.
func With(code int, err error) error { return &Error{Code: code, Err: err} }

// Wrong returns the error of a command that could not even ask: its flags are wrong, or it finds no hub.
func Wrong(err error) error { return With(Uncertain, err) }

// Silent returns an error that ends the program with a code, when the command has said why already.
func Silent(code int) error { return With(code, nil) }

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// ErrTimeout is the error of a command whose --timeout is over.
var ErrTimeout = errors.New("the time is over")

// ErrEnded is the error of a command that a signal ended before its work was done.
var ErrEnded error = endedBySignal{}

type endedBySignal struct{}

func (endedBySignal) Error() string { return "ended by a signal" }
func (endedBySignal) Unwrap() error { return context.Canceled }

// Told returns the exit code of an error, and the text that people read. The text is that of the whole error, also where words were added
// to an error that had its exit code already. An error without a code comes from before a command began: its flags or arguments are wrong.
func Told(err error) (code int, text string) {
	decided := &Error{Uncertain, err}
	_ = errors.As(err, &decided)
	if decided.Err == nil {
		return decided.Code, ""
	}
	return decided.Code, err.Error()
}

// codeOf returns the exit code for an error of a command that has begun. What its author has decided counts.
func codeOf(err error) int {
	var decided *Error
	var network net.Error
	var unreached *live.Unreached
	switch {
	case errors.As(err, &decided):
		return decided.Code
	case errors.Is(err, ErrTimeout), errors.Is(err, context.Canceled):
		return Failed
	case errors.As(err, &unreached), errors.As(err, &network), meta.IsNoMatchError(err), errors.Is(err, live.ErrNoHub),
		errors.Is(err, live.ErrWrong), errors.Is(err, hubconfig.ErrFlag):
		return Uncertain
	}
	for _, is := range []func(error) bool{apierrors.IsForbidden, apierrors.IsUnauthorized, apierrors.IsServiceUnavailable,
		apierrors.IsServerTimeout, apierrors.IsTooManyRequests, apierrors.IsInternalError} {
		if is(err) {
			return Uncertain
		}
	}
	return Failed
}

// Decide gives an error its exit code, unless it has one.
func Decide(err error) error {
	var decided *Error
	if err == nil || errors.As(err, &decided) {
		return err
	}
	return With(codeOf(err), err)
}

// Finish has a command and all below it end with the exit codes that docs/commands.md promises.
func Finish(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		Finish(c)
	}
	run := cmd.RunE
	if run == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return Plainly(cmd.Context(), Decide(run(cmd, args)))
	}
}

// advised is an error with what to do in place of what failed.
type advised struct {
	error
	advice string
}

func (a *advised) Error() string { return a.error.Error() + "; " + a.advice }
func (a *advised) Unwrap() error { return a.error }

// Advise adds to an error what people can do in place of what failed.
func Advise(err error, advice string) error { return &advised{err, advice} }

// Plainly gives all commands the same line for an error that keeps them from asking the hub, and another one for a signal that ended them.
// What was done before the signal has been printed. A command that decides for Failed was in the middle of its work, and says where.
func Plainly(ctx context.Context, err error) error {
	var unreached *live.Unreached
	var decided *Error
	var instead *advised
	switch {
	case !errors.As(err, &decided):
	case decided.Code == Uncertain && errors.As(err, &unreached):
		if errors.As(err, &instead) {
			return Wrong(Advise(unreached, instead.advice))
		}
		return Wrong(unreached)
	case ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.Is(err, ErrEnded):
		return With(decided.Code, ErrEnded)
	}
	return err
}
