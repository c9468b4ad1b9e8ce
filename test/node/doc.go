// SPDX-License-Identifier: Apache-2.0

// Package node runs one real Kubernetes node beside a cluster of package localfleet: kubelet, kube-proxy, containerd, runc,
// CNI and CoreDNS, so that pods run. The whole test runs with it in namespaces and cgroups of its own. There it may set
// addresses, routes, mounts and sysctls as a node does, and the machine's own stay as they are. When the first process in
// there ends, the kernel ends all others. It needs root, and Linux with cgroup v1.
package node
