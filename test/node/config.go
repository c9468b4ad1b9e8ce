// SPDX-License-Identifier: Apache-2.0

package node

const (
	// Name of the node.
	Name = "node1"
	// Address is the node's, and that of everything that its pods are to reach beside it.
	Address = "10.244.255.2"
	// pods is the range of addresses of its pods.
	pods = "10.244.0.0/24"

	// A worker has a network of its own with the node, which is its gateway.
	gateway       = "10.244.254.1"
	workerAddress = "10.244.254.2"

	// dnsIP is the address of CoreDNS, below the range of Services of package localfleet.
	dnsIP  = "10.96.0.10"
	domain = "cluster.local"

	pauseImage = "local.test/pause:1"
	dnsImage   = "local.test/coredns:1"
)

// What stands in braces here and below is filled in by machine.fill.
const containerdConfig = `version = 2
root = "{dir}/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.aufs",
]
[grpc]
  address = "` + containerdSocket + `"
[plugins."io.containerd.internal.v1.opt"]
  path = "{dir}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{dir}/cni-bin"
    conf_dir = "{dir}/cni"
    max_conf_num = 1
`

const containerdSocket = "/run/containerd/containerd.sock"

const cniConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "/run/ipam", "ranges": [[{"subnet": "{pods}"}]], "routes": [{"dst": "0.0.0.0/0"}]}}
]}
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {address}
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: {ca}}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://` + containerdSocket + `
cgroupDriver: cgroupfs
cgroupRoot: {cgroup}
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
clusterDNS: [` + dnsIP + `]
clusterDomain: ` + domain + `
resolvConf: {dir}/resolv.conf
volumePluginDir: {dir}/volume-plugins
podLogsDir: {dir}/pod-logs
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi}
nodeStatusUpdateFrequency: 2s
`

const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
bindAddress: {address}
clusterCIDR: {pods}
hostnameOverride: {name}
oomScoreAdj: 0
clientConnection: {kubeconfig: {dir}/kube-proxy.conf}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
healthzBindAddress: {address}:10256
metricsBindAddress: 127.0.0.1:10249
`

// coreDNS is CoreDNS as kubeadm installs it, but for what needs a resolver outside.
const coreDNS = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: system:coredns}
rules:
- {apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: system:coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns}
subjects: [{kind: ServiceAccount, name: coredns, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
      errors
      health
      ready
      kubernetes ` + domain + ` in-addr.arpa {
        ttl 1
      }
    }
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: ` + dnsIP + `
  selector: {k8s-app: kube-dns}
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      dnsPolicy: Default
      containers:
      - name: coredns
        image: ` + dnsImage + `
        imagePullPolicy: Never
        args: [-conf, /etc/coredns/Corefile]
        readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 1}
        securityContext:
          allowPrivilegeEscalation: false
          capabilities: {add: [NET_BIND_SERVICE], drop: [ALL]}
          readOnlyRootFilesystem: true
        volumeMounts: [{name: config, mountPath: /etc/coredns, readOnly: true}]
      volumes: [{name: config, configMap: {name: coredns}}]
`
