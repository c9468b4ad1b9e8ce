// SPDX-License-Identifier: Apache-2.0

package kubeconfig

// Flags of the hub that lift a rule. The binary that registers flags uses these names, so that an error message and the
// flag cannot drift apart.
const (
	FlagTargetCIDRs = "allow-target-cidrs"
	FlagInsecureTLS = "allow-insecure-tls"
	FlagProxy       = "allow-proxy"
	FlagMissingCA   = "allow-missing-ca"
	FlagHTTP        = "allow-http"
	FlagServices    = "allow-services"
)

// Rule is one row of the table of what the hub refuses in a kubeconfig. The checks take their reasons and messages from
// it, and a test holds docs/kubeconfig.md and docs/threat-model.md to it.
type Rule struct {
	// Name identifies the row, in kebab case.
	Name string
	// Reason is the reason of the resulting Error.
	Reason string
	// Input says what in a kubeconfig falls under the rule.
	Input string
	// Why is the risk, in one sentence.
	Why string
	// Remedy says what to do instead.
	Remedy string
	// Flag lifts the rule; without leading dashes, empty if nothing lifts it.
	Flag string

	// lifted tells whether Flag is set; nil where a rule cannot be lifted, or not as a whole (addresses).
	lifted func(Rules) bool
}

// refuse returns the Error for an offence against the rule, or nil if rules lift it. what must hold no byte of the Secret.
func (r *Rule) refuse(rules Rules, field, what string) error {
	if r.lifted != nil && r.lifted(rules) {
		return nil
	}
	message := what + "; " + r.Remedy
	if r.Flag != "" {
		message += " (the hub's flag --" + r.Flag + " lifts this)"
	}
	return &Error{Reason: r.Reason, Field: field, Message: message}
}

// Table returns the rules in the order in which documentation shows them. The caller may change the result.
func Table() []Rule {
	rows := []*Rule{
		ruleExec, ruleFileReference, ruleImpersonation, ruleInsecureTLS, ruleMissingCA, ruleServerName, ruleHTTP, ruleProxy,
		ruleHub, ruleService, ruleLoopback, ruleLinkLocal, ruleMetadata, ruleUnroutable, ruleDenied, ruleSpelling,
		ruleSize, ruleKeySize, ruleYAML, ruleUnknownField,
	}
	table := make([]Rule, len(rows))
	for i, row := range rows {
		table[i] = *row
	}
	return table
}

