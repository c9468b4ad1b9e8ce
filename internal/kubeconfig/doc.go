// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig decides which kubeconfigs of workload clusters the hub accepts, and reduces them to the minimum
// that Flux needs. It picks the key of a Secret, parses strictly, checks the result against a table of rules, and
// returns a minimal kubeconfig, fingerprints and the credential's expiry.
//
// The package is pure. It must not use a Kubernetes client, a clock, the environment, the network or files: rules and
// bytes go in, a [Config] or an [*Error] comes out. Equal input gives equal output.
//
// It must never put bytes of the Secret into an error text. Errors name fields by path and index, never by the names
// found in the kubeconfig. The texts of the YAML, JSON, X.509 and URL parsers are dropped, since they quote their
// input. An error may repeat one thing only: an IP address in canonical form, which the registration's status
// publishes as its endpoint anyway.
package kubeconfig
