// SPDX-License-Identifier: Apache-2.0

package netpolicy

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func TestScript(t *testing.T) {
	pod := func(namespace, name, ip string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{
				{Name: "web", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
			}}}},
			Status: corev1.PodStatus{PodIP: ip},
		}
	}
	namespace := func(name string) corev1.Namespace {
		return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
	}
	host := pod("a", "host", "10.0.0.9")
	host.Spec.HostNetwork = true
	p := Set{
		Pods:       []corev1.Pod{pod("a", "x", "10.0.0.1"), pod("a", "other", "10.0.0.2"), pod("b", "x", "10.0.0.3"), pod("b", "new", ""), host},
		Namespaces: []corev1.Namespace{namespace("a"), namespace("b")},
	}
	for name, tc := range map[string]struct {
		spec string
		want []string // the chains that come out, with their rules
	}{
		"Nothing":   {`{podSelector: {matchLabels: {app: x}}}`, []string{"to_10_0_0_1: drop"}},
		"Everybody": {`{podSelector: {}, ingress: [{}]}`, []string{"to_10_0_0_1: return, drop", "to_10_0_0_2: return, drop"}},
		"Own namespace": {`{podSelector: {matchLabels: {app: x}}, ingress: [{from: [{podSelector: {}}]}]}`,
			[]string{"to_10_0_0_1: ip saddr 10.0.0.1 return, ip saddr 10.0.0.2 return, drop"}},
		"Other namespace, named port": {
			`{podSelector: {matchLabels: {app: x}}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: b}}}], ports: [{port: web}]}]}`,
			[]string{"to_10_0_0_1: ip saddr 10.0.0.3 tcp dport 8080 return, drop"}},
		"Both selectors, two ports": {
			`{podSelector: {matchLabels: {app: other}}, ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {app: x}}}], ports: [{port: 1}, {port: 2, endPort: 3, protocol: UDP}]}]}`,
			[]string{"to_10_0_0_2: ip saddr 10.0.0.1 tcp dport 1 return, ip saddr 10.0.0.1 udp dport 2-3 return, ip saddr 10.0.0.3 tcp dport 1 return, ip saddr 10.0.0.3 udp dport 2-3 return, drop"}},
		"Nobody is that": {`{podSelector: {matchLabels: {app: x}}, ingress: [{from: [{podSelector: {matchLabels: {app: z}}}]}]}`, []string{"to_10_0_0_1: drop"}},
		"Egress": {`{podSelector: {matchLabels: {app: x}}, policyTypes: [Egress], egress: [{ports: [{protocol: TCP}]}]}`,
			[]string{"from_10_0_0_1: meta l4proto tcp return, drop"}},
		"Egress to a block": {`{podSelector: {matchLabels: {app: x}}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]}]}`,
			[]string{"from_10_0_0_1: ip daddr 10.0.0.0/8 ip daddr != 10.1.0.0/16 return, drop"}},
	} {
		policy := networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
		if err := yaml.UnmarshalStrict([]byte(tc.spec), &policy.Spec); err != nil {
			t.Fatal(err)
		}
		p.Policies = []networkingv1.NetworkPolicy{policy}
		script, err := p.Script()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var chains []string
		for _, part := range strings.Split(script, "  chain ")[1:] {
			head, body, _ := strings.Cut(part, "\n")
			chain, _, _ := strings.Cut(head, " ")
			if chain == "forward" || chain == "input" {
				continue
			}
			body, _, _ = strings.Cut(body, "  }")
			chains = append(chains, chain+": "+strings.Join(strings.Fields(strings.ReplaceAll(strings.TrimSpace(body), "\n", " , ")), " "))
		}
		got := strings.ReplaceAll(strings.Join(chains, "\n"), " ,", ",")
		if want := strings.Join(tc.want, "\n"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s\nin\n%s", name, got, want, script)
		}
	}
}
