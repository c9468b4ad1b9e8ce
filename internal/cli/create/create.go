// SPDX-License-Identifier: Apache-2.0

// Package create is `chandler create`.
package create

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/resource"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/create"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
)

// createManager is the field manager of what `chandler create` applies. It is the user's, and so not the hub's.
const createManager = "chandler-create"

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a team, or a set with one add-on",
		Long: `Creates a Team with its namespaces, or an AddonSet with its source. --export prints YAML for Git and
changes nothing.`,
		Example: `  chandler create team shop --selector env=staging --group shop-developers
  chandler create set monitoring --all --from-helm https://charts.example.org/prometheus --export`,
	}
	exit.Means(cmd, "everything is created, or was there already", "it is invalid, the hub refuses it, or something else is there")
	return command.Group(cmd, setCommand(from, run), teamCommand(from, run))
}

// Run is what a command does. A test replaces it.
type Run = func(context.Context, *Options) error

// Options are what the commands of `chandler create` have in common.
type Options struct {
	hub.Connection
	terminal.Streams
	// Maker makes what is created.
	Maker  Maker
	Labels map[string]string
	Export bool
	// Overwrite and Force are those of a writer.
	Overwrite, Force bool
}

// Maker makes the objects that a command is asked for.
type Maker interface {
	Make() ([]*unstructured.Unstructured, error)
}

// addFlags adds the flags that all the commands have. namespace says what -n is.
func (o *Options) addFlags(cmd *cobra.Command, from *factory.Factory, to *string, namespace string) {
	o.AddBare(cmd, from)
	f := cmd.Flags()
	f.StringVarP(to, "namespace", "n", "flux-system", namespace)
	o.AddIdentity(cmd)
	f.StringToStringVar(&o.Labels, "labels", nil, "labels of what is created: KEY=VALUE[,KEY=VALUE]")
	f.Lookup("labels").DefValue = ""
	f.BoolVar(&o.Export, "export", false, "print YAML for Git, change nothing")
	f.BoolVar(&o.Overwrite, "overwrite", false, "change what exists")
	f.BoolVar(&o.Force, "force-conflicts", false, "take over fields of others, as kubectl apply --server-side does")
}

// run makes the objects, checks them, and prints or applies them.
func (o *Options) run(ctx context.Context) error {
	objects, err := o.Maker.Make()
	if err != nil {
		return exit.Wrong(err) // a flag is missing, does not go with another one, or cannot be read
	}
	if o.Export {
		if err := o.Reader.Hub.Complete(hubconfig.DefaultNamespace); err != nil {
			return err
		}
		if err := create.Check(objects, nil, o.Reader.Hub, o.Now()); err != nil {
			return err
		}
		return resource.Export(o.Out, objects)
	}
	if err := o.Ask(ctx); err != nil {
		return exit.Advise(err, resource.ExportsAnyway)
	}
	teams, err := o.teams(ctx)
	if err != nil {
		return err
	}
	if err := create.Check(objects, teams, o.Reader.Hub, o.Now()); err != nil {
		return err
	}
	if err := o.checkPeople(ctx, objects); err != nil {
		return err
	}
	w := resource.Writer{Client: o.Client, Out: o.Out, Manager: createManager, Overwrite: o.Overwrite || o.Force, Force: o.Force}
	return w.Write(ctx, objects)
}

// checkPeople refuses hub namespaces in which the people of a team, who read Secrets there, would find admin kubeconfigs.
func (o *Options) checkPeople(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		if u.GetKind() != "RoleBinding" {
			continue
		}
		at := u.GetNamespace()
		regs, ns := &hubv1.ClusterRegistrationList{}, &corev1.Namespace{}
		if err := o.Client.List(ctx, regs, client.InNamespace(at), client.Limit(1)); err != nil {
			return fmt.Errorf("list the ClusterRegistrations of namespace %s: %w", at, err)
		}
		err := o.Client.Get(ctx, client.ObjectKey{Name: at}, ns)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read namespace %s: %w", at, err)
		}
		if len(regs.Items) > 0 || ns.Labels[hubv1.RegisterSecretsLabel] == "true" {
			return fmt.Errorf("namespace %s registers clusters, so admin kubeconfigs lie there, and the people of a team read Secrets in its hub "+
				"namespaces: name another one by --team-namespace", at)
		}
	}
	return nil
}

// teams returns the Teams of the hub, which decide what a set may do. A user who may not list them learns from the hub what
// is forbidden.
func (o *Options) teams(ctx context.Context) ([]hubv1.Team, error) {
	list := &hubv1.TeamList{}
	switch err := o.Client.List(ctx, list); {
	case err == nil, apierrors.IsForbidden(err):
		return list.Items, nil
	case meta.IsNoMatchError(err):
		return nil, live.NoHub("Teams")
	default:
		return nil, fmt.Errorf("list the Teams: %w", err)
	}
}

// readValues reads files of Helm values, and merges them: a later file wins.
func readValues(files []string) (map[string]any, error) {
	out := map[string]any{}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("--values: %w", err)
		}
		if out, err = create.Values(out, raw); err != nil {
			return nil, fmt.Errorf("--values %s: %w", name, err)
		}
	}
	return out, nil
}
