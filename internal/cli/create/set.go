// SPDX-License-Identifier: Apache-2.0

package create

import (
	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/create"
)

func setCommand(from *factory.Factory, run Run) *cobra.Command {
	o, s := &Options{}, create.Set{}
	var values []string
	cmd := &cobra.Command{
		Use:                   "set NAME (-l LABELS | --all) (--from-helm | --from-git | --from-oci | --source)",
		DisableFlagsInUseLine: true,
		Short:                 "Create an AddonSet with one add-on",
		Long: `Creates an AddonSet that delivers a Helm chart, or a folder of manifests, to the clusters that it selects.
The source becomes part of the set (spec.sources). --source uses an existing source.`,
		Example: `  # A chart of a Helm repository, on every production cluster:
  chandler create set cert-manager --selector tier=prod --chart-version 1.x \
    --from-helm https://charts.jetstack.io/cert-manager --target-namespace cert-manager

  # A chart of an OCI registry:
  chandler create set podinfo --all --from-helm oci://ghcr.io/stefanprodan/charts/podinfo \
    --chart-version 6.x --export

  # A folder of a Git repository:
  chandler create set policies --all --from-git https://git.example.org/fleet.git \
    --branch main --path ./policies --export

  # A source that exists:
  chandler create set hello --all --source HelmRepository/charts --chart hello --export`,
		ValidArgsFunction: command.NewName,
		Args:              command.OneName("set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.Name, s.Labels = args[0], o.Labels
			var err error
			if s.Values, err = readValues(values); err != nil {
				return exit.Wrong(err) // the command line is wrong: a file of it cannot be read
			}
			o.Streams, o.Maker = terminal.Of(cmd), s
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&s.Selector, "selector", "l", "", "clusters with these labels, such as tier=prod")
	f.BoolVar(&s.All, "all", false, "all clusters")
	f.StringVar(&s.Addon, "addon", "", "name of the add-on (default: that of the chart, or of the set)")
	f.StringVar(&s.FromHelm, "from-helm", "", "Helm chart: REPOSITORY-URL/CHART")
	f.StringVar(&s.FromGit, "from-git", "", "Git repository with manifests")
	f.StringVar(&s.FromOCI, "from-oci", "", "OCI repository with manifests")
	f.StringVar(&s.Source, "source", "", "existing source in the namespace of the set: KIND/NAME")
	f.StringVar(&s.Chart, "chart", "", "chart of --source, or its path there")
	f.StringVar(&s.ChartVersion, "chart-version", "", "version of the chart, or a range such as 1.x")
	f.StringVar(&s.Path, "path", "", "folder with the manifests")
	f.StringVar(&s.Branch, "branch", "", "branch of --from-git")
	f.StringVar(&s.Tag, "tag", "", "tag of --from-git or --from-oci")
	f.StringVar(&s.TagSemver, "tag-semver", "", "range of tags of --from-git or --from-oci, such as >=1.0.0")
	f.StringVar(&s.SecretRef, "secret-ref", "", "Secret with credentials for the source, in the namespace of the set")
	f.StringVar(&s.ReleaseName, "release-name", "", "name of the Helm release (default: that of the add-on)")
	f.StringVar(&s.TargetNamespace, "target-namespace", "", "namespace on the cluster (default for a chart: name of the add-on)")
	f.StringArrayVar(&values, "values", nil, "file with Helm values; may be repeated, later ones win")
	f.DurationVar(&s.Interval, "interval", 0, "how often Flux reconciles it (default 10m)")
	f.StringSliceVar(&s.DependsOn, "depends-on", nil, "sets in the same namespace that come first")
	f.BoolVar(&s.Orphan, "orphan", false, "leave the add-on on the cluster when the set is deleted (deletionPolicy: Orphan)")
	o.addFlags(cmd, from, &s.Object.Namespace, "namespace of the set: a platform namespace, or a team's")
	return cmd
}
