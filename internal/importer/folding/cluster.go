// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	// marks are the labels and annotations of the origin, as they are: nil if it was not read.
	marks map[string]string
	// words are what else its objects call it.
	words []token
	// Registered is true if the hub has the cluster already.
	Registered bool
	// target and credential are those of its kubeconfig; empty if they are not known.
	target, credential string
	// used is the credential of its registration; nil if that has none.
	used *hubv1.CredentialStatus
	// Assumed is true if the origin was not read: its name follows from that of the Secret.
	Assumed bool
	// keys are those that objects take of each Secret of its namespace.
	keys map[string]string
	// borrowed is true if target and credential are those of another Secret than the hub takes, which was not read.
	borrowed bool
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
	// registered has those that the hub has already, by namespace and name.
	registered map[string]*Cluster
}

func newClusters(in *Input) *clusters {
	c := &clusters{in: in, origins: map[string]*unstructured.Unstructured{}, bySecret: map[string]*Cluster{},
		byTarget: map[string]*Cluster{}, registered: map[string]*Cluster{}}
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
	own := c.in.Targets[at+"/"+key]
	target := own.Fingerprint
	if target != "" && c.byTarget[target] != nil {
		return c.byTarget[target]
	}
	if known := c.bySecret[at]; known != nil { // with another key: findCluster refuses it
		return known
	}
	out := &Cluster{Namespace: namespace, Secret: secret, Key: key, target: target, credential: own.Credential,
		keys: map[string]string{secret: key}}
	out.Kind, out.Origin, out.Assumed = c.source(namespace, secret, key)
	if usual := out.Kind.UsualSecret(out.Origin); usual != secret {
		return c.also(namespace, usual, secret, key)
	}
	out.Name = out.Origin
	if obj := c.origin(out.Kind, namespace, out.Origin); obj != nil {
		out.Labels = origin.CopiedLabels(obj.GetLabels())
		out.marks = map[string]string{}
		maps.Copy(out.marks, obj.GetAnnotations())
		maps.Copy(out.marks, obj.GetLabels())
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
	if out.Registered {
		if known := c.registered[out.String()]; known != nil {
			out = known
		}
		c.registered[out.String()] = out
	}
	c.bySecret[at] = out
	if target != "" {
		c.byTarget[target] = out
	}
	return out
}

// also returns the cluster of a Secret that the hub does not take for it: it takes the usual one, which is of the administrator as well.
func (c *clusters) also(namespace, usual, secret, key string) *Cluster {
	usualKey := ""
	if _, read := c.in.Targets[namespace+"/"+usual+"/value"]; read {
		usualKey = "value"
	}
	out := c.of(namespace, usual, usualKey)
	at := namespace + "/" + secret
	if own := c.in.Targets[at+"/"+key]; out.target == "" && own.Fingerprint != "" && out.used == nil {
		out.target, out.credential, out.borrowed = own.Fingerprint, own.Credential, true
		c.byTarget[own.Fingerprint] = out
	}
	c.bySecret[at], out.keys[secret] = out, key
	return out
}

// register makes the cluster that of a registration.
func (c *Cluster) register(reg *hubv1.ClusterRegistration) {
	c.Namespace, c.Name, c.Registered, c.Labels = reg.Namespace, reg.Name, true, maps.Clone(reg.Labels)
	c.used = reg.Status.Credential
}

// another says why an object with a kubeconfig in a Secret would not be what it is with the credential that the hub has for
// the cluster, and so with the rights of somebody else; "" if it is the same one.
func (c *Cluster) another(own Target, namespace, secret, key string) string {
	const rights = ": the hub has one credential for a cluster, and would apply the object with the rights of that one"
	switch used := c.used; {
	case used != nil && own.Fingerprint != "" && used.TargetFingerprint != "" && own.Fingerprint != used.TargetFingerprint:
		return fmt.Sprintf("its kubeconfig (Secret %q) names another API server or CA than that of ClusterRegistration %s: the hub would not "+
			"adopt it. Write the one that the registration has: Secret %q, key %q", secret, c, used.SecretName, used.Key)
	case used != nil && own.Credential != "":
		if own.Credential != used.Fingerprint {
			return fmt.Sprintf("its kubeconfig (Secret %q) is of another user than that of ClusterRegistration %s", secret, c) + rights
		}
		return ""
	case used != nil && used.SecretName != "" &&
		(c.Namespace != namespace || used.SecretName != secret || used.Key != "" && used.Key != cmp.Or(key, "value")):
		return fmt.Sprintf("its kubeconfig (Secret %q, key %q) was not read, and ClusterRegistration %s has its own from Secret %q, key %q. "+
			"It may be of another user", secret, cmp.Or(key, "value"), c, used.SecretName, used.Key) + rights
	}
	if first, known := c.keys[secret]; known && c.Namespace == namespace && cmp.Or(first, "value") != cmp.Or(key, "value") {
		return fmt.Sprintf("spec.kubeConfig.secretRef.key is %q, and other objects take %q of the same Secret %q: the hub takes one of them for "+
			"the cluster. Write the same key into all of them", key, first, secret)
	}
	if own.Credential != c.credential {
		return fmt.Sprintf("its kubeconfig (Secret %q) is of another user than that of cluster %s (Secret %q)", secret, c, c.Secret) + rights
	}
	return ""
}

// unlike returns a note if an object has another kubeconfig than the hub takes for its cluster, and the two were not compared; ""
// otherwise.
func (c *Cluster) unlike(own Target, namespace, secret string) string {
	if c.Namespace != namespace || c.Secret == secret || own.Fingerprint != "" && !c.borrowed {
		return ""
	}
	return fmt.Sprintf("its kubeconfig is in Secret %q, and the hub takes that of %s, in Secret %q, which was not compared. The hub adopts "+
		"the object only if both name the same API server and CA, and then applies it as the user of its own", secret, c.what(), c.Secret)
}

// known returns all clusters that are known, also those that no object is for. Two may have one name.
func (c *clusters) known() []*Cluster {
	all := map[*Cluster]bool{}
	for _, one := range c.bySecret {
		all[one] = true
	}
	for i := range c.in.Registrations {
		reg := &c.in.Registrations[i]
		if one := (&Cluster{Namespace: reg.Namespace, Name: reg.Name, Labels: reg.Labels, Registered: true}); c.registered[one.String()] == nil {
			all[one] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b *Cluster) int {
		return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.what(), b.what()))
	})
}

