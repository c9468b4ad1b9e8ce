// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

func TestPickKey(t *testing.T) {
	secret := func(keys ...string) map[string][]byte {
		data := map[string][]byte{}
		for _, key := range keys {
			data[key] = []byte("hunter2")
		}
		return data
	}
	many := secret()
	for i := range 12 {
		many[fmt.Sprintf("k%02d", i)] = nil
	}
	cases := map[string]struct {
		reason string
		data   map[string][]byte
		want   string
		order  []string
		key    string
		err    string
	}{
		"Flux":         {reason: "Flux's own key comes first", data: secret("admin.conf", "value.yaml", "value"), key: "value"},
		"FluxYAML":     {reason: "then its second", data: secret("config", "value.yaml"), key: "value.yaml"},
		"Kamaji":       {reason: "super-admin.svc reaches the tenant from the hub", data: secret("admin.conf", "admin.svc", "super-admin.conf", "super-admin.svc"), key: "super-admin.svc"},
		"KamajiOrder":  {reason: "a caller's order", data: secret("admin.conf", "admin.svc", "super-admin.svc"), order: []string{"admin.svc", "admin.conf"}, key: "admin.svc"},
		"VCluster":     {reason: "config among single certificates", data: secret("certificate-authority", "client-certificate", "client-key", "config"), key: "config"},
		"Single":       {reason: "the only key there is", data: secret("whatever"), key: "whatever"},
		"SingleOrder":  {reason: "not with a caller's order", data: secret("whatever"), order: []string{"admin.svc"}, err: "the Secret has none of the keys admin.svc (it has whatever); name the key that holds the kubeconfig"},
		"Explicit":     {reason: "the one that was named", data: secret("value", "other"), want: "other", key: "other"},
		"ExplicitGone": {reason: "no fallback", data: secret("value"), want: "other", err: `the Secret has no key "other" (it has value); name the key that holds the kubeconfig`},
		"BlankStays":   {reason: "a blanked value does not redirect the hub", data: map[string][]byte{"value": nil, "kubeconfig": []byte("x")}, key: "value"},
		"None":         {reason: "names, sorted", data: secret("tls.key", "tls.crt"), err: "the Secret has none of the keys value, value.yaml, kubeconfig, config, super-admin.svc, admin.svc, admin.conf, kubeconfig.yaml (it has tls.crt, tls.key); name the key that holds the kubeconfig"},
		"Empty":        {reason: "nothing there", want: "value", err: `the Secret has no key "value" (it is empty); name the key that holds the kubeconfig`},
		"Many":         {reason: "not all of them", data: many, want: "value", err: `the Secret has no key "value" (it has k00, k01, k02, k03, k04, k05, k06, k07, k08, k09 and 2 more); name the key that holds the kubeconfig`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			key, err := kubeconfig.PickKey(tc.data, tc.want, tc.order)
			message := ""
			if e := asError(t, err); e != nil {
				message = e.Error()
				if e.Reason != kubeconfig.ReasonKeyNotFound {
					t.Errorf("reason %q", e.Reason)
				}
			}
			if diff := cmp.Diff([]string{tc.key, tc.err}, []string{key, message}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestKeys: candidates are tried in their order, as far as they exist; without any it is the one key that PickKey takes.
func TestKeys(t *testing.T) {
	data := map[string][]byte{"admin.conf": nil, "admin.svc": nil, "config": nil}
	for name, tc := range map[string]struct {
		want       string
		candidates []string
		keys       []string
	}{
		"Default":           {keys: []string{"config"}},
		"Named":             {want: "admin.conf", keys: []string{"admin.conf"}},
		"Missing":           {want: "other"},
		"Candidates":        {candidates: []string{"admin.svc", "none", "admin.conf"}, keys: []string{"admin.svc", "admin.conf"}},
		"CandidatesMissing": {candidates: []string{"none"}},
	} {
		keys, err := kubeconfig.Keys(data, tc.want, tc.candidates)
		if !slices.Equal(keys, tc.keys) || (err == nil) != (tc.keys != nil) {
			t.Errorf("%s: %q, %v", name, keys, err)
		}
	}
}
