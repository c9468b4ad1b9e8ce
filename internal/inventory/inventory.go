// SPDX-License-Identifier: Apache-2.0

// Package inventory makes ClusterProfiles of registrations: how other tools of SIG Multicluster's cluster inventory (KEP 4322) see the
// clusters of the hub. It is pure.
package inventory

import (
	"encoding/json"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1" //nolint:depguard // the structs of a kubeconfig
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/origin"
)

// Names of the properties that only the hub knows of a cluster.
const (
	UIDProperty      = "chandler.dev/cluster-uid" // the UID of its Namespace kube-system
	ProviderProperty = "chandler.dev/provider"
	NodesProperty    = "chandler.dev/nodes"
)

// FingerprintAnnotation says of which kubeconfig the access provider of a profile is.
const FingerprintAnnotation = "chandler.dev/access-fingerprint"

// ClusterManager returns the name of a hub as the manager of clusters: each one has another.
func ClusterManager(hubID string) string {
	if hubID == "" || hubID == "chandler" {
		return "chandler"
	}
	return "chandler-" + hubID
}

// Owned returns whether a profile is a hub's: it names the hub as its cluster manager, and that field cannot be changed. An owner is no
// proof: a user who edits the profile may take it off, or put it on another.
func Owned(p *inventoryv1alpha1.ClusterProfile, hubID string) bool {
	return p.Spec.ClusterManager.Name == ClusterManager(hubID)
}

// Spec returns the profile of a registration without its status. Labels of the registration are the profile's too, but for those by which
// other tools know what is theirs, and those of the hub that are about the registration and not its cluster.
func Spec(reg *hubv1.ClusterRegistration, hubID string) *inventoryv1alpha1.ClusterProfile {
	manager, yes := ClusterManager(hubID), true
	p := &inventoryv1alpha1.ClusterProfile{
		TypeMeta: metav1.TypeMeta{APIVersion: inventoryv1alpha1.GroupVersion.String(), Kind: origin.ClusterProfile.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: reg.Namespace, Name: reg.Name, Labels: origin.CopiedLabels(reg.Labels),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: hubv1.GroupVersion.String(), Kind: "ClusterRegistration", Name: reg.Name,
				UID: reg.UID, Controller: &yes}},
		},
		Spec: inventoryv1alpha1.ClusterProfileSpec{DisplayName: reg.Name, ClusterManager: inventoryv1alpha1.ClusterManager{Name: manager}},
	}
	for _, k := range []string{hubv1.NameLabel, hubv1.ProviderLabel, hubv1.KubernetesMinorLabel} {
		if v, ok := reg.Labels[k]; ok {
			p.Labels[k] = v
		}
	}
	p.Labels[inventoryv1alpha1.LabelClusterManagerKey] = manager
	return p
}

// Status returns what a profile says of a cluster. access is the address and CA of the kubeconfig that the hub uses; nil if there is none
// in a Secret. No credential is in it: the access provider names the Secret, which stays where it is, and who may read that decides who
// gets in.
func Status(reg *hubv1.ClusterRegistration, access *clientcmdv1.Cluster) inventoryv1alpha1.ClusterProfileStatus {
	out := inventoryv1alpha1.ClusterProfileStatus{
		Conditions: []metav1.Condition{healthy(reg)},
		Version:    inventoryv1alpha1.ClusterVersion{Kubernetes: reg.Status.KubernetesVersion},
	}
	property := func(name, value string) {
		if value != "" {
			out.Properties = append(out.Properties, inventoryv1alpha1.Property{Name: name, Value: value})
		}
	}
	property(UIDProperty, string(reg.Status.ClusterUID))
	property(ProviderProperty, reg.Status.Provider)
	if reg.Status.Nodes != nil {
		property(NodesProperty, strconv.FormatInt(int64(*reg.Status.Nodes), 10))
	}
	if c := reg.Status.Credential; c != nil && c.SecretName != "" && access != nil {
		out.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: origin.SecretReader, Cluster: *access}}
		out.AccessProviders[0].Cluster.Extensions = []clientcmdv1.NamedExtension{{
			Name: origin.ExecExtension, Extension: runtime.RawExtension{Raw: secretReader(reg.Namespace, c)},
		}}
	}
	return out
}

// secretReader configures the plugin kubeconfig-secretreader (cluster-inventory-api, plugins/kubeconfig-secretreader, execClusterConfig).
func secretReader(namespace string, c *hubv1.CredentialStatus) []byte {
	config := map[string]string{"name": c.SecretName, "key": c.Key, "namespace": namespace}
	if c.Context != "" {
		config["context"] = c.Context
	}
	raw, _ := json.Marshal(config) // a map of texts
	return raw
}

// maxMessage is how much of a message a profile repeats.
const maxMessage = 512

// healthy returns condition ControlPlaneHealthy: what the hub's probe says.
func healthy(reg *hubv1.ClusterRegistration) metav1.Condition {
	out := metav1.Condition{Type: inventoryv1alpha1.ClusterConditionControlPlaneHealthy, Status: metav1.ConditionUnknown,
		Reason: hubv1.NotProbedReason, Message: "the hub has not asked the cluster yet", LastTransitionTime: reg.CreationTimestamp}
	if c := meta.FindStatusCondition(reg.Status.Conditions, hubv1.ReachableCondition); c != nil {
		out.Status, out.Reason, out.Message, out.LastTransitionTime = c.Status, c.Reason, excerpt.Of(c.Message, maxMessage), c.LastTransitionTime
	}
	return out
}
