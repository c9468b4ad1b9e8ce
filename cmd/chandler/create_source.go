// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/draft"
)

func createSourceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "source",
		Short: "Create a Flux source: git, helm or oci",
		Long:  "Creates a Flux source of its own. A set can also have its sources in spec.sources, which chandler create set writes.",
		Example: `  chandler create source git fleet --url https://git.example.org/fleet.git --branch main
  chandler create source helm charts --url https://charts.example.org --export`,
	}
	return group(cmd,
		sourceCommand("git", sourcev1.GitRepositoryKind, "a Git repository",
			`  chandler create source git fleet --url https://git.example.org/fleet.git --branch main
  chandler create source git fleet --url ssh://git@git.example.org/fleet --tag-semver '>=1.0.0' --secret-ref fleet-key --export`,
			func(f *pflag.FlagSet, s *draft.Source) {
				f.StringVar(&s.Branch, "branch", "", "the branch")
				f.StringVar(&s.Tag, "tag", "", "the tag")
				f.StringVar(&s.TagSemver, "tag-semver", "", "the range of tags, such as >=1.0.0")
				f.StringVar(&s.Ref, "ref-name", "", "the reference, such as refs/pull/1/head")
				f.StringVar(&s.Commit, "commit", "", "the commit")
				f.StringVar(&s.ProxyRef, "proxy-secret-ref", "", "the Secret with the address of the proxy, and its credentials")
				f.BoolVar(&s.Submodules, "recurse-submodules", false, "fetch submodules too")
			}),
		sourceCommand("helm", sourcev1.HelmRepositoryKind, "a Helm repository",
			`  chandler create source helm charts --url https://charts.example.org --secret-ref charts-credentials
  chandler create source helm podinfo --url oci://ghcr.io/stefanprodan/charts --export`,
			func(f *pflag.FlagSet, s *draft.Source) {
				f.StringVar(&s.CertRef, "cert-secret-ref", "", "the Secret with the certificate of the server, or for it")
				f.BoolVar(&s.PassCredentials, "pass-credentials", false, "send the credentials to all hosts that charts come from")
			}),
		sourceCommand("oci", sourcev1.OCIRepositoryKind, "an OCI repository",
			`  chandler create source oci fleet --url oci://registry.example.org/fleet --tag latest
  chandler create source oci fleet --url oci://registry.example.org/fleet --tag-semver 6.x --interval 10m --export`,
			func(f *pflag.FlagSet, s *draft.Source) {
				f.StringVar(&s.Tag, "tag", "", "the tag")
				f.StringVar(&s.TagSemver, "tag-semver", "", "the range of tags, such as 6.x")
				f.StringVar(&s.Digest, "digest", "", "the digest, such as sha256:…")
				f.StringVar(&s.CertRef, "cert-secret-ref", "", "the Secret with the certificate of the registry, or for it")
				f.StringVar(&s.ProxyRef, "proxy-secret-ref", "", "the Secret with the address of the proxy, and its credentials")
				f.StringVar(&s.Provider, "provider", "", "who gives the credentials: generic, aws, azure or gcp")
				f.BoolVar(&s.Insecure, "insecure", false, "talk to the registry without TLS")
			}),
	)
}

// sourceCommand returns the command for one kind of source. own adds the flags that only this kind has.
func sourceCommand(use, kind, what, example string, own func(*pflag.FlagSet, *draft.Source)) *cobra.Command {
	c, s := &creation{}, draft.Source{Kind: kind}
	cmd := &cobra.Command{
		Use:   use + " NAME --url URL",
		Short: "Create " + what,
		Long: "Creates " + what + " for Flux, with the flags of flux create source " + use + ". It writes no Secret: name one by " +
			"--secret-ref.",
		Example:           example,
		ValidArgsFunction: newName,
		Args:              oneName("source"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.Name, s.Labels = args[0], c.labels
			return c.run(cmd, s)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&s.Object.Namespace, "namespace", "n", "flux-system", "the namespace of the source: that of the sets that use it")
	f.StringVar(&s.URL, "url", "", "its address")
	f.StringVar(&s.SecretRef, "secret-ref", "", "the Secret, in the same namespace, with the credentials")
	f.DurationVar(&s.Interval, "interval", time.Minute, "how often Flux looks for changes")
	f.DurationVar(&s.Timeout, "source-timeout", 0, "how long Flux waits for it (default 60s)")
	own(f, &s)
	c.addFlags(cmd, "hub-namespace")
	return cmd
}
