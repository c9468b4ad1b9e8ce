// SPDX-License-Identifier: Apache-2.0

// Package probe asks workload clusters who they are: [Once] asks one, within hard deadlines, and a [Pool] keeps asking all of
// them on a schedule with a fixed number of workers.
//
// The hub makes or resumes no Flux object for a cluster before a probe was answered, because Flux itself has no deadline: a
// server that accepts a connection and never answers holds a worker of Flux for ever. So a probe counts as answered only
// when whole HTTP responses arrived.
//
// What it must never do: show a server's response or a credential in a message; follow a redirect; connect to an address that
// the rules of package kubeconfig forbid; leave a connection or a goroutine behind.
package probe
