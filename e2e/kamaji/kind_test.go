// SPDX-License-Identifier: Apache-2.0

package kamaji

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet"
)

// kind is a kind cluster on which everything is installed already (hack/kind): the one that $KUBECONFIG names. Tenants are pods of it,
// on ports of its node, and the sources are served by this process, at the address that its nodes have for the machine.
type kind struct {
	client client.Client
	node   string // its address
	charts *localfleet.ChartServer
	git    *localfleet.GitServer
}

func startKind(ctx context.Context, scheme *runtime.Scheme) (Platform, error) {
	k := &kind{}
	if err := k.start(ctx, scheme); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func (k *kind) start(ctx context.Context, scheme *runtime.Scheme) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("read $KUBECONFIG, which `make e2e-kind` sets: %w", err)
	}
	if k.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if k.node, err = k.nodeAddress(ctx); err != nil {
		return err
	}
	gateway, err := gatewayOf(ctx, "kind")
	if err != nil {
		return err
	}
	if k.charts, err = localfleet.NewChartServerAt(gateway); err != nil {
		return err
	}
	k.git, err = localfleet.NewGitServerAt(gateway)
	return err
}

func (k *kind) nodeAddress(ctx context.Context) (string, error) {
	nodes := &corev1.NodeList{}
	if err := k.client.List(ctx, nodes); err != nil {
		return "", err
	}
	for i := range nodes.Items {
		for _, a := range nodes.Items[i].Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				return a.Address, nil
			}
		}
	}
	return "", fmt.Errorf("none of %d nodes has an internal address", len(nodes.Items))
}

// gatewayOf returns the IPv4 address that this machine has in a Docker network.
func gatewayOf(ctx context.Context, network string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", "network", "inspect", network).Output()
	if err != nil {
		return "", fmt.Errorf("docker network inspect %s: %w", network, err)
	}
	return ipv4Gateway(out)
}

func ipv4Gateway(inspected []byte) (string, error) {
	var networks []struct {
		IPAM struct{ Config []struct{ Gateway string } }
	}
	if err := json.Unmarshal(inspected, &networks); err != nil {
		return "", fmt.Errorf("read what docker says of its network: %w", err)
	}
	for _, n := range networks {
		for _, c := range n.IPAM.Config {
			if a, err := netip.ParseAddr(c.Gateway); err == nil && a.Is4() {
				return c.Gateway, nil
			}
		}
	}
	return "", errors.New("the Docker network has no IPv4 gateway")
}

func (k *kind) Client() client.Client { return k.client }

func (k *kind) Kubeconfig() string { return "" }

func (k *kind) CreateTenant(ctx context.Context, key client.ObjectKey, t Tenant) error {
	port, err := nodePort(ctx, k.client)
	if err != nil {
		return err
	}
	return k.client.Create(ctx, localfleet.NewTenant(key.Namespace, key.Name, localfleet.TenantOptions{
		Labels: t.Labels, Version: t.Version, PodCIDR: t.PodCIDR, Address: k.node, Port: port, ServiceType: corev1.ServiceTypeNodePort,
	}))
}

// nodePort returns a port of the node that no Service has: the network profile of a tenant has to name it beforehand.
func nodePort(ctx context.Context, c client.Client) (int, error) {
	services := &corev1.ServiceList{}
	if err := c.List(ctx, services); err != nil {
		return 0, err
	}
	tenants := &unstructured.UnstructuredList{}
	tenants.SetAPIVersion("kamaji.clastix.io/v1alpha1")
	tenants.SetKind("TenantControlPlaneList")
	if err := c.List(ctx, tenants); err != nil {
		return 0, err
	}
	taken := map[int]bool{}
	for i := range services.Items {
		for _, p := range services.Items[i].Spec.Ports {
			taken[int(p.NodePort)] = true
		}
	}
	for i := range tenants.Items {
		port, _, _ := unstructured.NestedInt64(tenants.Items[i].Object, "spec", "networkProfile", "port")
		taken[int(port)] = true
	}
	for port := 30443; port < 32768; port++ {
		if !taken[port] {
			return port, nil
		}
	}
	return 0, errors.New("every port of the node is taken")
}

func (k *kind) TenantConfig(ctx context.Context, key client.ObjectKey) (*rest.Config, error) {
	return superAdmin(ctx, k.client, key)
}

// JoinNode does nothing: who would be the node, and pull its images?
func (k *kind) JoinNode(context.Context, client.ObjectKey) (bool, error) { return false, nil }

func (k *kind) Hello(context.Context, string) (bool, error) { return false, nil }

func (k *kind) Versions() (older, newest string) { return "v1.30.0", localfleet.NewestTenant }

// Patience is for images to be pulled.
func (k *kind) Patience() time.Duration { return 10 * time.Minute }

func (k *kind) PublishChart(fsys fs.FS, dir string) error { return k.charts.Publish(fsys, dir) }

func (k *kind) ChartsURL() string { return k.charts.URL() }

func (k *kind) Commit(files map[string]string) error {
	_, err := k.git.Commit("fleet", files)
	return err
}

func (k *kind) GitURL() string { return k.git.URL("fleet") }

// Dump prints the pods, and how the logs of the hub and of Kamaji end.
func (k *kind) Dump(t *testing.T) {
	for _, args := range []string{
		"get pods -A -o wide", "logs -n chandler-system deployment/chandler --all-pods --prefix --tail=100", "logs -n kamaji-system deployment/kamaji --tail=50",
	} {
		out, err := exec.Command("kubectl", strings.Fields(args)...).CombinedOutput()
		t.Logf("kubectl %s (%v)\n%s", args, err, out)
	}
}

// Denied is not known here: there is no audit log.
func (k *kind) Denied() ([]string, error) { return nil, nil }

// Close ends the servers. The cluster is whoever's made it.
func (k *kind) Close() error {
	var errs []error
	if k.charts != nil {
		errs = append(errs, k.charts.Close())
	}
	if k.git != nil {
		errs = append(errs, k.git.Close())
	}
	return errors.Join(errs...)
}

func TestIPv4Gateway(t *testing.T) {
	const inspected = `[{"Name":"kind","IPAM":{"Driver":"default","Config":[{"Subnet":"fc00::/64","Gateway":"fc00::1"},{"Subnet":"172.18.0.0/16","Gateway":"172.18.0.1"}]}}]`
	if got, err := ipv4Gateway([]byte(inspected)); err != nil || got != "172.18.0.1" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{`[]`, `{`, `[{"IPAM":{"Config":[{"Gateway":"fc00::1"}]}}]`} {
		if got, err := ipv4Gateway([]byte(bad)); err == nil {
			t.Errorf("of %s: %q", bad, got)
		}
	}
}