// The rows come from section 7 of the project's Flux study (flux-semantics): what Flux drops silently or follows blindly,
// the hub refuses with a reason.
var (
	ruleExec = &Rule{
		Name: "exec", Reason: ReasonExec,
		Input:  "users[].user.exec, users[].user.auth-provider, also in entries that are not used",
		Why:    "The program would run in the pods of the hub and of Flux.",
		Remedy: "put a token or a client certificate into the kubeconfig, such as a token of a ServiceAccount",
	}
	ruleFileReference = &Rule{
		Name: "file-reference", Reason: ReasonFileReference,
		Input:  "tokenFile, client-certificate, client-key, certificate-authority, also in entries that are not used",
		Why:    "It reads files of the pod, such as its service account token.",
		Remedy: "embed the content (token, client-certificate-data, client-key-data, certificate-authority-data)",
	}
	ruleImpersonation = &Rule{
		Name: "impersonation", Reason: ReasonImpersonation,
		Input:  "users[].user.as, as-uid, as-groups, as-user-extra",
		Why:    "Flux drops it silently: all would run as the impersonating user.",
		Remedy: "remove it and set spec.serviceAccountName on the registration",
	}
	ruleInsecureTLS = &Rule{
		Name: "insecure-tls", Reason: ReasonInsecureTLS, Flag: FlagInsecureTLS,
		Input:  "clusters[].cluster.insecure-skip-tls-verify: true",
		Why:    "An attacker on the network gets the credential.",
		Remedy: "give the cluster's CA in certificate-authority-data",
		lifted: func(r Rules) bool { return r.AllowInsecureTLS },
	}
	ruleMissingCA = &Rule{
		Name: "missing-ca", Reason: ReasonMissingCA, Flag: FlagMissingCA,
		Input:  "no certificate-authority-data",
		Why:    "Every public certificate authority could vouch for the cluster.",
		Remedy: "give the cluster's CA in certificate-authority-data",
		lifted: func(r Rules) bool { return r.AllowMissingCA },
	}
	ruleServerName = &Rule{
		Name: "tls-server-name", Reason: ReasonTLSServerName,
		Input:  "clusters[].cluster.tls-server-name without certificate-authority-data",
		Why:    "A free choice of name plus public roots accepts any certificate.",
		Remedy: "give the cluster's CA in certificate-authority-data, or remove tls-server-name",
	}
	ruleHTTP = &Rule{
		Name: "http", Reason: ReasonHTTP, Flag: FlagHTTP,
		Input:  "a server that starts with http://",
		Why:    "All travels in clear text, and the server proves nothing.",
		Remedy: "use https://",
		lifted: func(r Rules) bool { return r.AllowHTTP },
	}
	ruleProxy = &Rule{
		Name: "proxy", Reason: ReasonProxy, Flag: FlagProxy,
		Input:  "clusters[].cluster.proxy-url",
		Why:    "All traffic goes where the author wants, and names resolve there.",
		Remedy: "remove proxy-url and let the hub reach the server directly",
		lifted: func(r Rules) bool { return r.AllowProxy },
	}
	ruleHub = &Rule{
		Name: "hub", Reason: ReasonHub,
		Input:  "a server that is the hub's own API server: kubernetes.default and its other names, its addresses",
		Why:    "Add-ons would be installed into the management cluster.",
		Remedy: "use the kubeconfig of a workload cluster",
	}
	ruleService = &Rule{
		Name: "service", Reason: ReasonAddress, Flag: FlagServices,
		Input: "a Service of the management cluster: *.svc, *.svc.*, *.cluster.local, or an address in its Service ranges, also by a name; " +
			"not for a TenantControlPlane's or Cluster's own kubeconfig",
		Why:    "The author would have the hub and Flux talk to what runs beside them.",
		Remedy: "label the TenantControlPlane or the Cluster, or use an address outside the management cluster",
		lifted: func(r Rules) bool { return r.AllowServices },
	}
	ruleLoopback = &Rule{
		Name: "loopback", Reason: ReasonAddress, Flag: FlagTargetCIDRs,
		Input:  "a server that is or resolves to localhost, 127.0.0.0/8, ::1",
		Why:    "It is the hub or Flux itself, never a cluster.",
		Remedy: "use an address that the management cluster reaches (vcluster: set exportKubeConfig.server)",
	}
	ruleLinkLocal = &Rule{
		Name: "link-local", Reason: ReasonAddress, Flag: FlagTargetCIDRs,
		Input:  "a server that is or resolves to 169.254.0.0/16, fe80::/10",
		Why:    "Services of the node there hand out credentials.",
		Remedy: "use a routable address",
	}
	ruleMetadata = &Rule{
		Name: "metadata", Reason: ReasonAddress, Flag: FlagTargetCIDRs,
		Input:  "a server that is or resolves to a cloud's metadata service, such as metadata.google.internal, 169.254.169.254, fd00:ec2::254",
		Why:    "It hands out the node's credentials. A wide prefix must not open it.",
		Remedy: "use the address of a cluster; only a prefix of exactly the one address (/32, /128) lifts the rule",
	}
	ruleUnroutable = &Rule{
		Name: "unroutable", Reason: ReasonAddress,
		Input:  "a server that is or resolves to 0.0.0.0/8, ::, multicast, broadcast, 240.0.0.0/4",
		Why:    "It is never a cluster; some systems take it for the local host.",
		Remedy: "use the address of a cluster",
	}
	ruleDenied = &Rule{
		Name: "denied-range", Reason: ReasonAddress, Flag: FlagTargetCIDRs,
		Input:  "a server that is or resolves to an address in a range that the hub's operator denies (--deny-target-cidrs)",
		Why:    "The operator keeps kubeconfigs away from these networks.",
		Remedy: "use an address outside the denied ranges",
	}
	ruleSpelling = &Rule{
		Name: "address-spelling", Reason: ReasonServerInvalid,
		Input:  "an IPv4 address in an unusual spelling (127.1, 2130706433, 0x7f.1, a trailing dot), an IPv6 zone, a host outside ASCII",
		Why:    "Resolvers disagree about such hosts: a check would not hold elsewhere.",
		Remedy: "write the host as a DNS name or an address in its usual form",
	}
	ruleSize = &Rule{
		Name: "size", Reason: ReasonTooLarge,
		Input:  "more than 256 KiB",
		Why:    "No cluster's kubeconfig is that large.",
		Remedy: "keep only the context that is used (kubectl config view --minify --flatten)",
	}
	ruleKeySize = &Rule{
		Name: "key-size", Reason: ReasonKeyTooLarge,
		Input:  "a certificate with an RSA key of more than 8192 bits, a private key of more than 8 KiB",
		Why:    "A TLS handshake takes a processor for minutes, even after the connection ends.",
		Remedy: "use an RSA key of 2048 to 8192 bits, or an elliptic curve",
	}
	ruleYAML = &Rule{
		Name: "yaml", Reason: ReasonAmbiguous,
		Input:  "YAML anchors, aliases, merge keys and tags, duplicate keys or entries, several documents, nesting deeper than 32",
		Why:    "Parsers read these differently, and some can be made to run for ever.",
		Remedy: "write plain YAML or JSON (kubectl config view --raw -o json)",
	}
	ruleUnknownField = &Rule{
		Name: "unknown-field", Reason: ReasonUnknownField,
		Input:  "a field of the cluster or user in use that is not known here; elsewhere unknown fields and extensions are dropped",
		Why:    "It may change how the server is reached, or who the user is.",
		Remedy: "correct or remove it",
	}
)
