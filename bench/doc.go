// SPDX-License-Identifier: Apache-2.0

// Command bench measures a hub with a fleet: what it writes against what a bare client can write to the same API server, how long one
// more cluster takes, what a change, an idle fleet and a restart cost, and what it holds in memory. etcd, the API servers and the hub
// are real; the workload clusters are one API server that is known by many names, so that the hub's probes are real too. Flux is
// there if asked for; without it the fleet is written, and what Flux would report is written into the statuses in its place.
package main
