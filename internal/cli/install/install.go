// SPDX-License-Identifier: Apache-2.0

// Package install is `chandler install`.
package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/chandler-hub/chandler/config"
	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/installation"
	"github.com/chandler-hub/chandler/internal/cli/resource"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/manifests"
	"github.com/chandler-hub/chandler/internal/version"
)

// installManager is the field manager of what `chandler install` applies.
const installManager = "chandler-install"

// Options are the flags of `chandler install`.
type Options struct {
	hub.Connection
	terminal.Streams
	manifests.Options
	Export, Wait        bool
	Skew, Force         bool
	DryRun              string
	Timeout             time.Duration
	argsWritten, server bool
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
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
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Streams, o.Args, o.argsWritten = terminal.Of(cmd), args, len(args) > 0
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	f := cmd.Flags()
	o.AddBare(cmd, from) // the hub's namespace has a default of its own
	f.StringVarP(&o.Namespace, "namespace", "n", hubconfig.DefaultNamespace, "namespace of the hub")
	f.StringVar(&o.FluxNamespace, "flux-namespace", manifests.FluxNamespace, "namespace of Flux")
	f.StringVar(&o.Image, "image", version.Image(), "image of the hub, with a tag or a digest")
	f.IntVar(&o.Replicas, "replicas", 0, "pods of the hub (default: as installed, or 2)")
	f.BoolVar(&o.Policies, "policies", true,
		"install the admission policies (docs/policies.md)")
	f.BoolVar(&o.Export, "export", false, "print YAML for Git, change nothing")
	f.StringVar(&o.DryRun, "dry-run", "none", "none or server: let the API server check everything, change nothing")
	f.BoolVar(&o.Wait, "wait", true, "wait until the hub runs")
	command.AddTimeout(f, &o.Timeout, 5*time.Minute, "how long to wait")
	f.BoolVar(&o.Force, "force-conflicts", false, "take over fields of others, as kubectl apply --server-side does")
	f.BoolVar(&o.Skew, "allow-skew", false, "allow an older version, or one that does not fit this command line")
	exit.Means(cmd, "the hub runs (with --wait=false: it is applied)", "refused, a conflict, or the hub does not run in time")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	o.server = o.DryRun == "server"
	objects, err := o.check()
	if err != nil {
		return exit.Wrong(fmt.Errorf("install: %w", err))
	}
	if o.Export {
		return resource.Export(o.Out, objects)
	}
	connected, restConfig, err := o.Factory.Connect(ctx, o.Flags)
	if err != nil {
		return exit.Advise(err, resource.ExportsAnyway)
	}
	o.Client = connected
	asked, err := discovery.NewDiscoveryClientForConfig(restConfig)
	if err != nil {
		return err
	}
	kubernetes, err := asked.ServerVersion()
	if err != nil {
		return exit.Advise(fmt.Errorf("ask the management cluster for its version: %w", err), resource.ExportsAnyway)
	}
	return o.install(ctx, kubernetes.GitVersion)
}

// check says what is wrong with the flags, and returns what they make without a look at a cluster.
func (o *Options) check() ([]*unstructured.Unstructured, error) {
	switch {
	case o.DryRun != "none" && o.DryRun != "server":
		return nil, fmt.Errorf("--dry-run is %q: write none or server; --export prints everything without a server", o.DryRun)
	case o.Replicas < 0:
		return nil, errors.New("--replicas must not be negative")
	}
	rules := slices.ContainsFunc(o.Args, func(a string) bool { return strings.HasPrefix(a, "--"+hubconfig.FlagRegistrationRules+"=") })
	if rules && !o.Export {
		return nil, fmt.Errorf("--%s names a file in the hub's pod, and install puts none there: install by Helm with value "+
			"registrationRules, or add the file to what --export prints (docs/sources.md#by-rule)", hubconfig.FlagRegistrationRules)
	}
	if err := manifests.CheckImage(o.Image); err != nil {
		return nil, err
	}
	return manifests.Build(config.Files, o.Options)
}

func (o *Options) install(ctx context.Context, kubernetes string) error {
	there, err := installation.Look(ctx, o.Client, o.Namespace)
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
	if err := manifests.Refuse(there, o.Options, shared.HubID, build, o.Skew); err != nil {
		return err
	}
	objects, err := manifests.Build(config.Files, o.Options)
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	if !o.argsWritten && len(o.Args) > 0 {
		fmt.Fprintf(o.Out, "The hub keeps its flags: %s\n", strings.Join(o.Args, " "))
	}
	if !there.FluxCRDs {
		fmt.Fprintln(o.ErrOut, "Warning: Flux is not on this cluster, and without it the hub delivers nothing "+
			"(docs/install.md#1-look-at-flux)")
	}
	w := &resource.Writer{Client: o.Client, Out: o.Out, Manager: installManager, Overwrite: true, Force: o.Force, Dry: o.server}
	before, err := w.Ask(ctx, objects)
	if err != nil {
		return err
	}
	rights := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool {
		return manifests.PhaseOf(u.GetKind()) > manifests.Definitions
	})
	if err := w.Put(ctx, objects[:rights], before[:rights]); err != nil {
		return err
	}
	wait := &installation.Waiter{Client: o.Client, Out: o.Out, Timeout: o.Timeout}
	if !o.server { // the others are of no use without them
		if err := wait.Current(ctx, objects[:rights]); err != nil {
			return err
		}
	}
	if err := w.Put(ctx, objects[rights:], before[rights:]); err != nil {
		return err
	}
	switch {
	case o.server:
		fmt.Fprintln(o.Out, "Nothing was changed: --dry-run=server")
		return nil
	case !o.Wait:
		return nil
	}
	if err := wait.Current(ctx, objects[len(objects)-1:]); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "The hub runs in namespace %s. chandler doctor looks whether all is well\n", o.Namespace)
	return nil
}

// keep takes from an installed hub what the user has not written.
func (o *Options) keep(there manifests.There) {
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
