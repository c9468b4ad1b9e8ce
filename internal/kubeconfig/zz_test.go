package kubeconfig_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

func TestZZ(t *testing.T) {
	op := kubeconfig.Rules{
		ForbiddenHosts: []string{"hub.example.org"},
		ForbiddenAddrs: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:0"), netip.MustParseAddrPort("192.0.2.10:6443")},
		ForbiddenCIDRs: prefixes("10.244.0.0/16"),
	}
	files := corpus(t)
	for _, n := range slices.Sorted(maps.Keys(files)) {
		c, err := kubeconfig.Parse(files[n], op)
		if err == nil {
			fmt.Printf("OK  %s\t%s\n", n, c.Server())
		} else {
			e := asError(t, err)
			fmt.Printf("NO  %s\t%s\t%s\t%s\n", n, e.Reason, e.Field, e.Message)
		}
	}
}
