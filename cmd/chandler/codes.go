// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"net"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
)

// failed is the exit code of what was asked and is not so, or was tried and is not done. uncertain is that of what could not even be
// asked.
const failed = 1

// outcome says when a command ends with 0 and with 1.
type outcome struct{ done, failed string }

// outcomes are those of the commands for which done and failed does not say enough. The exit code 2 is the same for all.
var outcomes = map[string]outcome{
	"chandler create": {
		"everything is created, or was there already",
		"it is invalid, the hub refuses it, or something else is there",
	},
	"chandler diff":    {"nothing would change", "something would change"},
	"chandler doctor":  {"no errors, maybe warnings", "at least one error"},
	"chandler events":  {"", "no such cluster, set or add-on"},
	"chandler explain": {"", "no such cluster or add-on"},
	"chandler export":  {"", "something could not be read or written"},
	"chandler get":     {"", "something that you named does not exist; the rest is printed"},
	"chandler import": {
		"the sets are written, if there are any; what is left as it is counts as well",
		"a document could not be read; with --strict, something is left, or not quite as it was",
	},
	"chandler install": {
		"the hub runs (with --wait=false: it is applied)",
		"refused, a conflict, or the hub does not run in time",
	},
	"chandler pause":     {"", "no such cluster or set, or it cannot be paused"},
	"chandler reconcile": {"everything is Ready", "something is not Ready or suspended, or the time is over"},
	"chandler register": {
		"the cluster is registered, and the hub reaches it",
		"a check failed, you said no, or the hub does not reach it in time",
	},
	"chandler removals approve": {"", "nothing is held, the hash is a different one, or you said no"},
	"chandler render":           {"everything is rendered", "something is wrong; the rest is printed"},
	"chandler resume":           {"", "no such cluster or set, or it is not paused"},
	"chandler rollout":          {"", "the set does not exist, or the command does not apply to it"},
	"chandler rollout history":  {"", "no such set"},
	"chandler rollout plan":     {"", "no such set, or the files are wrong"},
	"chandler rollout status": {
		"",
		"no such set; with --watch: the rollout failed or went back, or the time is over",
	},
	"chandler uninstall": {
		"the hub is gone",
		"refused, you said no, there is no hub, or the time is over",
	},
	"chandler unregister": {"the cluster is unregistered", "a check failed, you said no, or the time is over"},
}

// outcomeOf returns that of a command: its own, that of a command above it, or the common one.
func outcomeOf(cmd *cobra.Command) outcome {
	out := outcome{}
	for c := cmd; c != nil; c = c.Parent() {
		if own, known := outcomes[c.CommandPath()]; known {
			out = own
			break
		}
	}
	return outcome{cmp.Or(out.done, "success"), cmp.Or(out.failed, "failure")}
}

// unasked is what all commands say of the exit code 2.
const unasked = "wrong usage, the hub is unreachable, or you lack permission"

// exitCode returns the exit code for an error of a command that has begun. What its author has decided counts.
func exitCode(err error) int {
	var decided *exit
	var network net.Error
	var unreached *live.Unreached
	switch {
	case errors.As(err, &decided):
		return decided.code
	case errors.Is(err, errTimeout), errors.Is(err, context.Canceled):
		return failed
	case errors.As(err, &unreached), errors.As(err, &network), meta.IsNoMatchError(err), errors.Is(err, live.ErrNoHub),
		errors.Is(err, live.ErrWrong), errors.Is(err, hubconfig.ErrFlag):
		return uncertain
	}
	for _, is := range []func(error) bool{apierrors.IsForbidden, apierrors.IsUnauthorized, apierrors.IsServiceUnavailable,
		apierrors.IsServerTimeout, apierrors.IsTooManyRequests, apierrors.IsInternalError} {
		if is(err) {
			return uncertain
		}
	}
	return failed
}

// finish has all commands end with the exit codes that docs/commands.md promises. An error without one has come before a command began: its
// flags or its arguments are wrong.
func finish(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		finish(c)
	}
	run := cmd.RunE
	if run == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return plainly(cmd.Context(), decide(run(cmd, args)))
	}
}

// advised is an error with what to do in place of what failed.
type advised struct {
	error
	advice string
}

func (a *advised) Error() string { return a.error.Error() + "; " + a.advice }
func (a *advised) Unwrap() error { return a.error }

// exportsAnyway is for who has no management cluster yet.
const exportsAnyway = "--export prints it, without a cluster"

// plainly says what keeps a command from asking the hub in the one line that all commands have for it, and that somebody has ended the
// command. What was done before has been printed. A command that decides for failed was in the middle of its work, and says where.
func plainly(ctx context.Context, err error) error {
	var unreached *live.Unreached
	var decided *exit
	var instead *advised
	switch {
	case !errors.As(err, &decided):
	case decided.code == uncertain && errors.As(err, &unreached):
		if errors.As(err, &instead) {
			return &exit{uncertain, &advised{unreached, instead.advice}}
		}
		return &exit{uncertain, unreached}
	case ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.Is(err, errEnded):
		return &exit{decided.code, errEnded}
	}
	return err
}

// decide gives an error its exit code, unless it has one.
func decide(err error) error {
	var decided *exit
	if err == nil || errors.As(err, &decided) {
		return err
	}
	return &exit{exitCode(err), err}
}
