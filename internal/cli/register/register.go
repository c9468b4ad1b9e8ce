// SPDX-License-Identifier: Apache-2.0

// Package register is `chandler register`.
package register

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/pair"
	"github.com/chandler-hub/chandler/internal/cli/resource"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/register"
)

// Options are the flags of `chandler register`.
type Options struct {
	pair.Pair
	// Arg is the name that the cluster gets.
	Arg          string
	Request      register.Request
	Export, Wait bool
	// Rule is a file with registration rules to try.
	Rule   string
	DryRun string
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "register NAME --cluster-kubeconfig FILE",
		Short: "Register a cluster",
		Long: `Makes a ServiceAccount for the hub on the workload cluster, and writes a kubeconfig with its token into a
Secret on the management cluster, which registers the cluster. The hub renews the token. It checks first, shows what it will
do, and asks. Run it again to finish what failed.

--cluster-kubeconfig and --cluster-context are the workload cluster's; the hub is found as by all commands.

--rule FILE --dry-run tries registration rules (docs/sources.md#by-rule): it lists all that they match, in the namespace of -n
or in all, and says as what the hub would register each, or why not. It changes nothing.`,
		Example: `  chandler register edge1 --cluster-kubeconfig edge1.conf -n fleet --labels tier=prod
  chandler register edge1 --cluster-context kind-edge1 --address https://172.18.0.5:6443 -n fleet
  chandler register edge1 -n fleet --export
  chandler register --rule rules.yaml --dry-run`,
		ValidArgsFunction: command.NewName,
		Args:              o.check,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Arg = args[0]
			}
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	f := cmd.Flags()
	f.StringToStringVar(&o.Request.Labels, "labels", nil, "labels of the cluster: KEY=VALUE[,KEY=VALUE]")
	f.Lookup("labels").DefValue = ""
	f.StringVar(&o.Request.Role, "role", account.AdminRole, "ClusterRole of the hub on the cluster; add-ons can do no more")
	f.StringVar(&o.Request.Address, "address", "", "address of the cluster for the hub and Flux, if yours does not do: https://HOST:PORT")
	f.DurationVar(&o.Request.Lifetime, "token-ttl", 720*time.Hour, "lifetime of the token; the hub renews it in time")
	f.BoolVar(&o.Export, "export", false, "print YAML for Git, without the credential, change nothing")
	f.BoolVar(&o.Wait, "wait", true, "wait until the hub reaches the cluster")
	f.StringVar(&o.Rule, "rule", "", "file with registration rules to try, with --dry-run")
	f.StringVar(&o.DryRun, "dry-run", "none", "none or server: with --rule, say what would be registered, change nothing")
	f.Lookup("dry-run").NoOptDefVal = "server" // a word as of install, and of kubectl
	o.AddFlags(cmd, from, 2*time.Minute)
	exit.Means(cmd, "the cluster is registered, and the hub reaches it",
		"a check failed, you said no, or the hub does not reach it in time")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	if o.Rule != "" {
		return o.try(ctx)
	}
	var err error
	if o.Request.Name, err = o.Name(o.Arg); err != nil {
		return exit.Wrong(err)
	}
	if err := o.Request.Validate(); err != nil {
		return exit.Wrong(err)
	}
	if o.Export && *o.Cluster.KubeConfig+*o.Cluster.Context != "" {
		return exit.Wrong(errors.New("register: --export asks no workload cluster: leave out --cluster-kubeconfig and --cluster-context"))
	}
	if o.Export {
		return o.print(ctx)
	}
	r, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	if r.Cluster == nil {
		return exit.Wrong(errors.New("which cluster? Write --cluster-kubeconfig FILE, or --cluster-context NAME of your kubeconfig"))
	}
	work, err := r.Check(ctx, o.Request)
	if err != nil {
		return exit.Decide(err)
	}
	if err := work.Plan.Print(o.Out); err != nil {
		return err
	}
	if !work.Plan.Nothing() {
		if err := terminal.Agreed(ctx, o.In, o.Out, o.Yes); err != nil {
			return err
		}
	}
	fmt.Fprintln(o.Out)
	if err := r.Apply(ctx, work); err != nil {
		return err
	}
	if !o.Wait {
		return nil
	}
	if err := r.Reachable(ctx, work); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Cluster %s is registered; chandler explain %s says what it gets\n", o.Request.Name, o.Request.Name)
	return nil
}

// print prints what would be made, in two parts.
func (o *Options) print(ctx context.Context) error {
	if _, err := o.Flags.ToRESTConfig(); err == nil && !o.Written.Changed("hub-id") {
		// Only the hub knows its ID, by which accounts are named. Without one, the default has to do.
		if _, err := o.Connect(ctx); err != nil {
			fmt.Fprintf(o.ErrOut, "warning: the hub does not say which --hub-id it has, so this is for %q: %v\n", o.Reader.Hub.HubID, err)
		}
	}
	if err := o.Reader.Hub.Complete(hubconfig.DefaultNamespace); err != nil {
		return exit.Decide(err)
	}
	cluster, secret := register.Export(o.Reader.Hub.HubID, o.Request)
	fmt.Fprintln(o.Out, "# For the workload cluster. Nothing on the cluster removes these together: take them out where you apply them from.")
	if err := resource.Export(o.Out, cluster); err != nil {
		return err
	}
	content, err := unstructuredSecret(secret)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "# For the management cluster. chandler register %s writes the token into it, and the hub renews it.\n", o.Request.Name)
	return resource.Export(o.Out, []*unstructured.Unstructured{content})
}

func unstructuredSecret(s *corev1.Secret) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		return nil, fmt.Errorf("write Secret %s as YAML: %w", s.Name, err)
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}
