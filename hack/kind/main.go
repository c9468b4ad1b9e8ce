// SPDX-License-Identifier: Apache-2.0

// Command kind runs the tests of e2e/kamaji on a kind cluster with Kamaji, Flux and the hub, installed as people
// install them. It needs Docker and the internet. If something is missing, it prints one line and exits with code 2.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/chandler-hub/chandler/test/kindfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// missing is the exit code if the machine does not have what is needed.
const missing = 2

func main() {
	name := flag.String("name", "chandler-e2e", "the name of the kind cluster")
	plan := flag.Bool("plan", false, "print what would be done, and do nothing")
	keep := flag.Bool("keep", false, "do not delete the cluster in the end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, *name, *plan, *keep)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e-kind:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, name string, planOnly, keep bool) (int, error) {
	if !planOnly {
		err := kindfleet.Preflight(exec.LookPath, func(argv ...string) error { return exec.CommandContext(ctx, argv[0], argv[1:]...).Run() })
		if err != nil {
			return missing, err
		}
	}
	root, err := parts.Root()
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "chandler-kind-")
	if err != nil {
		return 1, err
	}
	defer func() {
		if keep && !planOnly {
			fmt.Printf("The cluster stays: export KUBECONFIG=%s, and `kind delete cluster --name %s` when you are done.\n",
				(kindfleet.Options{Dir: dir}).Kubeconfig(), name)
			return
		}
		_ = os.RemoveAll(dir)
	}()
	o := kindfleet.Options{
		Name: name, Root: root, Dir: dir, Keep: keep, Tests: []string{"test", "-count=1", "-timeout=40m", "-v", "./e2e/kamaji"},
	}
	if o.Modules, err = kindfleet.Modules(ctx, root); err != nil {
		return 1, err
	}
	plan := kindfleet.New(o)
	if planOnly {
		plan.Write(os.Stdout)
		return 0, nil
	}
	if err := kindfleet.Prepare(o); err != nil {
		return 1, err
	}
	if err := plan.Run(ctx, root, os.Stdout); err != nil {
		return 1, err
	}
	return 0, nil
}
