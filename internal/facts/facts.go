// SPDX-License-Identifier: Apache-2.0

// Package facts collects what expressions can read about a cluster, from its registration and its origin. It is pure,
// so the hub and the command line give expressions the same facts.
package facts

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/render/variables"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

// Cluster returns the value of cluster in expressions. obj is the origin, or nil.
func Cluster(reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured) *expression.Cluster {
	c := &expression.Cluster{
		Name: reg.Name, Namespace: reg.Namespace, Labels: reg.Labels, Annotations: annotations(reg.Annotations),
		Provider: reg.Status.Provider, UID: string(reg.Status.ClusterUID),
		KubernetesVersion: reg.Status.KubernetesVersion, Version: version(reg.Status.KubernetesVersion),
		HubEndpoint: reg.Status.Endpoint,
	}
	if reg.Status.Nodes != nil {
		c.Nodes = int64(*reg.Status.Nodes)
	}
	var n origin.Network
	if reg.Spec.OriginRef != nil {
		if kind, err := origin.KindOf(*reg.Spec.OriginRef); err == nil {
			n = kind.Network(obj)
		}
	}
	c.PodCIDRs, c.ServiceCIDRs = n.PodCIDRs, n.ServiceCIDRs
	c.APIServer = expression.Endpoint{Host: n.Host, Port: n.Port}
	if n.Host == "" {
		c.APIServer = endpoint(reg.Status.Endpoint)
	}
	c.Unknown = unknown(reg, obj, c)
	return c
}

// Identity returns what tells the cluster from others if Flux logs in by workload identity, and "" if it uses a
// kubeconfig. The identity in use counts; the one in the spec counts only while none is in use.
func Identity(reg *hubv1.ClusterRegistration) string {
	kc := reg.Spec.KubeConfig
	switch {
	case reg.Status.UsesWorkloadIdentity():
		return reg.Status.ClusterID()
	case reg.Status.Credential == nil && kc != nil && kc.WorkloadIdentity != nil:
		return workloadidentity.Cluster(kc.WorkloadIdentity)
	}
	return ""
}

// endpoint parses a server's URL. Without an origin that knows better, it assumes that nodes reach the server as the
// hub does.
func endpoint(server string) expression.Endpoint {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return expression.Endpoint{}
	}
	port, err := strconv.ParseInt(u.Port(), 10, 64)
	if err != nil {
		port = 443
	}
	return expression.Endpoint{Host: u.Hostname(), Port: port}
}

// version parses a version such as "v1.33.2+k3s1".
func version(git string) expression.Version {
	v := expression.Version{Git: git}
	parts := strings.SplitN(strings.TrimPrefix(git, "v"), ".", 3)
	if len(parts) < 2 {
		return v
	}
	v.Major, _ = strconv.ParseInt(parts[0], 10, 64)
	v.Minor, _ = strconv.ParseInt(strings.TrimRight(parts[1], "+"), 10, 64)
	return v
}

// annotations leaves out kubectl's last-applied-configuration: it holds the whole object, and with it a Secret's
// data.
func annotations(in map[string]string) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		if k != corev1.LastAppliedConfigAnnotation {
			out[k] = v
		}
	}
	return out
}

// Origin returns the value of origin in expressions: metadata and, unless it is a Secret, spec and status. The result
// shares no data that may change.
func Origin(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	metadata := map[string]any{
		"name": obj.GetName(), "namespace": obj.GetNamespace(), "uid": string(obj.GetUID()),
		"labels": anyMap(obj.GetLabels()), "annotations": anyMap(annotations(obj.GetAnnotations())),
	}
	out := map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": metadata}
	if obj.GetKind() == origin.Secret.Kind && obj.GroupVersionKind().Group == "" {
		return out
	}
	for _, part := range []string{"spec", "status"} {
		if m, ok := obj.Object[part].(map[string]any); ok {
			out[part] = runtime.DeepCopyJSON(m)
		}
	}
	return out
}

func anyMap(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

// The layers of a cluster's own variables.
const (
	AnnotationLayer   = "the origin's annotation " + hubv1.VariablesAnnotation
	RegistrationLayer = "the registration's spec.variables"
)

// annotated reads an object in JSON or YAML; wrong says what it is instead. An alias in YAML stands for all that its
// anchor has: a few kilobytes of them would fill the hub's memory.
func annotated(text string) (values map[string]any, wrong string) {
	if aliased(text) {
		return nil, "has a YAML alias (*name), which the hub does not read"
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		values = map[string]any{}
		err = json.Unmarshal(raw, &values)
	}
	if err != nil {
		return nil, "is not an object in JSON or YAML"
	}
	return values, ""
}

// aliased returns whether a YAML document has an alias. Text that is no YAML has none.
func aliased(text string) bool {
	var document yamlv3.Node
	return strings.Contains(text, "*") && yamlv3.Unmarshal([]byte(text), &document) == nil && hasAlias(&document)
}

// hasAlias returns whether a node is an alias, or has one below it.
func hasAlias(n *yamlv3.Node) bool {
	return n.Kind == yamlv3.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}

// Variables returns the cluster's own variables, the weakest layer first. A variable that cannot be parsed is left
// out and reported in unreadable. It does not keep add-ons from the cluster.
func Variables(reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured) (layers []variables.Layer, unreadable []string) {
	if obj != nil {
		if text := obj.GetAnnotations()[hubv1.VariablesAnnotation]; text != "" {
			values, wrong := annotated(text)
			if wrong != "" {
				unreadable = append(unreadable, fmt.Sprintf("annotation %s of %s %q %s; it is ignored",
					hubv1.VariablesAnnotation, obj.GetKind(), obj.GetName(), wrong))
			} else {
				layers = append(layers, variables.Layer{Name: AnnotationLayer, Values: values})
			}
		}
	}
	values := make(map[string]any, len(reg.Spec.Variables))
	for _, name := range slices.Sorted(maps.Keys(reg.Spec.Variables)) {
		raw := reg.Spec.Variables[name].Raw
		var v any // a null has no bytes
		if len(raw) > 0 && json.Unmarshal(raw, &v) != nil {
			unreadable = append(unreadable, fmt.Sprintf("spec.variables.%s of the ClusterRegistration cannot be read as JSON; it is ignored", name))
			continue
		}
		values[name] = v
	}
	if len(values) > 0 {
		layers = append(layers, variables.Layer{Name: RegistrationLayer, Values: values})
	}
	return layers, unreadable
}
