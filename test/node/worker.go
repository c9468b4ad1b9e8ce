// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet"
)

// Worker is a node of another cluster, one whose control plane may be pods of the first node. It has a runtime, a network, and
// processes of its own.
type Worker struct {
	*machine
	config *rest.Config
	client client.Client
}

// Join starts a worker that joins a cluster as kubeadm has nodes join: its kubelet gets a token, asks for a certificate, and the
// cluster's controllers approve it. config is the administrator's; the cluster may be upgraded to any of the versions. There is one
// worker at most, and it ends with the node.
func (n *Node) Join(ctx context.Context, name string, config *rest.Config, versions ...string) (*Worker, error) {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	w := &Worker{config: config, client: c, machine: &machine{
		name: name, address: workerAddress, dir: filepath.Join(Dir(), name), cgroup: "/" + name, owner: n.Cluster,
	}}
	if err := os.Mkdir(w.dir, 0o755); err != nil {
		return nil, err
	}
	if err := w.start(ctx, n.machine, versions); err != nil {
		return nil, fmt.Errorf("start worker %s: %w", name, err)
	}
	return w, nil
}

func (w *Worker) start(ctx context.Context, node *machine, versions []string) error {
	if err := w.settle(ctx, node); err != nil {
		return err
	}
	if err := w.writeConfig(); err != nil {
		return err
	}
	if err := w.startRuntime(ctx); err != nil {
		return err
	}
	if err := w.loadAddons(ctx, versions); err != nil {
		return err
	}
	pods, err := w.join(ctx)
	if err != nil {
		return err
	}
	// The network of a real cloud, or of an overlay, would know the way to them.
	if err := node.output(ctx, "ip", "route", "add", pods, "via", workerAddress); err != nil {
		return err
	}
	if err := w.connect(pods); err != nil {
		return err
	}
	return await(ctx, "the worker is Ready", func(ctx context.Context) error { return ready(ctx, w.client, w.name) })
}

// settle makes the namespaces of the worker, and a network between it and the node.
func (w *Worker) settle(ctx context.Context, node *machine) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var pid string
	if err := w.owner.Run(ctx, localfleet.Program{
		Name: "machine-" + w.name, Path: "unshare", Args: []string{"--net", "--mount", "--uts", self},
		Env: []string{envStage + "=" + stageMachine, envMachine + "=" + w.name},
		Ready: func(context.Context) error {
			raw, err := os.ReadFile(machineFile(w.name))
			if err != nil {
				return err
			}
			pid = string(raw)
			_, err = strconv.Atoi(pid)
			return err
		},
	}); err != nil {
		return err
	}
	w.enter = []string{"nsenter", "--target", pid, "--net", "--mount", "--uts", "--"}
	link := "worker0"
	for _, line := range []string{
		"link add " + link + " type veth peer name node0 netns " + pid, "address add " + gateway + "/24 dev " + link, "link set " + link + " up",
	} {
		if err := node.output(ctx, "ip", strings.Fields(line)...); err != nil {
			return err
		}
	}
	for _, line := range []string{
		"address add " + workerAddress + "/24 dev node0", "link set node0 up", "route add default via " + gateway,
	} {
		if err := w.output(ctx, "ip", strings.Fields(line)...); err != nil {
			return err
		}
	}
	return nil
}

// join starts the kubelet with a token, and returns the range of addresses that the cluster gives to its pods.
func (w *Worker) join(ctx context.Context) (pods string, err error) {
	id, secret := rand.String(6), rand.String(16)
	if err := w.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true",
			"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
		},
	}); err != nil {
		return "", err
	}
	user := &clientcmdapi.AuthInfo{Token: id + "." + secret}
	bootstrap, err := w.kubeconfig(user)
	if err != nil {
		return "", err
	}
	// Nobody answers there. CoreDNS, as kubeadm installs it, does not start without somebody to forward to.
	if err := w.write(map[string]string{
		"bootstrap.conf": string(bootstrap), "ca.crt": string(w.config.CAData), "resolv.conf": "nameserver " + gateway + "\n",
	}); err != nil {
		return "", err
	}
	known := func(ctx context.Context) error {
		node := &corev1.Node{}
		if err := w.client.Get(ctx, client.ObjectKey{Name: w.name}, node); err != nil {
			return err
		}
		if pods = node.Spec.PodCIDR; pods == "" {
			return errors.New("the node has no addresses for pods")
		}
		return nil
	}
	err = w.startKubelet(ctx, w.in("ca.crt"), known, "--bootstrap-kubeconfig="+w.in("bootstrap.conf"), "--kubeconfig="+w.in("kubelet.conf"))
	return pods, err
}

// kubeconfig returns one for a user of the worker's cluster.
func (w *Worker) kubeconfig(user *clientcmdapi.AuthInfo) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: w.config.Host, CertificateAuthorityData: w.config.CAData}
	config.AuthInfos["user"] = user
	config.Contexts["context"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	config.CurrentContext = "context"
	return clientcmd.Write(*config)
}
