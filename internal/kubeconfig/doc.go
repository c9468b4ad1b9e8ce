// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig decides which kubeconfigs of workload clusters the hub accepts, and reduces what it accepts to the
// minimum that Flux needs. It picks the key of a Secret, parses strictly, checks the result against a table of rules, and
// emits a minimal kubeconfig, fingerprints and the credential's expiry.
//
// The package is pure. It must not use a Kubernetes client, a clock, the environment, the network or files: rules and bytes
// go in, a [Config] or an [*Error] comes out. Equal input gives equal output.
//
// What it must never do: put bytes of the Secret into an error text. Errors name fields by path and index, never by the
// names found in the kubeconfig; texts of the YAML, JSON, X.509 and URL parsers are dropped, since they quote their input.
// The one thing that an error may repeat is an IP address in canonical form, which the registration's status publishes as
// its endpoint anyway.
package kubeconfig
