// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/registrar"
)

// registerOptions are the flags of `chandler register`.
type registerOptions struct {
	*registrarOptions
	req          registrar.Request
	export, wait bool
}

func registerCommand() *cobra.Command {
	o := &registerOptions{registrarOptions: newRegistrarOptions()}
	cmd := &cobra.Command{
		Use:   "register NAME --cluster-kubeconfig FILE",
		Short: "Register a cluster",
		Long: `Makes a ServiceAccount for the hub on the workload cluster, and writes a kubeconfig with its token into a
Secret on the management cluster, which registers the cluster. The hub renews the token. It checks first, shows what it will
do, and asks. Run it again to finish what failed.

--cluster-kubeconfig and --cluster-context are the workload cluster's; the hub is found as by all commands.`,
		Example: `  chandler register edge1 --cluster-kubeconfig edge1.conf -n fleet --labels tier=prod
  chandler register edge1 --cluster-context kind-edge1 --address https://172.18.0.5:6443 -n fleet
  chandler register edge1 -n fleet --export`,
		ValidArgsFunction: newName,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("register: write the name that the cluster gets: chandler register NAME --cluster-kubeconfig FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringToStringVar(&o.req.Labels, "labels", nil, "labels of the cluster: KEY=VALUE[,KEY=VALUE]")
	f.Lookup("labels").DefValue = ""
	f.StringVar(&o.req.Role, "role", account.AdminRole, "ClusterRole of the hub on the cluster; add-ons can do no more")
	f.StringVar(&o.req.Address, "address", "", "address of the cluster for the hub and Flux, if yours does not do: https://HOST:PORT")
	f.DurationVar(&o.req.Lifetime, "token-ttl", 720*time.Hour, "lifetime of the token; the hub renews it in time")
	f.BoolVar(&o.export, "export", false, "print YAML for Git, without the credential, change nothing")
	f.BoolVar(&o.wait, "wait", true, "wait until the hub reaches the cluster")
	o.addFlags(cmd, 2*time.Minute)
	return cmd
}

func (o *registerOptions) run(cmd *cobra.Command, arg string) error {
	var err error
	if o.req.Name, err = o.name(arg); err != nil {
		return &exit{uncertain, err}
	}
	if err := o.req.Validate(); err != nil {
		return &exit{uncertain, err}
	}
	if o.export && *o.cluster.KubeConfig+*o.cluster.Context != "" {
		return &exit{uncertain, errors.New("register: --export asks no workload cluster: leave out --cluster-kubeconfig and --cluster-context")}
	}
	if o.export {
		return o.print(cmd)
	}
	r, err := o.connect(cmd)
	if err != nil {
		return err
	}
	if r.Cluster == nil {
		return &exit{uncertain, errors.New("which cluster? Write --cluster-kubeconfig FILE, or --cluster-context NAME of your kubeconfig")}
	}
	ctx := cmd.Context()
	work, err := r.Check(ctx, o.req)
	if err != nil {
		return decide(err)
	}
	if err := work.Plan.Print(o.Out); err != nil {
		return err
	}
	if !work.Plan.Nothing() {
		if err := o.agreed(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintln(o.Out)
	if err := r.Apply(ctx, work); err != nil {
		return err
	}
	if !o.wait {
		return nil
	}
	if err := r.Reachable(ctx, work); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Cluster %s is registered; chandler explain %s says what it gets\n", o.req.Name, o.req.Name)
	return nil
}

// print prints what would be made, in two parts.
func (o *registerOptions) print(cmd *cobra.Command) error {
	if _, err := o.hub.ToRESTConfig(); err == nil && !cmd.Flags().Changed("hub-id") {
		// Only the hub knows its ID, by which accounts are named. Without one, the default has to do.
		if _, err := o.connect(cmd); err != nil {
			fmt.Fprintf(o.ErrOut, "warning: the hub does not say which --hub-id it has, so this is for %q: %v\n", o.reader.Hub.HubID, err)
		}
	}
	if err := o.reader.Hub.Complete(hubconfig.DefaultNamespace); err != nil {
		return decide(err)
	}
	cluster, secret := registrar.Export(o.reader.Hub.HubID, o.req)
	fmt.Fprintln(o.Out, "# For the workload cluster. Nothing on the cluster removes these together: take them out where you apply them from.")
	if err := export(o.Out, cluster); err != nil {
		return err
	}
	content, err := unstructuredSecret(secret)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "# For the management cluster. chandler register %s writes the token into it, and the hub renews it.\n", o.req.Name)
	return export(o.Out, []*unstructured.Unstructured{content})
}

func unstructuredSecret(s *corev1.Secret) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		return nil, fmt.Errorf("write Secret %s as YAML: %w", s.Name, err)
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}
