// SPDX-License-Identifier: Apache-2.0

// Package localfleet runs a whole fleet as local processes: management and workload clusters of real etcd and
// kube-apiserver, the real Flux controllers, and the hub. The demo and the end-to-end tests are built on it.
//
// Everything is real but two things. kwok plays the kubelets of workload clusters, so pods look as if they ran. A
// runner plays the kubelet that would run the control planes of Kamaji's tenants; it runs them as processes. The
// binaries come from `make tools`, see package parts. Every listener is on loopback and on a free port, and every
// file is in one folder, so that fleets run beside each other and leave nothing behind.
package localfleet
