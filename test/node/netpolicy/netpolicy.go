// SPDX-License-Identifier: Apache-2.0

// Package netpolicy turns the NetworkPolicies of a cluster with one node into rules of nftables. It is pure. It knows no IPv6, and
// no names of ports in egress; it says so when it meets one.
package netpolicy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const table = "networkpolicies"

// Set is the NetworkPolicies of a cluster, and whom they may be about.
type Set struct {
	Policies   []networkingv1.NetworkPolicy
	Pods       []corev1.Pod
	Namespaces []corev1.Namespace
}

// way is one of the two that a policy is about.
type way struct {
	kind        networkingv1.PolicyType
	prefix      string
	self, other string // what nftables calls the addresses of the pod, and of its peer
}

var (
	ingress = way{networkingv1.PolicyTypeIngress, "to_", "daddr", "saddr"}
	egress  = way{networkingv1.PolicyTypeEgress, "from_", "saddr", "daddr"}
)

// rule is one of either way.
type rule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

// Script returns what `nft -f` is to read: a table that takes the place of the last one. A packet between pods goes through what its
// sender may, and then through what its receiver may; one to the node, only through the first. What the node sends to its own pods,
// such as probes, is always let through, as Kubernetes has it.
func (p Set) Script() (string, error) {
	var chains, jumps [2]strings.Builder
	for i, way := range []way{egress, ingress} {
		for _, pod := range p.Pods {
			if pod.Status.PodIP == "" || pod.Spec.HostNetwork {
				continue
			}
			rules, isolated, err := p.rulesOf(&pod, way)
			if err != nil {
				return "", err
			}
			if !isolated {
				continue
			}
			chain := way.prefix + strings.ReplaceAll(pod.Status.PodIP, ".", "_")
			fmt.Fprintf(&chains[i], "  chain %s { # %s/%s\n%s    drop\n  }\n", chain, pod.Namespace, pod.Name, rules)
			fmt.Fprintf(&jumps[i], "    ip %s %s jump %s\n", way.self, pod.Status.PodIP, chain)
		}
	}
	hook := func(name string, jumps string) string {
		return "  chain " + name + " {\n    type filter hook " + name + " priority 10; policy accept;\n" +
			"    ct state established,related accept\n" + jumps + "  }\n"
	}
	return "table ip " + table + " {}\ndelete table ip " + table + "\ntable ip " + table + " {\n" + chains[0].String() + chains[1].String() +
		hook("forward", jumps[0].String()+jumps[1].String()) + hook("input", jumps[0].String()) + "}\n", nil
}

// rulesOf returns what lets packets of a pod through, and whether everything else is held.
func (p Set) rulesOf(pod *corev1.Pod, way way) (text string, isolated bool, err error) {
	for _, policy := range p.Policies {
		if policy.Namespace != pod.Namespace || !slices.Contains(typesOf(&policy), way.kind) {
			continue
		}
		if matches, err := selects(&policy.Spec.PodSelector, pod.Labels); err != nil || !matches {
			if err != nil {
				return "", false, err
			}
			continue
		}
		isolated = true
		for _, rule := range rulesIn(&policy, way) {
			lines, err := p.lines(pod, rule, way)
			if err != nil {
				return "", false, fmt.Errorf("NetworkPolicy %s/%s: %w", policy.Namespace, policy.Name, err)
			}
			text += lines
		}
	}
	return text, isolated, nil
}

func typesOf(policy *networkingv1.NetworkPolicy) []networkingv1.PolicyType {
	if len(policy.Spec.PolicyTypes) > 0 {
		return policy.Spec.PolicyTypes
	}
	if len(policy.Spec.Egress) > 0 {
		return []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	}
	return []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
}

func rulesIn(policy *networkingv1.NetworkPolicy, way way) (rules []rule) {
	if way == ingress {
		for _, each := range policy.Spec.Ingress {
			rules = append(rules, rule{each.From, each.Ports})
		}
		return rules
	}
	for _, each := range policy.Spec.Egress {
		rules = append(rules, rule{each.To, each.Ports})
	}
	return rules
}

// lines returns a line for each peer and each port of a rule.
func (p Set) lines(pod *corev1.Pod, rule rule, way way) (string, error) {
	peers, ports := []string{""}, []string{""}
	if len(rule.peers) > 0 {
		peers = nil
	}
	if len(rule.ports) > 0 {
		ports = nil
	}
	for _, peer := range rule.peers {
		addresses, err := p.addresses(pod.Namespace, peer, way)
		if err != nil {
			return "", err
		}
		peers = append(peers, addresses...)
	}
	for _, port := range rule.ports {
		text, err := portOf(pod, port, way)
		if err != nil {
			return "", err
		}
		ports = append(ports, text)
	}
	var b strings.Builder
	for _, peer := range peers {
		for _, port := range ports {
			fmt.Fprintf(&b, "    %s%sreturn\n", peer, port)
		}
	}
	return b.String(), nil
}

// addresses returns what matches those of a peer; none if no pod is one.
func (p Set) addresses(namespace string, peer networkingv1.NetworkPolicyPeer, way way) ([]string, error) {
	if block := peer.IPBlock; block != nil {
		text := "ip " + way.other + " " + block.CIDR + " "
		for _, except := range block.Except {
			text += "ip " + way.other + " != " + except + " "
		}
		return []string{text}, nil
	}
	var found []string
	for _, pod := range p.Pods {
		in, err := p.selectsNamespace(namespace, peer.NamespaceSelector, pod.Namespace)
		if err != nil {
			return nil, err
		}
		matches, err := selects(ptr.To(ptr.Deref(peer.PodSelector, metav1.LabelSelector{})), pod.Labels)
		if err != nil {
			return nil, err
		}
		if in && matches && pod.Status.PodIP != "" && !pod.Spec.HostNetwork {
			found = append(found, "ip "+way.other+" "+pod.Status.PodIP+" ")
		}
	}
	return found, nil
}

func (p Set) selectsNamespace(own string, selector *metav1.LabelSelector, name string) (bool, error) {
	if selector == nil {
		return own == name, nil
	}
	i := slices.IndexFunc(p.Namespaces, func(n corev1.Namespace) bool { return n.Name == name })
	if i < 0 {
		return false, nil
	}
	return selects(selector, p.Namespaces[i].Labels)
}

func selects(selector *metav1.LabelSelector, of map[string]string) (bool, error) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(of)), err
}

// portOf returns what matches a port. Its name is one of the pod that receives.
func portOf(pod *corev1.Pod, port networkingv1.NetworkPolicyPort, way way) (string, error) {
	protocol := strings.ToLower(string(ptr.Deref(port.Protocol, corev1.ProtocolTCP)))
	if port.Port == nil {
		return "meta l4proto " + protocol + " ", nil
	}
	number := strconv.Itoa(port.Port.IntValue())
	if port.Port.Type == intstr.String {
		if way == egress {
			return "", fmt.Errorf("port %q of egress has a name, which is not supported here", port.Port.StrVal)
		}
		number = ""
		for _, c := range pod.Spec.Containers {
			for _, each := range c.Ports {
				if each.Name == port.Port.StrVal && strings.EqualFold(string(each.Protocol), protocol) {
					number = strconv.Itoa(int(each.ContainerPort))
				}
			}
		}
		if number == "" {
			return "", fmt.Errorf("pod %s/%s has no port %q", pod.Namespace, pod.Name, port.Port.StrVal)
		}
	}
	if port.EndPort != nil {
		number += "-" + strconv.Itoa(int(*port.EndPort))
	}
	return protocol + " dport " + number + " ", nil
}
