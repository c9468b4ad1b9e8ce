// SPDX-License-Identifier: Apache-2.0

// Package get is `chandler get`.
package get

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/get/outdated"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/listing"
	"github.com/chandler-hub/chandler/internal/page"
)

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "List clusters, sets, add-ons, and what is outdated",
		Long: `Lists what a hub has, one line each. Without -n it lists all namespaces. It reads page by page, so a large
fleet is fine.`,
		Example: `  chandler get clusters
  chandler get addons tenant1
  chandler get sets -n flux-system -w`,
	}
	exit.Means(cmd, "", "something that you named does not exist; the rest is printed")
	return command.Group(cmd, addonsCommand(from, run), clustersCommand(from, run), outdated.New(from, nil), setsCommand(from, run))
}

// Run is what a command does. A test replaces it.
type Run = func(context.Context, *Options) error

// Options are the flags of `chandler get`.
type Options struct {
	hub.Connection
	terminal.Streams
	// Args are names.
	Args                         []string
	Output, Selector             string
	All, Watch, Failed, NoHeader bool
	// Set and Addon are for add-ons alone.
	Set, Addon string
	kind       kindToGet
}

// outputs are the forms of output.
var outputs = []string{"", "wide", "json", "yaml", "name"}

func newOptions(cmd *cobra.Command, from *factory.Factory, run Run, kind kindToGet, selects string) *Options {
	o := &Options{kind: kind}
	o.AddFlags(cmd, from)
	f := cmd.Flags()
	f.BoolVarP(&o.All, "all-namespaces", "A", false, "look in all namespaces (the default)")
	f.StringVarP(&o.Output, "output", "o", "", "output format: wide, json, yaml or name (default: a table)")
	f.BoolVarP(&o.Watch, "watch", "w", false, "watch for changes")
	f.StringVarP(&o.Selector, "selector", "l", "", "show only "+selects+", such as tier=prod,region!=eu")
	f.BoolVar(&o.Failed, "failed", false, "show only what needs attention")
	f.BoolVar(&o.NoHeader, "no-headers", false, "print no header")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Streams, o.Args = terminal.Of(cmd), args
		return command.Run(cmd.Context(), o, run, o.run)
	}
	cmd.ValidArgsFunction = o.CompleteNames(kind.names, true)
	command.Complete(cmd, "output", cobra.FixedCompletions(outputs[1:], cobra.ShellCompDirectiveNoFileComp))
	return o
}

// check returns what is wrong with the flags.
func (o *Options) check() error {
	switch {
	case !slices.Contains(outputs, o.Output):
		return fmt.Errorf("get %s: there is no output %q: write -o wide, json, yaml or name", o.kind.what, o.Output)
	case o.All && *o.Flags.Namespace != "":
		return fmt.Errorf("get %s: write -n for one namespace, or -A for all, and not both", o.kind.what)
	case o.Watch && o.Output != "" && o.Output != "wide":
		return fmt.Errorf("get %s: --watch prints lines of a table: leave out -o %s", o.kind.what, o.Output)
	case o.Watch && len(o.Args) > 1:
		return fmt.Errorf("get %s: --watch follows one name, or all: leave out the names", o.kind.what)
	}
	if err := hub.CheckNames("get "+o.kind.what, o.Args); err != nil || o.Set == "" {
		return err
	}
	return hub.CheckNames("get "+o.kind.what+" --set", []string{o.Set})
}

// kindToGet is one of the kinds that `chandler get` lists.
type kindToGet struct {
	// what and one are what people call it, and kinds is its kind in the plural.
	what, one, kinds string
	// names is the kind whose names people write.
	names   string
	list    func() client.ObjectList
	columns []page.Column
	// items returns what an object shows: itself, or its add-ons.
	items func(o *Options, object client.Object) []item
	// byCluster says that names and labels are those of clusters, and the objects deliveries.
	byCluster bool
}

// item is one line.
type item struct {
	row listing.Row
	// object is what JSON and YAML show, and name what kubectl calls it.
	object any
	name   string
}

func clustersCommand(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "clusters [NAME...]",
		Aliases: []string{"cluster", "clusterregistrations", "clusterregistration", "clreg"},
		Short:   "List clusters and their state",
		Long: `Lists clusters: whether all add-ons are Ready, whether the cluster answers, its version, and how many of
its add-ons are Ready. --failed lists clusters that do not answer, have no valid credential, or have a failed add-on.`,
		Example: `  chandler get clusters -l tier=prod
  chandler get clusters --failed -w
  chandler get clusters tenants/tenant1 -o yaml`,
	}
	newOptions(cmd, from, run, kindToGet{
		what: "clusters", one: "cluster", kinds: "ClusterRegistrations", names: "ClusterRegistration", columns: listing.ClusterColumns,
		list: func() client.ObjectList { return &hubv1.ClusterRegistrationList{} },
		items: func(o *Options, object client.Object) []item {
			return []item{{row: listing.Cluster(object.(*hubv1.ClusterRegistration), o.Now()), object: object}}
		},
	}, "clusters with these labels")
	return cmd
}

func setsCommand(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "sets [NAME...]",
		Aliases: []string{"set", "addonsets", "addonset", "aset"},
		Short:   "List sets and how many of their clusters are Ready",
		Long: `Lists AddonSets: how many of their clusters are Ready, how many have been Ready on the newest revision, and
the state of the rollout. --failed lists sets that do not compile, that failed on a cluster, or whose rollout failed.`,
		Example: `  chandler get sets
  chandler get sets cert-manager -n flux-system -w
  chandler get sets --failed -o name`,
	}
	newOptions(cmd, from, run, kindToGet{
		what: "sets", one: "set", kinds: "AddonSets", names: "AddonSet", columns: listing.SetColumns,
		list: func() client.ObjectList { return &hubv1.AddonSetList{} },
		items: func(o *Options, object client.Object) []item {
			return []item{{row: listing.Set(object.(*hubv1.AddonSet), o.Now()), object: object}}
		},
	}, "sets with these labels")
	return cmd
}

func addonsCommand(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "addons [CLUSTER...]",
		Aliases: []string{"addon"},
		Short:   "List the add-ons of clusters, or the clusters of an add-on",
		Long: `Lists add-ons: cluster, version and state. For a CLUSTER it only reads what is delivered there. -n is the
namespace of the sets, and -l selects clusters by their labels. --failed lists add-ons that failed, or that found another
owner's object in their place. -o name prints the Flux objects.`,
		Example: `  chandler get addons tenant1
  chandler get addons --addon cert-manager -o wide
  chandler get addons -l tier=prod --failed -w`,
	}
	o := newOptions(cmd, from, run, kindToGet{
		what: "add-ons", one: "cluster", kinds: "AddonDeliveries", names: "ClusterRegistration", columns: listing.AddonColumns, byCluster: true,
		list:  func() client.ObjectList { return &hubv1.AddonDeliveryList{} },
		items: addonItems,
	}, "add-ons on clusters with these labels")
	cmd.Flags().StringVar(&o.Set, "set", "", "show only add-ons of this set, NAME or NAMESPACE/NAME")
	cmd.Flags().StringVar(&o.Addon, "addon", "", "show only add-ons with this name")
	command.Complete(cmd, "set", o.CompleteNames("AddonSet", true))
	return cmd
}

func addonItems(o *Options, object client.Object) []item {
	var out []item
	for _, a := range listing.Addons(object.(*hubv1.AddonDelivery), o.Addon) {
		out = append(out, item{row: a.Row(o.Now()), object: a, name: a.FluxObject()})
	}
	return out
}

var errNotFound = errors.New("not everything was found")
