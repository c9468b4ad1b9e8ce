// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/draft"
)

func createTeamCommand() *cobra.Command {
	c, t := &creation{}, draft.Team{}
	cmd := &cobra.Command{
		Use:   "team NAME (--selector KEY=VALUE | --all)",
		Short: "Create a Team, its hub namespace, and what its people may do there",
		Long: `Creates a Team in a platform namespace, its hub namespaces on the management cluster, and, for each --group and --user, the right
to write AddonSets, sources, ConfigMaps and Secrets there. The people do not get the right to write HelmReleases, Kustomizations and
ClusterRegistrations: with these they would reach further than the Team allows.`,
		Example: `  # A team with one namespace on every staging cluster, that may fetch from its own repositories:
  chandler create team shop --selector env=staging --namespace shop-apps --pod-security restricted --network-policy Isolated \
    --allow-source 'https://git.example.org/shop/*' --group shop-developers

  # For Git, with a quota, for the clusters of two environments:
  chandler create team shop --selector 'env in (staging, production)' --quota requests.cpu=8,requests.memory=16Gi --export`,
		ValidArgsFunction: newName,
		Args:              oneName("team"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.Name, t.Labels = args[0], c.labels
			return c.run(cmd, t)
		},
	}
	f := cmd.Flags()
	f.StringVar(&t.Object.Namespace, "platform-namespace", "flux-system", "the platform namespace in which the Team is made")
	f.StringSliceVar(&t.HubNamespaces, "hub-namespace", nil, "the team's namespaces on the management cluster (default: the Team's name)")
	f.StringVarP(&t.Selector, "selector", "l", "", "which clusters, by the labels of their ClusterRegistrations, such as env=staging")
	f.BoolVar(&t.All, "all", false, "every cluster, in place of --selector")
	f.StringSliceVar(&t.Namespaces, "namespace", nil, "the team's namespaces on each cluster (default: the Team's name)")
	f.StringVar(&t.PodSecurity, "pod-security", "", "the level of Pod security in these: privileged, baseline or restricted")
	f.StringVar(&t.Network, "network-policy", "", "Isolated lets Pods talk to the team's own namespaces and to DNS only; or None")
	f.StringToStringVar(&t.Quota, "quota", nil, "what each of these may use: RESOURCE=QUANTITY[,RESOURCE=QUANTITY]")
	f.StringVar(&t.ClusterRole, "cluster-role", "", "the ClusterRole of the clusters that the team has in these (default: admin)")
	f.StringSliceVar(&t.AllowSources, "allow-source", nil, "URLs that the team may fetch from, such as https://git.example.org/shop/*")
	f.StringSliceVar(&t.SourceKinds, "source-kind", nil, "kinds of sources that it may use, such as GitRepository")
	f.BoolVar(&t.Verified, "require-verification", false, "every source must verify a signature")
	f.BoolVar(&t.Delete, "delete-namespaces", false, "delete a namespace on a cluster when the team loses it, with all that is in it")
	f.StringSliceVar(&t.Groups, "group", nil, "a group whose members write the team's AddonSets")
	f.StringSliceVar(&t.Users, "user", nil, "a user who writes the team's AddonSets")
	c.addFlags(cmd, "hub-config-namespace")
	return cmd
}
