// SPDX-License-Identifier: Apache-2.0

// Package localfleet runs a whole fleet as local processes: management and workload clusters of real etcd and
// kube-apiserver, the real Flux controllers, and the hub. The demo and the end-to-end tests stand on it.
//
// Nothing here is a stand-in, but for two: kwok plays the kubelets of workload clusters, so that pods look as if they ran, and a runner
// plays the one that would run the control planes of Kamaji's tenants, which do run, as processes. The binaries come from
// `make tools`, see package parts. Every listener is on loopback and on a port that was free, and every file in one
// folder, so that fleets run beside each other and leave nothing behind.
package localfleet