// what says what the cluster comes from.
func (c *Cluster) what() string {
	if c.Registered {
		return "ClusterRegistration " + c.Name
	}
	return c.Kind.Kind + " " + c.Origin
}

// namesakes leaves out the objects of a cluster whose name another cluster has: a set would select both. The name stays with the cluster
// that is registered, or else with the one that more objects are for: that one is registered when the sets come.
func (f *folder) namesakes(members []*member) []*member {
	n := map[*Cluster]int{}
	for _, m := range members {
		n[m.cluster]++
	}
	called := map[string][]*Cluster{}
	for _, c := range f.clusters.known() {
		called[c.String()] = append(called[c.String()], c)
	}
	others := map[*Cluster]string{}
	for _, all := range called {
		if len(all) < 2 {
			continue
		}
		var what []string
		for _, c := range all {
			what = append(what, c.what())
		}
		for _, c := range all {
			if c != foremost(all, n) {
				others[c] = fmt.Sprintf("its cluster would be called %s, and so would another: %s. The hub gives one of them another name. "+
					"Register both, and import then", c, strings.Join(what, " and "))
			}
		}
	}
	for c := range others {
		if !c.Registered {
			c.Name = origin.RegistrationNames(c.Kind, c.Name)[1] // as the hub does
		}
	}
	return slices.DeleteFunc(members, func(m *member) bool {
		why, is := others[m.cluster]
		if is {
			f.leave(m.Object, "%s", why)
		}
		return is
	})
}

// foremost returns the cluster that keeps a name; nil if two have as many objects.
func foremost(all []*Cluster, n map[*Cluster]int) *Cluster {
	var out *Cluster
	tie := false
	for _, c := range all {
		switch {
		case c.Registered:
			return c
		case out == nil || n[c] > n[out]:
			out, tie = c, false
		case n[c] == n[out]:
			tie = true
		}
	}
	if tie {
		return nil
	}
	return out
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
	kind, name, assumed = c.names(namespace, secret, key)
	if kind == origin.Kamaji {
		if of := c.clusterOf(namespace, name, assumed); of != "" {
			return origin.ClusterAPI, of, false
		}
	}
	return kind, name, assumed
}

// names returns what a Secret with a kubeconfig is named after, or owned by.
func (c *clusters) names(namespace, secret, key string) (kind origin.Kind, name string, assumed bool) {
	obj := c.origin(origin.Secret, namespace, secret)
	if obj != nil {
		for _, ref := range obj.GetOwnerReferences() {
			// Who makes a Secret writes who owns it. The hub takes the usual one only, which is of the administrator.
			if ref.Kind == origin.Kamaji.Kind && origin.Kamaji.UsualSecret(ref.Name) == secret {
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

// kamajiControlPlane is the kind of Cluster API's control planes that Kamaji runs: each makes a TenantControlPlane of its own name.
const kamajiControlPlane = "KamajiControlPlane"

// clusterOf returns the Cluster of Cluster API whose control plane a TenantControlPlane is; "" if it is none's, as far as is known. The
// hub registers only the Cluster then.
func (c *clusters) clusterOf(namespace, tenant string, assumed bool) string {
	for _, o := range c.in.Origins {
		ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", "controlPlaneRef")
		if o.GetKind() == origin.ClusterAPI.Kind && o.GetNamespace() == namespace && ref["kind"] == kamajiControlPlane && ref["name"] == tenant {
			return o.GetName()
		}
	}
	var candidates []string
	if assumed {
		candidates = append(candidates, tenant)
	} else if obj := c.origin(origin.Kamaji, namespace, tenant); obj != nil {
		candidates = append(candidates, obj.GetLabels()[origin.ClusterNameLabel])
		for _, ref := range obj.GetOwnerReferences() {
			if ref.Kind == kamajiControlPlane {
				candidates = append(candidates, ref.Name)
			}
		}
	}
	for _, name := range candidates {
		o := c.origin(origin.ClusterAPI, namespace, name)
		if o == nil {
			continue
		}
		if _, says, _ := unstructured.NestedMap(o.Object, "spec", "controlPlaneRef"); !says { // else it says another control plane
			return name
		}
	}
	return ""
}

// comesFrom returns whether an object is what the cluster comes from, or the cluster itself where its kubeconfig is in a
// Secret whose origin was not found.
func (c *Cluster) comesFrom(o *unstructured.Unstructured) bool {
	if o.GetNamespace() != c.Namespace {
		return false
	}
	if o.GetKind() == c.Kind.Kind && o.GetName() == c.Origin {
		return true
	}
	for _, k := range []origin.Kind{origin.ClusterAPI, origin.Kamaji} {
		if o.GetKind() == k.Kind && k.UsualSecret(o.GetName()) == c.Secret {
			return true
		}
	}
	return false
}
