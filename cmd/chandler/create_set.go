// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/draft"
)

func createSetCommand() *cobra.Command {
	c, s := &creation{}, draft.Set{}
	var values []string
	cmd := &cobra.Command{
		Use:   "set NAME (--selector KEY=VALUE | --all) (--from-helm | --from-git | --from-oci | --source)",
		Short: "Create an AddonSet with one add-on, and the source that it comes from",
		Long: `Creates an AddonSet that delivers one Helm chart, or one folder of manifests, to the clusters that it selects. The source is part
of the set (spec.sources), and the hub keeps it; with --source the set refers to one that exists.`,
		Example: `  # A chart of a Helm repository, on every production cluster:
  chandler create set cert-manager --selector tier=prod --from-helm https://charts.jetstack.io/cert-manager --chart-version 1.x \
    --target-namespace cert-manager

  # A chart of an OCI registry:
  chandler create set podinfo --all --from-helm oci://ghcr.io/stefanprodan/charts/podinfo --chart-version 6.x --export

  # A folder of a Git repository:
  chandler create set policies --selector tier=prod --from-git https://git.example.org/fleet.git --branch main --path ./policies --export

  # A source that exists, as flux create helmrelease takes it:
  chandler create set hello --all --source HelmRepository/charts --chart hello --export`,
		ValidArgsFunction: newName,
		Args:              oneName("set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.Name, s.Labels = args[0], c.labels
			var err error
			if s.Values, err = readValues(values); err != nil {
				return &exit{uncertain, err} // the command line is wrong: a file of it cannot be read
			}
			return c.run(cmd, s)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&s.Object.Namespace, "namespace", "n", "flux-system", "the namespace of the set: a platform namespace, or a team's")
	f.StringVarP(&s.Selector, "selector", "l", "", "which clusters, by the labels of their ClusterRegistrations, such as tier=prod")
	f.BoolVar(&s.All, "all", false, "every cluster in reach, in place of --selector")
	f.StringVar(&s.Addon, "addon", "", "the name of the add-on (default: the chart's, or the set's)")
	f.StringVar(&s.FromHelm, "from-helm", "", "a chart: the address of its repository, a slash, and its name")
	f.StringVar(&s.FromGit, "from-git", "", "a Git repository with manifests")
	f.StringVar(&s.FromOCI, "from-oci", "", "an OCI repository with manifests")
	f.StringVar(&s.Source, "source", "", "a source that exists in the namespace of the set: KIND/NAME")
	f.StringVar(&s.Chart, "chart", "", "the chart, or its path, in --source")
	f.StringVar(&s.ChartVersion, "chart-version", "", "the version of the chart, or a range such as 1.x")
	f.StringVar(&s.Path, "path", "", "the folder with the manifests")
	f.StringVar(&s.Branch, "branch", "", "the branch of --from-git")
	f.StringVar(&s.Tag, "tag", "", "the tag of --from-git or --from-oci")
	f.StringVar(&s.TagSemver, "tag-semver", "", "the range of tags of --from-git or --from-oci, such as >=1.0.0")
	f.StringVar(&s.SecretRef, "secret-ref", "", "the Secret, in the namespace of the set, with the credentials for the source")
	f.StringVar(&s.ReleaseName, "release-name", "", "the name of the Helm release (default: the add-on's name)")
	f.StringVar(&s.TargetNamespace, "target-namespace", "", "where it goes on the cluster (default for a chart: the add-on's name)")
	f.StringArrayVar(&values, "values", nil, "a file of Helm values; may be repeated, and later ones win")
	f.DurationVar(&s.Interval, "interval", 0, "how often Flux looks for drift (default 10m)")
	f.StringSliceVar(&s.DependsOn, "depends-on", nil, "sets of the same namespace that come first")
	f.BoolVar(&s.Orphan, "orphan", false, "leave the add-on on the cluster when the set goes (deletionPolicy: Orphan)")
	c.addFlags(cmd, "hub-namespace")
	return cmd
}
