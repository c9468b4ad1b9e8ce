// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// What the hub may do with them:
// +kubebuilder:rbac:groups=multicluster.x-k8s.io,resources=clusterprofiles,verbs=list;watch;patch

// ClusterProfile is the kind by which cluster managers tell each other of clusters (SIG Multicluster, KEP 4322). Like a Secret, it only
// says how to reach a cluster, and so Policy decides where one registers a cluster.
var ClusterProfile = Kind{
	GroupKind: schema.GroupKind{Group: "multicluster.x-k8s.io", Kind: "ClusterProfile"},
	Provider:  "ClusterProfile",
	CRD:       "clusterprofiles.multicluster.x-k8s.io",
	points:    true,
	traits:    clusterProfile{},
}

type clusterProfile struct{ plain }

const (
	// SecretReader is the access provider whose credentials are in a kubeconfig Secret
	// (cluster-inventory-api, plugins/kubeconfig-secretreader). All others run a program of the consumer's.
	SecretReader = "kubeconfig-secretreader"
	// ExecExtension is the extension of an access provider's cluster that configures its plugin (k8s.io/client-go,
	// tools/clientcmd, ExecCredential's cluster config).
	ExecExtension = "client.authentication.k8s.io/exec"
)

// kubeConfig reads what the access provider kubeconfig-secretreader is configured with. The hub takes the whole kubeconfig from the
// Secret, the server too: whoever may write the profile's status, and not the Secret, must not lead its credentials elsewhere.
func (c clusterProfile) kubeConfig(obj *unstructured.Unstructured) (Source, error) {
	provider, _ := accessProvider(obj)
	if c.silent(obj) {
		return Source{}, &NotReady{fmt.Sprintf("ClusterProfile %q has no status.accessProviders yet", obj.GetName())}
	}
	if why := c.noKubeConfig(obj); why != "" {
		return Source{}, &NotReady{fmt.Sprintf("ClusterProfile %q: %s", obj.GetName(), why)}
	}
	secret := execConfig(provider)
	return Source{Secret: secret["name"], Key: secret["key"], Context: secret["context"]}, nil
}

func (clusterProfile) usualSecret(name string) string { return name }

// network reads the address that an access provider gives.
func (clusterProfile) network(obj *unstructured.Unstructured) Network {
	provider, _ := accessProvider(obj)
	server, _, _ := unstructured.NestedString(provider, "cluster", "server")
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return Network{}
	}
	n := Network{Host: u.Hostname(), Port: 443}
	if port, err := strconv.ParseInt(u.Port(), 10, 64); err == nil {
		n.Port = port
	}
	return n
}

func (clusterProfile) version(obj *unstructured.Unstructured) string {
	v, _, _ := unstructured.NestedString(obj.Object, "status", "version", "kubernetes")
	return v
}

func (clusterProfile) refuse(obj *unstructured.Unstructured, _ func(string) bool) string {
	if owners := obj.GetOwnerReferences(); OfRegistration(owners) {
		return fmt.Sprintf("the hub itself made it, of ClusterRegistration %q", owners[slices.IndexFunc(owners, ofRegistration)].Name)
	}
	return ""
}

// OfRegistration returns whether a registration is among the owners of a profile, as of those that a hub makes.
func OfRegistration(owners []metav1.OwnerReference) bool {
	return slices.ContainsFunc(owners, ofRegistration)
}

func ofRegistration(o metav1.OwnerReference) bool {
	return o.Kind == "ClusterRegistration" && strings.HasPrefix(o.APIVersion, hubv1.GroupVersion.Group+"/")
}

// silent returns whether a profile has no access providers yet: whoever makes one writes its status after it.
func (clusterProfile) silent(obj *unstructured.Unstructured) bool {
	provider, names := accessProvider(obj)
	return provider == nil && len(names) == 0
}

// noKubeConfig returns why the hub cannot use the access providers of a profile; "" if it can, or if there are none yet.
func (c clusterProfile) noKubeConfig(obj *unstructured.Unstructured) string {
	provider, names := accessProvider(obj)
	switch {
	case c.silent(obj):
		return ""
	case provider == nil:
		return fmt.Sprintf("of its access providers, %s, the hub can use none: it runs no program for a credential, and reads one from a "+
			"Secret if the provider is %s. For a cluster of a cloud, write a ClusterRegistration with %s and the identity to use: "+
			"spec.kubeConfig.workloadIdentity (docs/sources.md#a-cluster-of-a-cloud)",
			status.List(names, 3), SecretReader, ClusterProfile.Written(obj.GetName()))
	}
	secret := execConfig(provider)
	switch namespace := secret["namespace"]; {
	case secret["name"] == "" || secret["key"] == "":
		return fmt.Sprintf("access provider %s names no Secret: extension %s needs name and key", SecretReader, ExecExtension)
	case namespace != "" && namespace != obj.GetNamespace():
		return fmt.Sprintf("access provider %s names a Secret in namespace %q; the hub reads the Secrets of clusters only beside what names "+
			"them", SecretReader, namespace)
	}
	return ""
}

// How much is told of access providers: nobody bounds what a profile says.
const maxName, maxNames = 63, 16

// accessProvider returns the access provider whose credentials are in a Secret, nil if there is none, and the names of all. What is in
// status.accessProviders counts before what is in credentialProviders, its older name.
func accessProvider(obj *unstructured.Unstructured) (provider map[string]any, names []string) {
	for _, field := range []string{"accessProviders", "credentialProviders"} {
		value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", field)
		all, _ := value.([]any)
		for _, p := range all {
			p, _ := p.(map[string]any)
			name, _, _ := unstructured.NestedString(p, "name")
			if name == SecretReader && provider == nil {
				provider = p
			}
			if name = excerpt.Of(name, maxName); name != "" && len(names) < maxNames && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return provider, names
}

// execConfig returns the texts that an access provider's plugin is configured with.
func execConfig(provider map[string]any) map[string]string {
	out := map[string]string{}
	value, _, _ := unstructured.NestedFieldNoCopy(provider, "cluster", "extensions")
	extensions, _ := value.([]any)
	for _, e := range extensions {
		e, _ := e.(map[string]any)
		config, _ := e["extension"].(map[string]any)
		if e["name"] != ExecExtension {
			continue
		}
		for k, v := range config {
			if text, ok := v.(string); ok {
				out[k] = text
			}
		}
	}
	return out
}
