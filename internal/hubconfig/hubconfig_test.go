// SPDX-License-Identifier: Apache-2.0

package hubconfig_test

import (
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/origin"
)

func TestRulesFor(t *testing.T) {
	by := func(k origin.Kind) *hubv1.OriginReference { ref := k.Reference("one"); return &ref }
	written := &hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: "theirs"}}
	cases := map[string]struct {
		spec hubv1.ClusterRegistrationSpec
		flag bool
		want bool
	}{
		"Kamaji":           {spec: hubv1.ClusterRegistrationSpec{OriginRef: by(origin.Kamaji)}, want: true},
		"ClusterAPI":       {spec: hubv1.ClusterRegistrationSpec{OriginRef: by(origin.ClusterAPI)}, want: true},
		"Secret":           {spec: hubv1.ClusterRegistrationSpec{OriginRef: by(origin.Secret)}},
		"Unknown":          {spec: hubv1.ClusterRegistrationSpec{OriginRef: &hubv1.OriginReference{APIGroup: "example.org", Kind: "Cluster", Name: "one"}}},
		"ByHand":           {spec: hubv1.ClusterRegistrationSpec{KubeConfig: written}},
		"KamajiOverridden": {spec: hubv1.ClusterRegistrationSpec{OriginRef: by(origin.Kamaji), KubeConfig: written}},
		"Flag":             {spec: hubv1.ClusterRegistrationSpec{OriginRef: by(origin.Secret)}, flag: true, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := hubconfig.Config{Rules: kubeconfig.Rules{AllowServices: tc.flag, AllowHTTP: true}}
			got := c.RulesFor(&hubv1.ClusterRegistration{Spec: tc.spec})
			if got.AllowServices != tc.want || !got.AllowHTTP || c.Rules.AllowServices != tc.flag {
				t.Errorf("got %+v, want AllowServices %v", got, tc.want)
			}
		})
	}
}
