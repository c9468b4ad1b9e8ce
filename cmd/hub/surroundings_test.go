// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
)

func TestFindAPIServer(t *testing.T) {
	names := map[string][]netip.Addr{"api.example.org": {netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::ffff:192.0.2.2")}}
	resolve := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if addrs := names[host]; addrs != nil {
			return addrs, nil
		}
		return nil, errors.New("no such host")
	}
	at := func(addrs ...string) (out []netip.AddrPort) {
		for _, a := range addrs {
			out = append(out, netip.MustParseAddrPort(a))
		}
		return out
	}
	pod := map[string]string{"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
	cases := map[string]struct {
		server string
		env    map[string]string
		want   apiServer
	}{
		"Pod":         {"https://10.96.0.1:443", pod, apiServer{addrs: at("10.96.0.1:443")}},
		"Elsewhere":   {"https://api.example.org:6443", nil, apiServer{hosts: []kubeconfig.HostPort{{Host: "api.example.org", Port: 6443}}, addrs: at("192.0.2.1:6443", "192.0.2.2:6443")}},
		"PodWithFile": {"https://api.example.org", pod, apiServer{hosts: []kubeconfig.HostPort{{Host: "api.example.org", Port: 443}}, addrs: at("192.0.2.1:443", "192.0.2.2:443", "10.96.0.1:443")}},
		"IPv6":        {"https://[fd00::1]:6443", nil, apiServer{addrs: at("[fd00::1]:6443")}},
		"NoDNS":       {"https://gone.example.org:6443", nil, apiServer{hosts: []kubeconfig.HostPort{{Host: "gone.example.org", Port: 6443}}}},
		"NoURL":       {"https://a b:x", nil, apiServer{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := findAPIServer(t.Context(), tc.server, func(k string) string { return tc.env[k] }, resolve)
			must.Equal(t, tc.want, got, cmp.AllowUnexported(apiServer{}), comparable)
		})
	}
}

// services is a management cluster that answers a list of ServiceCIDRs.
type services struct {
	client.Reader
	cidrs []string
	err   error
}

func (s services) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if s.err == nil {
		list.(*networkingv1.ServiceCIDRList).Items = []networkingv1.ServiceCIDR{{Spec: networkingv1.ServiceCIDRSpec{CIDRs: s.cidrs}}}
	}
	return s.err
}

func TestServiceCIDRs(t *testing.T) {
	got, err := serviceCIDRs(t.Context(), services{cidrs: []string{"10.96.0.0/16", "fd00::/108"}})
	want := []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00::/108")}
	if d := cmp.Diff(want, got, comparable); d != "" || err != nil {
		t.Errorf("%v; -want +got:\n%s", err, d)
	}
	if got, err := serviceCIDRs(t.Context(), services{err: &meta.NoKindMatchError{}}); err != nil || got != nil {
		t.Errorf("before Kubernetes 1.33: %v, %v", got, err)
	}
	if _, err := serviceCIDRs(t.Context(), services{err: errors.New("forbidden")}); err == nil {
		t.Error("what cannot be read is taken for none")
	}
}
