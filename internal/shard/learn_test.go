// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"
	"testing"
)

func TestServed(t *testing.T) {
	for selector, want := range map[string][]string{
		"":                                 {"*"},
		"app=x":                            {"*"},
		"sharding.fluxcd.io/key=a":         {"a"},
		"sharding.fluxcd.io/key == a":      {"a"},
		"x=y,sharding.fluxcd.io/key=a":     {"a"},
		"sharding.fluxcd.io/key in (b, a)": {"a", "b"},
		"sharding.fluxcd.io/key in (shard1,shard2),env=eu":    {"shard1", "shard2"},
		"!sharding.fluxcd.io/key":                             {""},
		"sharding.fluxcd.io/key notin (a,b)":                  {""},
		"sharding.fluxcd.io/key!=a":                           {""},
		"sharding.fluxcd.io/key":                              {"*"},
		"sharding.fluxcd.io/key in (":                         {"*"},
		"!sharding.fluxcd.io/key, app.kubernetes.io/x in (a)": {""},
	} {
		if got := Served(selector); !slices.Equal(got, want) {
			t.Errorf("%q serves %q, want %q", selector, got, want)
		}
	}
}

func TestLearn(t *testing.T) {
	both := []string{"kustomize-controller", "helm-controller"}
	for _, tc := range []struct{ kustomize, helm, want []string }{
		{nil, nil, nil},
		{[]string{"", "a", "b"}, []string{"", "b", "a"}, []string{"a", "b"}},
		{[]string{"", "a", "b"}, []string{"", "a"}, []string{"a"}}, // b would apply no HelmRelease
		{[]string{"*"}, []string{"", "a"}, nil},
		{[]string{"a"}, nil, nil},
	} {
		if got := Learn(map[string][]string{both[0]: tc.kustomize, both[1]: tc.helm}, both...); !slices.Equal(got, tc.want) {
			t.Errorf("%q and %q: %q, want %q", tc.kustomize, tc.helm, got, tc.want)
		}
	}
}
