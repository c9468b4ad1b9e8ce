// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/create"
	"github.com/chandler-hub/chandler/internal/cli/get"
	"github.com/chandler-hub/chandler/internal/cli/pause"
	"github.com/chandler-hub/chandler/internal/cli/register"
	"github.com/chandler-hub/chandler/internal/cli/rollout"
	"github.com/chandler-hub/chandler/internal/cli/uninstall"
	"github.com/chandler-hub/chandler/internal/manifests"
)

// TestOptions: what the flags and arguments of a command become. The work of the command is replaced, so no hub is asked.
func TestOptions(t *testing.T) {
	var got []any
	took := func(of ...any) error {
		got = of
		return nil
	}
	commands := []*cobra.Command{
		create.New(made, func(_ context.Context, o *create.Options) error { return took(o.Labels, o.Export, o.Overwrite) }),
		get.New(made, func(_ context.Context, o *get.Options) error {
			return took(o.Args, o.Selector, o.Failed, *o.Flags.Namespace)
		}),
		pause.New(made, func(_ context.Context, o *pause.Options) error { return took(o.Args, o.Until, o.Reason) }),
		register.New(made, func(_ context.Context, o *register.Options) error {
			return took(o.Arg, o.Request.Labels, o.Wait, *o.Cluster.Context, *o.Flags.Context)
		}),
		rollout.New(made, func(_ context.Context, o *rollout.Options) error { return took(o.Args, o.Revision, o.To, o.Immediate) }),
		uninstall.New(made, func(_ context.Context, o *uninstall.Options) error { return took(o.Removal, o.Yes, o.Timeout.String()) }),
	}
	for args, want := range map[string][]any{
		"create set x --all --labels a=b --overwrite":               {map[string]string{"a": "b"}, false, true},
		"get clusters a b -l tier=prod --failed -n fleet":           {[]string{"a", "b"}, "tier=prod", true, "fleet"},
		"pause set base --until 12h --reason freeze":                {[]string{"set", "base"}, "12h", "freeze"},
		"register a --labels a=b --cluster-context c --context hub": {"a", map[string]string{"a": "b"}, true, "c", "hub"},
		"rollout approve base canary --revision base-2":             {[]string{"base", "canary"}, "base-2", "", false},
		"rollout undo base --to 3 --now":                            {[]string{"base"}, "", "3", true},
		"uninstall --addons=keep --timeout 0":                       {manifests.Removal{Namespace: "chandler-system", Addons: "keep"}, false, "0s"},
	} {
		root := &cobra.Command{Use: "chandler", SilenceUsage: true, SilenceErrors: true}
		root.AddCommand(commands...)
		root.SetArgs(strings.Fields(args))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -want +got:\n%s", args, d)
		}
	}
}
