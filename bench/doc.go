// SPDX-License-Identifier: Apache-2.0

// Command bench measures a hub with a fleet. It compares the hub's writes with those of a bare client to the same API
// server. It measures how long one more cluster takes, what a change, an idle fleet and a restart cost, and how much
// memory the hub holds.
//
// etcd, the API servers and the hub are real. The workload clusters are one API server under many names, so the hub's
// probes are real too. Flux runs only if you ask for it. Without Flux, the bench writes the statuses that Flux would
// report.
//
// With -rollout it measures rollouts in waves, and compares them with the same edits of the same sets that reach all
// clusters at once.
package main
