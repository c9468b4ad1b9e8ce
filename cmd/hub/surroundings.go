// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// apiServer is the addresses of the hub's own API server, from the hub's configuration and its pod. The hub
// recognizes it behind any other address by its kube-system UID.
type apiServer struct {
	hosts []kubeconfig.HostPort
	addrs []netip.AddrPort
}

// lookup resolves a name, as net.Resolver.LookupNetIP.
type lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// findAPIServer returns the server of the hub's client configuration, and the Service that the environment of every
// pod names.
func findAPIServer(ctx context.Context, server string, env func(string) string, resolve lookup) apiServer {
	var out apiServer
	if u, err := url.Parse(server); err == nil {
		out.add(ctx, u.Hostname(), u.Port(), resolve)
	}
	out.add(ctx, env("KUBERNETES_SERVICE_HOST"), env("KUBERNETES_SERVICE_PORT"), resolve)
	return out
}

func (s *apiServer) add(ctx context.Context, host, port string, resolve lookup) {
	if host == "" {
		return
	}
	if port == "" {
		port = "443"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return
	}
	addrs := []netip.Addr{}
	if addr, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, addr)
	} else {
		s.hosts = append(s.hosts, kubeconfig.HostPort{Host: host, Port: uint16(n)})
		addrs, _ = resolve(ctx, "ip", host) // one that does not resolve now is still known by its name
	}
	for _, addr := range addrs {
		if target := netip.AddrPortFrom(addr.Unmap(), uint16(n)); !slices.Contains(s.addrs, target) {
			s.addrs = append(s.addrs, target)
		}
	}
}

// serviceCIDRs returns the ranges of the management cluster's Services. It returns none before Kubernetes 1.33, which
// has no ServiceCIDR objects.
func serviceCIDRs(ctx context.Context, live client.Reader) ([]netip.Prefix, error) {
	list := &networkingv1.ServiceCIDRList{}
	if err := live.List(ctx, list); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read the ranges of this cluster's Services: %w", err)
	}
	var out []netip.Prefix
	for i := range list.Items {
		for _, cidr := range list.Items[i].Spec.CIDRs {
			p, err := netip.ParsePrefix(cidr)
			if err != nil {
				return nil, fmt.Errorf("ServiceCIDR %s: %w", list.Items[i].Name, err)
			}
			out = append(out, p)
		}
	}
	return out, nil
}
