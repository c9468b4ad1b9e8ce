// SPDX-License-Identifier: Apache-2.0

// Package workloadidentity turns a registration's spec.kubeConfig.workloadIdentity into the ConfigMap for Flux's
// spec.kubeConfig.configMapRef. It is pure.
//
// Flux logs in with a token of the ServiceAccount that the ConfigMap names. The ServiceAccount is in the namespace of
// the Flux object, which is the set's. If the ConfigMap names none, Flux uses its own identity, with audiences and an
// address from the ConfigMap (fluxcd/pkg/auth, GetAccessToken and generic.NewControllerToken). An attacker who writes
// such a ConfigMap can point it at his own server, and read a cluster administrator's token in its log. So the hub
// writes the ConfigMap itself, and always with a ServiceAccount.
package workloadidentity

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// generic is the provider that shows the cluster the ServiceAccount's own token.
const generic = "generic"

const field = "spec.kubeConfig.workloadIdentity."

// Access is a workload identity that passed every check.
type Access struct {
	// Data is the data of the ConfigMap.
	Data map[string]string
	// Server is the URL of the API server, https://host:port; empty if Flux asks the provider for it.
	Server string
}

// clusters are the forms of a cluster's name that Flux accepts (fluxcd/pkg/auth, options.go of each provider).
var clusters = map[string]struct {
	pattern *regexp.Regexp
	example string
}{
	"aws": {regexp.MustCompile(`^arn:aws[\w-]*:eks:([^:]{1,100}):[0-9]{1,30}:cluster/(.{1,200})$`),
		"arn:aws:eks:<region>:<account>:cluster/<name>"},
	"azure": {regexp.MustCompile(`(?i)^/subscriptions/([^/]{36})/resourceGroups/([^/]{1,200})` +
		`/providers/Microsoft\.ContainerService/managedClusters/([^/]{1,200})$`),
		"/subscriptions/<id>/resourceGroups/<group>/providers/Microsoft.ContainerService/managedClusters/<name>"},
	"gcp": {regexp.MustCompile(`^projects/[^/]{1,200}/locations/[^/]{1,200}/clusters/[^/]{1,200}$`),
		"projects/<project>/locations/<location>/clusters/<name>"},
}

// Check checks a workload identity against the rules for kubeconfigs that apply to it. It repeats only those checks
// of the CRD that security depends on. The error is a *kubeconfig.Error.
func Check(w *hubv1.WorkloadIdentity, rules kubeconfig.Rules) (*Access, error) {
	if w.ServiceAccountName == "" {
		return nil, invalid("serviceAccountName", "is missing: Flux would log in as itself; name a ServiceAccount")
	}
	if c, ok := clusters[w.Provider]; ok && w.Cluster != "" && !c.pattern.MatchString(w.Cluster) {
		return nil, invalid("cluster", "is no name of a cluster of provider "+w.Provider+"; write "+c.example)
	}
	endpoint := kubeconfig.Endpoint{
		Address: w.Address, AddressField: field + "address", CA: w.CABundle, CAField: field + "caBundle",
		PinCA: w.Provider == generic,
	}
	server, ca, err := endpoint.Check(rules)
	if err != nil {
		return nil, err
	}
	for i, a := range w.Audiences {
		if strings.ContainsAny(a, " \t\r\n,") {
			return nil, invalid(fmt.Sprintf("audiences[%d]", i), "holds white space or a comma; write one audience in each entry")
		}
		if rules.NamesHub(a) {
			return nil, invalid(fmt.Sprintf("audiences[%d]", i), "is the hub's own API server, which would accept the token "+
				"from its readers on the cluster; "+
				"write an audience that only the cluster accepts")
		}
	}
	out := &Access{Server: server, Data: map[string]string{
		fluxmeta.KubeConfigKeyProvider: w.Provider, fluxmeta.KubeConfigKeyServiceAccountName: w.ServiceAccountName,
	}}
	for key, value := range map[string]string{
		fluxmeta.KubeConfigKeyCluster: w.Cluster,
		// The address stays as it is written: it is the default audience of generic, and the trust of the cluster is
		// set up for this text.
		fluxmeta.KubeConfigKeyAddress:   w.Address,
		fluxmeta.KubeConfigKeyCACert:    string(ca),
		fluxmeta.KubeConfigKeyAudiences: strings.Join(w.Audiences, "\n"),
	} {
		if value != "" {
			out.Data[key] = value
		}
	}
	return out, nil
}

func invalid(name, message string) error {
	return &kubeconfig.Error{Reason: hubv1.WorkloadIdentityInvalidReason, Field: field + name, Message: message}
}

// Fingerprint returns a digest that changes when anything changes that Flux logs in with.
func (a *Access) Fingerprint() string {
	parts := make([]string, 0, 2*len(a.Data))
	for k, v := range a.Data {
		parts = append(parts, k+"="+v)
	}
	slices.Sort(parts)
	return identity.Hash(kubeconfig.FingerprintLength, parts...)
}

// Cluster returns what identifies a cluster that the hub cannot probe: its name at the provider, or its address. It
// stands for the UID of kube-system, and like the UID it does not say where the cluster is.
func Cluster(w *hubv1.WorkloadIdentity) string {
	name := w.Cluster
	if name == "" {
		name = strings.ToLower(w.Address)
	}
	if w.Provider == "azure" { // whose resource IDs know no case
		name = strings.ToLower(name)
	}
	return identity.Hash(kubeconfig.FingerprintLength, "workload-identity", w.Provider, name)
}

// Refusal returns why a set may not deliver to a cluster by workload identity; "" if it may. Flux looks for the
// ServiceAccount in the set's namespace. The registration names the ServiceAccount and the server that gets its
// token. So both must be in the same namespace, or the registration must be in a platform namespace: people who may
// write there may choose a ServiceAccount anyway.
func Refusal(registration, set string, platform func(namespace string) bool) string {
	if registration == set || platform(registration) {
		return ""
	}
	return fmt.Sprintf("the cluster is registered with a workload identity in namespace %q, which is not a platform namespace: "+
		"users who write there may not use a ServiceAccount of namespace %q, where Flux looks for it. Register the cluster "+
		"in a platform namespace, or deliver to it by a set in namespace %q", registration, set, registration)
}
