// SPDX-License-Identifier: Apache-2.0

package create

import (
	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/create"
)

func teamCommand(from *factory.Factory, run Run) *cobra.Command {
	o, t := &Options{}, create.Team{}
	cmd := &cobra.Command{
		Use:   "team NAME (-l LABELS | --all)",
		Short: "Create a Team and its namespaces",
		Long: `Creates a Team in a platform namespace, its namespaces on the management cluster, and, for each --group and
--user, the right to write AddonSets, sources, ConfigMaps and Secrets there. They may not write HelmReleases, Kustomizations
and ClusterRegistrations, which would reach further than the Team allows.`,
		Example: `  # One namespace on every staging cluster, from the team's own repositories:
  chandler create team shop --selector env=staging --cluster-namespace shop-apps \
    --pod-security restricted --network-policy Isolated \
    --allow-source 'https://git.example.org/shop/*' --group shop-developers

  # For Git, with a quota, on the clusters of two environments:
  chandler create team shop --selector 'env in (staging, production)' \
    --quota requests.cpu=8,requests.memory=16Gi --export`,
		ValidArgsFunction: command.NewName,
		Args:              command.OneName("team"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.Name, t.Labels = args[0], o.Labels
			o.Streams, o.Maker = terminal.Of(cmd), t
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&t.HubNamespaces, "team-namespace", nil, "namespaces of the team on the management cluster (default: name of the Team)")
	f.StringVarP(&t.Selector, "selector", "l", "", "clusters with these labels, such as tier=prod")
	f.BoolVar(&t.All, "all", false, "all clusters")
	f.StringSliceVar(&t.Namespaces, "cluster-namespace", nil, "namespaces of the team on each cluster (default: name of the Team)")
	f.StringVar(&t.PodSecurity, "pod-security", "", "Pod security of its cluster namespaces: privileged, baseline or restricted")
	f.StringVar(&t.Network, "network-policy", "", "Isolated (only the namespaces of the team, and DNS) or None")
	f.StringToStringVar(&t.Quota, "quota", nil, "quota of each cluster namespace: RESOURCE=QUANTITY[,RESOURCE=QUANTITY]")
	f.Lookup("quota").DefValue = ""
	f.StringVar(&t.ClusterRole, "cluster-role", "", "ClusterRole of the team in its cluster namespaces (default: admin)")
	f.StringSliceVar(&t.AllowSources, "allow-source", nil, "URLs the team may fetch from, such as https://git.example.org/shop/*")
	f.StringSliceVar(&t.SourceKinds, "source-kind", nil, "kinds of sources the team may use, such as GitRepository")
	f.BoolVar(&t.Verified, "require-verification", false, "sources must verify a signature")
	f.BoolVar(&t.Delete, "delete-namespaces", false, "delete cluster namespaces, with all in them, when the team loses them")
	f.StringSliceVar(&t.Groups, "group", nil, "group whose members write the AddonSets of the team")
	f.StringSliceVar(&t.Users, "user", nil, "user who writes the AddonSets of the team")
	o.addFlags(cmd, from, &t.Object.Namespace, "platform namespace of the Team")
	return cmd
}
