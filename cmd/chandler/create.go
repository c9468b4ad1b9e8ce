// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/draft"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
)

// createManager is the field manager of what `chandler create` applies. It is the user's, and so not the hub's.
const createManager = "chandler-create"

func createCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a team, or a set with one add-on",
		Long: `Creates a Team with its namespaces, or an AddonSet with its source. --export prints YAML for Git and
changes nothing.`,
		Example: `  chandler create team shop --selector env=staging --group shop-developers
  chandler create set monitoring --all --from-helm https://charts.example.org/prometheus --export`,
	}
	return group(cmd, createSetCommand(), createTeamCommand())
}

// creation is what the commands of `chandler create` have in common.
type creation struct {
	flags  *genericclioptions.ConfigFlags
	reader live.Reader
	// hubConfig is the namespace in which the hub publishes its flags.
	hubConfig string
	labels    map[string]string
	export    bool
	// overwrite and force are those of a writer.
	overwrite, force bool
}

// maker makes the objects that a command is asked for.
type maker interface {
	Make() ([]*unstructured.Unstructured, error)
}

// addFlags adds the flags that all the commands have. namespace says what -n is.
func (c *creation) addFlags(cmd *cobra.Command, to *string, namespace string) {
	c.flags = kubectlFlags()
	c.flags.Namespace = nil // it has a default of its own
	f := cmd.Flags()
	c.flags.AddFlags(f)
	f.StringVarP(to, "namespace", "n", "flux-system", namespace)
	c.reader.Hub.AddIdentityFlags(f, hubconfig.DefaultNamespace)
	addHubNamespace(f, &c.hubConfig)
	f.StringToStringVar(&c.labels, "labels", nil, "labels of what is created: KEY=VALUE[,KEY=VALUE]")
	f.Lookup("labels").DefValue = ""
	f.BoolVar(&c.export, "export", false, "print YAML for Git, change nothing")
	f.BoolVar(&c.overwrite, "overwrite", false, "change what exists")
	f.BoolVar(&c.force, "force-conflicts", false, "take over fields of others, as kubectl apply --server-side does")
}

// run makes the objects, checks them, and prints or applies them.
func (c *creation) run(cmd *cobra.Command, m maker) error {
	objects, err := m.Make()
	if err != nil {
		return &exit{uncertain, err} // a flag is missing, or does not go with another one, or nobody can read it
	}
	if c.export {
		if err := c.reader.Hub.Complete(hubconfig.DefaultNamespace); err != nil {
			return err
		}
		if err := draft.Check(objects, nil, c.reader.Hub, time.Now()); err != nil {
			return err
		}
		return export(cmd.OutOrStdout(), objects)
	}
	config, err := reach(cmd.Context(), c.flags)
	if err != nil {
		return &advised{err, exportsAnyway}
	}
	if c.reader.Client, err = live.Connect(config); err != nil {
		return &exit{uncertain, err}
	}
	ctx := cmd.Context()
	if err := c.reader.Ask(ctx, c.hubConfig, cmd.Flags()); err != nil {
		return &advised{err, exportsAnyway}
	}
	teams, err := c.teams(ctx)
	if err != nil {
		return err
	}
	if err := draft.Check(objects, teams, c.reader.Hub, time.Now()); err != nil {
		return err
	}
	if err := c.checkPeople(ctx, objects); err != nil {
		return err
	}
	w := writer{client: c.reader.Client, out: cmd.OutOrStdout(), manager: createManager, overwrite: c.overwrite || c.force, force: c.force}
	return w.write(ctx, objects)
}

// checkPeople refuses hub namespaces in which the people of a team, who read Secrets there, would find admin kubeconfigs.
func (c *creation) checkPeople(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		if u.GetKind() != "RoleBinding" {
			continue
		}
		at := u.GetNamespace()
		regs, ns := &hubv1.ClusterRegistrationList{}, &corev1.Namespace{}
		if err := c.reader.Client.List(ctx, regs, client.InNamespace(at), client.Limit(1)); err != nil {
			return fmt.Errorf("list the ClusterRegistrations of namespace %s: %w", at, err)
		}
		err := c.reader.Client.Get(ctx, client.ObjectKey{Name: at}, ns)
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

// teams returns the Teams of the hub, which decide what a set may do. Who may not list them learns it from the hub.
func (c *creation) teams(ctx context.Context) ([]hubv1.Team, error) {
	list := &hubv1.TeamList{}
	switch err := c.reader.Client.List(ctx, list); {
	case err == nil, apierrors.IsForbidden(err):
		return list.Items, nil
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("this API server has no Teams, so %w: choose another one by --context or --kubeconfig", live.ErrNoHub)
	default:
		return nil, fmt.Errorf("list the Teams: %w", err)
	}
}

// export prints objects as one stream of YAML.
func export(out io.Writer, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		raw, err := yaml.Marshal(u.Object)
		if err != nil {
			return fmt.Errorf("write %s as YAML: %w", called(u), err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", raw); err != nil {
			return err
		}
	}
	return nil
}

// called returns what kubectl calls an object: addonset.chandler.dev/base.
func called(u *unstructured.Unstructured) string {
	gvk := u.GroupVersionKind()
	kind := strings.ToLower(gvk.Kind)
	if gvk.Group != "" {
		kind += "." + gvk.Group
	}
	return kind + "/" + u.GetName()
}

// readValues reads files of Helm values, each of which goes over those before it.
func readValues(files []string) (map[string]any, error) {
	out := map[string]any{}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("--values: %w", err)
		}
		if out, err = draft.Values(out, raw); err != nil {
			return nil, fmt.Errorf("--values %s: %w", name, err)
		}
	}
	return out, nil
}

// oneName returns the check of arguments that takes a name.
func oneName(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return fmt.Errorf("%s: write the name of the %s: %s", strings.TrimPrefix(cmd.CommandPath(), "chandler "), what, cmd.UseLine())
		}
		return nil
	}
}
