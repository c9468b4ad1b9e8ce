// SPDX-License-Identifier: Apache-2.0

// Package probe asks workload clusters who they are: [Once] asks one cluster, within hard deadlines, and a [Pool]
// asks all of them on a schedule with a fixed number of workers.
//
// The hub creates or resumes no Flux object for a cluster before the cluster has answered a probe, because Flux has
// no deadline of its own: a server that accepts a connection and never answers holds a worker of Flux forever. So a
// probe succeeds only if whole HTTP responses arrived.
//
// The package must never show a server's response or a credential in a message, follow a redirect, connect to an
// address that the rules of package kubeconfig forbid, or leave a connection or a goroutine behind.
package probe
