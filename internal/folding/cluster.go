// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
)

// Cluster is a cluster that objects are for.
type Cluster struct {
	// Namespace and Name are those of its registration.
	Namespace, Name string
	// Origin is the object that has to have the label, or has it, and Kind what that is.
	Origin string
	Kind   origin.Kind
	// Secret is the one with the kubeconfig, and Key its key, if one was named.
	Secret, Key string
	// Labels of the origin that are known.
	Labels map[string]string
	// Registered is true if the hub has the cluster already.
	Registered bool
	// target is where its kubeconfig leads, and served where the one of its registration does; empty if it is not known.
	target, served string
	// Assumed is true if the origin was not read: its name follows from that of the Secret.
	Assumed bool
}

func (c *Cluster) String() string { return c.Namespace + "/" + c.Name }

// registration returns what the hub makes of the cluster, as far as sets can see it.
func (c *Cluster) registration() *hubv1.ClusterRegistration {
	reg := &hubv1.ClusterRegistration{}
	reg.Namespace, reg.Name, reg.Labels = c.Namespace, c.Name, maps.Clone(c.Labels)
	if reg.Labels == nil {
		reg.Labels = map[string]string{}
	}
	reg.Labels[hubv1.NameLabel], reg.Labels[hubv1.ProviderLabel] = c.Name, c.Kind.Provider
	reg.Status.Provider = c.Kind.Provider
	return reg
}

// kamajiKeys are the keys that Kamaji gives the kubeconfigs in its Secrets.
var kamajiKeys = []string{"admin.conf", "admin.svc", "super-admin.conf", "super-admin.svc"}

// clusters finds the cluster that a kubeconfig leads to.
type clusters struct {
	in      *Input
	origins map[string]*unstructured.Unstructured
	// bySecret has one cluster for each namespace and Secret.
	bySecret map[string]*Cluster
	// byTarget has those whose API server is known, by its fingerprint.
	byTarget map[string]*Cluster
}

func newClusters(in *Input) *clusters {
	c := &clusters{in: in, origins: map[string]*unstructured.Unstructured{}, bySecret: map[string]*Cluster{},
		byTarget: map[string]*Cluster{}}
	for _, o := range in.Origins {
		c.origins[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o
	}
	return c
}

func (c *clusters) origin(kind origin.Kind, namespace, name string) *unstructured.Unstructured {
	return c.origins[kind.Kind+" "+namespace+"/"+name]
}

// of returns the cluster of a kubeconfig in a Secret. Secrets that lead to the same API server are of one cluster: the hub
// serves it once.
func (c *clusters) of(namespace, secret, key string) *Cluster {
	at := namespace + "/" + secret
	if known := c.bySecret[at]; known != nil {
		return known
	}
	target := c.in.Targets[at+"/"+key].Fingerprint
	if target != "" && c.byTarget[target] != nil {
		c.bySecret[at] = c.byTarget[target]
		return c.byTarget[target]
	}
	out := &Cluster{Namespace: namespace, Secret: secret, Key: key, target: target}
	out.Kind, out.Origin, out.Assumed = c.source(namespace, secret, key)
	out.Name = out.Origin
	if obj := c.origin(out.Kind, namespace, out.Origin); obj != nil {
		out.Labels = origin.MirroredLabels(obj.GetLabels())
	}
	for i := range c.in.Registrations {
		reg := &c.in.Registrations[i]
		if credential := reg.Status.Credential; credential != nil && target != "" && credential.TargetFingerprint == target {
			out.register(reg) // whatever Secret it has its kubeconfig from
			break
		}
		if reg.Namespace == namespace && leadsTo(reg, out) {
			out.register(reg)
		}
	}
	c.bySecret[at] = out
	if target != "" {
		c.byTarget[target] = out
	}
	return out
}

// register makes the cluster that of a registration.
func (c *Cluster) register(reg *hubv1.ClusterRegistration) {
	c.Namespace, c.Name, c.Registered, c.Labels = reg.Namespace, reg.Name, true, maps.Clone(reg.Labels)
	c.served = ""
	if reg.Status.Credential != nil {
		c.served = reg.Status.Credential.TargetFingerprint
	}
}

// leadsTo returns whether a registration is of a cluster.
func leadsTo(reg *hubv1.ClusterRegistration, c *Cluster) bool {
	if ref := reg.Spec.OriginRef; ref != nil {
		return ref.APIGroup == c.Kind.Group && ref.Kind == c.Kind.Kind && ref.Name == c.Origin
	}
	kc := reg.Spec.KubeConfig
	return kc != nil && kc.SecretRef != nil && kc.SecretRef.Name == c.Secret
}

// source returns the origin of a kubeconfig in a Secret: what has to be labelled.
func (c *clusters) source(namespace, secret, key string) (kind origin.Kind, name string, assumed bool) {
	obj := c.origin(origin.Secret, namespace, secret)
	if obj != nil {
		for _, ref := range obj.GetOwnerReferences() {
			if ref.Kind == origin.Kamaji.Kind && len(content.IsDNS1123Subdomain(ref.Name)) == 0 { // it is printed in a command
				return origin.Kamaji, ref.Name, false
			}
		}
	}
	for _, k := range []origin.Kind{origin.ClusterAPI, origin.Kamaji} {
		for _, o := range c.in.Origins {
			if o.GetKind() == k.Kind && o.GetNamespace() == namespace && k.UsualSecret(o.GetName()) == secret {
				return k, o.GetName(), false
			}
		}
	}
	if name, ok := strings.CutSuffix(secret, "-admin-kubeconfig"); ok && name != "" && obj == nil && slices.Contains(kamajiKeys, key) {
		return origin.Kamaji, name, true
	}
	return origin.Secret, secret, obj == nil
}
