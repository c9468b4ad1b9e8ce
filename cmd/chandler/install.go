// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/config"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/manifests"
	"github.com/chandler-hub/chandler/internal/version"
)

// installManager is the field manager of what `chandler install` applies.
const installManager = "chandler-install"

// installOptions are the flags of `chandler install`.
type installOptions struct {
	manifests.Options
	flags               *genericclioptions.ConfigFlags
	client              client.Client
	export, wait        bool
	skew, force         bool
	dryRun              string
	timeout             time.Duration
	argsWritten, server bool
}

func installCommand() *cobra.Command {
	o := &installOptions{flags: kubectlFlags()}
	o.flags.Namespace = nil // the hub's has a default of its own
	cmd := &cobra.Command{
		Use:   "install [-- HUB-FLAG...]",
		Short: "Install or upgrade the hub",
		Long: `Applies the hub of this version, server-side: namespace, CRDs, permissions, admission policies, Services
and Deployment, and waits until it runs. Run it again to upgrade.

Flags after -- are passed to the hub (docs/flags.md). Without any, an installed hub keeps its flags. It refuses a hub that
Helm or Flux installed, a second hub, another hub ID, and versions that do not fit.`,
		Example: `  chandler install --image registry.example.org/chandler-hub:v0.1.0
  chandler install --image registry.example.org/chandler-hub:v0.1.0 -- --register-all=kamaji
  chandler install --image registry.example.org/chandler-hub:v0.1.0 --export > hub.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); len(args) > 0 && n != 0 {
				return fmt.Errorf("install: %q: flags of the hub stand behind --: chandler install -- --secret-namespaces=fleet", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	o.flags.AddFlags(f)
	f.StringVarP(&o.Namespace, "namespace", "n", hubconfig.DefaultNamespace, "namespace of the hub")
	f.StringVar(&o.FluxNamespace, "flux-namespace", manifests.FluxNamespace, "namespace of Flux")
	f.StringVar(&o.Image, "image", version.Image(), "image of the hub, with a tag or a digest")
	f.IntVar(&o.Replicas, "replicas", 0, "pods of the hub (default: as installed, or 2)")
	f.BoolVar(&o.Policies, "policies", true,
		"install the admission policies (docs/policies.md)")
	f.BoolVar(&o.export, "export", false, "print YAML for Git, change nothing")
	f.StringVar(&o.dryRun, "dry-run", "none", "none or server: let the API server check everything, change nothing")
	f.BoolVar(&o.wait, "wait", true, "wait until the hub runs")
	addTimeout(f, &o.timeout, 5*time.Minute, "how long to wait")
	f.BoolVar(&o.force, "force-conflicts", false, "take over fields of others, as kubectl apply --server-side does")
	f.BoolVar(&o.skew, "allow-skew", false, "allow an older version, or one that does not fit this command line")
	return cmd
}

func (o *installOptions) run(cmd *cobra.Command, args []string) error {
	o.Args, o.argsWritten, o.server = args, len(args) > 0, o.dryRun == "server"
	objects, err := o.check()
	if err != nil {
		return &exit{uncertain, fmt.Errorf("install: %w", err)}
	}
	if o.export {
		return export(cmd.OutOrStdout(), objects)
	}
	restConfig, err := reach(cmd.Context(), o.flags)
	if err != nil {
		return &advised{err, exportsAnyway}
	}
	if o.client, err = live.Connect(restConfig); err != nil {
		return &exit{uncertain, err}
	}
	asked, err := discovery.NewDiscoveryClientForConfig(restConfig)
	if err != nil {
		return err
	}
	kubernetes, err := asked.ServerVersion()
	if err != nil {
		return &advised{fmt.Errorf("ask the management cluster for its version: %w", err), exportsAnyway}
	}
	return o.install(cmd, kubernetes.GitVersion)
}

// check says what is wrong with the flags, and returns what they make without a look at a cluster.
func (o *installOptions) check() ([]*unstructured.Unstructured, error) {
	switch {
	case o.dryRun != "none" && o.dryRun != "server":
		return nil, fmt.Errorf("--dry-run is %q: write none or server; --export prints everything without a server", o.dryRun)
	case o.Replicas < 0:
		return nil, errors.New("--replicas must not be negative")
	}
	if err := manifests.CheckImage(o.Image); err != nil {
		return nil, err
	}
	return manifests.Build(config.Files, o.Options)
}

func (o *installOptions) install(cmd *cobra.Command, kubernetes string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	there, err := lookAround(ctx, o.client, o.Namespace)
	if err != nil {
		return err
	}
	there.Kubernetes = kubernetes
	o.keep(there)
	shared, err := manifests.Shared(o.Namespace, o.Args)
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	build := ""
	if version.Released() {
		build = version.Get().Version
	}
	if err := manifests.Refuse(there, o.Options, shared.HubID, build, o.skew); err != nil {
		return err
	}
	objects, err := manifests.Build(config.Files, o.Options)
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	if !o.argsWritten && len(o.Args) > 0 {
		fmt.Fprintf(out, "The hub keeps its flags: %s\n", strings.Join(o.Args, " "))
	}
	if !there.FluxCRDs {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning: Flux is not on this cluster, and without it the hub delivers nothing "+
			"(docs/install.md#1-look-at-flux)")
	}
	w := &writer{client: o.client, out: out, manager: installManager, overwrite: true, force: o.force, dry: o.server}
	before, err := w.ask(ctx, objects)
	if err != nil {
		return err
	}
	rights := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool {
		return manifests.PhaseOf(u.GetKind()) > manifests.Definitions
	})
	if err := w.put(ctx, objects[:rights], before[:rights]); err != nil {
		return err
	}
	wait := &waiter{client: o.client, out: out, timeout: o.timeout}
	if !o.server { // the others are of no use without them
		if err := wait.current(ctx, objects[:rights]); err != nil {
			return err
		}
	}
	if err := w.put(ctx, objects[rights:], before[rights:]); err != nil {
		return err
	}
	switch {
	case o.server:
		fmt.Fprintln(out, "Nothing was changed: --dry-run=server")
		return nil
	case !o.wait:
		return nil
	}
	if err := wait.current(ctx, objects[len(objects)-1:]); err != nil {
		return err
	}
	fmt.Fprintf(out, "The hub runs in namespace %s. chandler doctor looks whether all is well\n", o.Namespace)
	return nil
}

// keep takes from an installed hub what the user has not written.
func (o *installOptions) keep(there manifests.There) {
	d := there.Deployment
	if d == nil {
		return
	}
	if o.Replicas == 0 && d.Spec.Replicas != nil {
		o.Replicas = int(*d.Spec.Replicas)
	}
	if c := d.Spec.Template.Spec.Containers; !o.argsWritten && len(c) > 0 {
		o.Args = c[0].Args
	}
}

// waiter waits until objects are as they should be, and says what it waits for.
type waiter struct {
	client  client.Client
	out     interface{ Write([]byte) (int, error) }
	timeout time.Duration
	pause   time.Duration
}

// until looks until that is done. look returns what it waits for; "" for nothing more. Each new text is a line.
func (w *waiter) until(ctx context.Context, look func(context.Context) (string, error)) error {
	within, cancel := limited(ctx, w.timeout)
	defer cancel()
	tick := time.NewTicker(cmp.Or(w.pause, 500*time.Millisecond))
	defer tick.Stop()
	for said := ""; ; {
		text, err := look(within)
		if err == nil && text == "" {
			return nil
		}
		if err != nil && within.Err() == nil {
			return err
		}
		if text != "" && text != said {
			said = text
			fmt.Fprintln(w.out, text)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-within.Done():
			return fmt.Errorf("after %s it still waits: %s", w.timeout, said)
		case <-tick.C:
		}
	}
}
