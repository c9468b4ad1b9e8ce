// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import "github.com/chandler-hub/chandler/internal/kubeconfig"

// Fields that are refused, as errors name them.
const (
	fieldServer   = "clusters[0].cluster.server"
	fieldCA       = "clusters[0].cluster.certificate-authority-data"
	fieldCAFile   = "clusters[0].cluster.certificate-authority"
	fieldInsecure = "clusters[0].cluster.insecure-skip-tls-verify"
	fieldProxy    = "clusters[0].cluster.proxy-url"
	fieldName     = "clusters[0].cluster.tls-server-name"
	fieldUser     = "users[0].user"
)

// Refusals that many share.
var (
	refusedExec     = refusal{reason: kubeconfig.ReasonExec, field: fieldUser + ".exec", text: "put a token or a client certificate into the kubeconfig"}
	refusedProvider = refusal{reason: kubeconfig.ReasonExec, field: fieldUser + ".auth-provider", text: "put a token or a client certificate into the kubeconfig"}
	refusedAlias    = refusal{reason: kubeconfig.ReasonAmbiguous, text: "YAML anchors and aliases are not allowed (line "}
	refusedTwice    = refusal{reason: kubeconfig.ReasonAmbiguous, text: "a mapping has the same key twice (line "}
	refusedTag      = refusal{reason: kubeconfig.ReasonAmbiguous, text: "YAML tags are not allowed (line "}
	refusedSpelling = refusal{reason: kubeconfig.ReasonServerInvalid, field: fieldServer, text: "spelt in an unusual way; write the host as a DNS name or an address in its usual form"}
	refusedURL      = refusal{reason: kubeconfig.ReasonServerInvalid, field: fieldServer, text: "must be https://host:port"}
	refusedMetadata = address("is the address of a cloud metadata service; use the address of a cluster")
	refusedLoopback = address("is a loopback address; use an address that the management cluster reaches")
	refusedLocal    = address("the host is a name of the local host; use an address that the management cluster reaches")
	refusedHubName  = refusal{reason: kubeconfig.ReasonHub, field: fieldServer, text: "the host is a name of the hub's own API server; use the kubeconfig of a workload cluster"}
)

// refusedService is what whoever labels the Secret gets to read, and not whoever labels the TenantControlPlane.
var refusedService = refusal{reason: kubeconfig.ReasonAddress, field: fieldServer, flag: kubeconfig.FlagServices,
	text: "the host is the name of a Service of the management cluster; label the TenantControlPlane or the Cluster, or use"}

// address is a refusal that --allow-target-cidrs lifts.
func address(text string) refusal {
	return refusal{reason: kubeconfig.ReasonAddress, field: fieldServer, text: text, flag: kubeconfig.FlagTargetCIDRs}
}

func file(field string) refusal {
	return refusal{reason: kubeconfig.ReasonFileReference, field: field, text: "paths to files are not allowed; embed the content"}
}

func impersonation(key string) refusal {
	return refusal{reason: kubeconfig.ReasonImpersonation, field: fieldUser + "." + key, text: "impersonation is not allowed; remove it"}
}

// refused says why each kubeconfig is refused. Those that are not here are in accepted.
var refused = map[string]refusal{
	"kamaji-admin-svc":       refusedService,
	"kamaji-generator":       refusedService,
	"kamaji-super-admin-svc": refusedService,
	"vcluster-exported":      refusedService,
	"aks-auth-provider":      refusedProvider,
	"aks-kubelogin":          refusedExec,
	"capa-eks-relative":      file("users[0].user.tokenFile"),
	"capa-eks-user":          refusedExec,
	"cni":                    {reason: kubeconfig.ReasonHub, field: fieldServer, text: "10.96.0.1 is the hub's own API server; use the kubeconfig of a workload cluster"},
	"cni-brackets":           refusedURL,
	"eks-exec":               refusedExec,
	"files-kubelet":          file("users[0].user.client-certificate"),
	"gke-auth-provider":      refusedProvider,
	"gke-exec":               refusedExec,
	"k3d":                    {reason: kubeconfig.ReasonAddress, field: fieldServer, text: "0.0.0.0 is an unspecified, multicast or reserved address"},
	"k3s":                    refusedLoopback,
	"kind":                   refusedLoopback,
	"minikube":               file("users[0].user.client-certificate"),
	"oidc-auth-provider":     refusedProvider,
	"openshift-insecure":     {reason: kubeconfig.ReasonInsecureTLS, field: fieldInsecure, text: "give the cluster's CA", flag: kubeconfig.FlagInsecureTLS},
	"rancher-public":         {reason: kubeconfig.ReasonMissingCA, field: fieldCA, text: "is missing; give the cluster's CA", flag: kubeconfig.FlagMissingCA},
	"secret-manifest":        {reason: kubeconfig.ReasonMalformed, text: "not a kubeconfig: it must have apiVersion v1 and kind Config"},
	"vcluster":               refusedLocal,

	"alias-server":           refusedAlias,
	"aliases-billion-laughs": refusedAlias,
	"aliases-quadratic":      refusedAlias,
	"aliases-self":           refusedAlias,
	"anchor-only":            refusedAlias,
	"deep":                   {reason: kubeconfig.ReasonAmbiguous, text: "nesting is too deep (line 8)"},
	"duplicate-escaped":      refusedTwice,
	"duplicate-name":         {reason: kubeconfig.ReasonAmbiguous, field: "clusters[1].name", text: "the name occurs twice in the list"},
	"duplicate-server":       refusedTwice,
	"duplicate-users":        refusedTwice,
	"huge":                   {reason: kubeconfig.ReasonTooLarge, text: "the value has 257 KiB, more than 256; keep only the context that is used"},
	"list-key":               {reason: kubeconfig.ReasonAmbiguous, text: "a mapping has a key that is not a plain string (line 8)"},
	"merge-key":              {reason: kubeconfig.ReasonAmbiguous, text: "a mapping has a key that is not a plain string (line 9)"},
	"tag-binary":             refusedTag,
	"tag-python":             refusedTag,
	"two-documents":          {reason: kubeconfig.ReasonAmbiguous, text: "the value has more than one YAML document"},

	"case-exec":                 {reason: kubeconfig.ReasonUnknownField, field: fieldUser, text: "unknown field (line 7); correct or remove it"},
	"case-server":               {reason: kubeconfig.ReasonUnknownField, field: "clusters[0].cluster", text: "unknown field (line 6); correct or remove it"},
	"exec-empty":                refusedExec,
	"exec-in-unused-user":       {reason: kubeconfig.ReasonExec, field: "users[1].user.exec", text: "authentication plugins are not allowed"},
	"ca-file":                   file(fieldCAFile),
	"ca-file-in-unused-cluster": file(fieldCAFile),
	"key-file":                  file("users[0].user.client-key"),
	"token-and-token-file":      file("users[0].user.tokenFile"),
	"token-file":                file("users[0].user.tokenFile"),
	"as-extra":                  impersonation("as-user-extra"),
	"as-groups":                 impersonation("as-groups"),
	"as-uid":                    impersonation("as-uid"),
	"impersonation":             impersonation("as"),

	"certificate-only": {reason: kubeconfig.ReasonCredentialInvalid, field: fieldUser + ".client-key-data", text: "is missing, but client-certificate-data is there"},
	"key-mismatch":     {reason: kubeconfig.ReasonCredentialInvalid, field: fieldUser + ".client-key-data", text: "does not belong to client-certificate-data"},
	"no-credential":    {reason: kubeconfig.ReasonCredentialMissing, field: fieldUser, text: "has no credential; give token, or client-certificate-data and client-key-data"},
	"token-header":     {reason: kubeconfig.ReasonCredentialInvalid, field: fieldUser + ".token", text: "holds characters that no token has"},
	"token-number":     {reason: kubeconfig.ReasonMalformed, field: fieldUser + ".token", text: "must be a text; put it in quotes"},

	"ca-garbage":             {reason: kubeconfig.ReasonInvalidCA, field: fieldCA, text: "holds no PEM certificate"},
	"ca-key":                 {reason: kubeconfig.ReasonInvalidCA, field: fieldCA, text: "holds no PEM certificate"},
	"http":                   {reason: kubeconfig.ReasonHTTP, field: fieldServer, text: "plain http is not allowed; use https://", flag: kubeconfig.FlagHTTP},
	"http-metadata":          {reason: kubeconfig.ReasonHTTP, field: fieldServer, text: "plain http is not allowed; use https://", flag: kubeconfig.FlagHTTP, then: kubeconfig.ReasonAddress},
	"http-upper":             {reason: kubeconfig.ReasonHTTP, field: fieldServer, text: "plain http is not allowed; use https://", flag: kubeconfig.FlagHTTP},
	"insecure":               {reason: kubeconfig.ReasonInsecureTLS, field: fieldInsecure, text: "give the cluster's CA", flag: kubeconfig.FlagInsecureTLS},
	"insecure-and-ca":        {reason: kubeconfig.ReasonInsecureTLS, field: fieldInsecure, text: "give the cluster's CA", flag: kubeconfig.FlagInsecureTLS, then: kubeconfig.ReasonMalformed},
	"insecure-yes":           {reason: kubeconfig.ReasonMalformed, field: fieldInsecure, text: "must be true or false"},
	"no-ca":                  {reason: kubeconfig.ReasonMissingCA, field: fieldCA, text: "is missing; give the cluster's CA", flag: kubeconfig.FlagMissingCA},
	"proxy":                  {reason: kubeconfig.ReasonProxy, field: fieldProxy, text: "remove proxy-url", flag: kubeconfig.FlagProxy},
	"proxy-metadata":         {reason: kubeconfig.ReasonProxy, field: fieldProxy, text: "remove proxy-url", flag: kubeconfig.FlagProxy, then: kubeconfig.ReasonAddress},
	"proxy-socks":            {reason: kubeconfig.ReasonProxy, field: fieldProxy, text: "remove proxy-url", flag: kubeconfig.FlagProxy},
	"tls-server-name-kelvin": {reason: kubeconfig.ReasonTLSServerName, field: fieldName, text: "is neither a DNS name nor an address"},
	"tls-server-name-no-ca":  {reason: kubeconfig.ReasonMissingCA, field: fieldCA, text: "is missing; give the cluster's CA", flag: kubeconfig.FlagMissingCA, then: kubeconfig.ReasonTLSServerName},

	"host-control":         refusedURL,
	"host-denied":          address("10.244.7.7 is in a denied range; use an address outside the denied ranges"),
	"host-denied-mapped":   address("10.244.7.7 is in a denied range; use an address outside the denied ranges"),
	"host-fragment":        {reason: kubeconfig.ReasonServerInvalid, field: fieldServer, text: "must not hold a query or a fragment"},
	"host-hub-endpoint":    {reason: kubeconfig.ReasonHub, field: fieldServer, text: "192.0.2.10 is the hub's own API server"},
	"host-hub-fqdn":        refusedHubName,
	"host-hub-name":        refusedHubName,
	"host-hub-nat64":       {reason: kubeconfig.ReasonHub, field: fieldServer, text: "64:ff9b::c000:20a is the hub's own API server"},
	"host-hub-own-name":    refusedHubName,
	"host-hub-short":       refusedHubName,
	"host-link-local":      address("169.254.20.10 is a link-local address; use a routable address"),
	"host-link-local-ipv6": address("fe80::1 is a link-local address; use a routable address"),
	"host-loopback-ipv6":   refusedLoopback,
	"host-loopback-name":   refusedLocal,
	"host-loopback-other":  refusedLoopback,
	"host-loopback-sub":    refusedLocal,
	"host-loopback-zero":   refusedSpelling,
	"host-missing":         {reason: kubeconfig.ReasonServerInvalid, field: fieldServer, text: "is missing; it must be https://host:port"},
	"host-multicast":       {reason: kubeconfig.ReasonAddress, field: fieldServer, text: "224.0.0.251 is an unspecified, multicast or reserved address"},
	"host-no-scheme":       refusedURL,
	"host-other-scheme":    refusedURL,
	"host-path-dots":       {reason: kubeconfig.ReasonServerInvalid, field: fieldServer, text: "has a path with unusual characters"},
	"host-path-encoded":    {reason: kubeconfig.ReasonServerInvalid, field: fieldServer, text: "has a path with unusual characters"},
	"host-percent":         refusedURL,
	"host-port-name":       refusedURL,
	"host-port-zero":       {reason: kubeconfig.ReasonServerInvalid, field: fieldServer, text: "has no valid host and port"},
	"host-query":           {reason: kubeconfig.ReasonServerInvalid, field: fieldServer, text: "must not hold a query or a fragment"},
	"host-unspecified":     {reason: kubeconfig.ReasonAddress, field: fieldServer, text: ":: is an unspecified, multicast or reserved address"},

	"host-metadata":                 refusedMetadata,
	"host-metadata-6to4":            refusedMetadata,
	"host-metadata-alibaba":         refusedMetadata,
	"host-metadata-aws-ipv6":        refusedMetadata,
	"host-metadata-aws-ipv6-long":   refusedMetadata,
	"host-metadata-azure":           refusedMetadata,
	"host-metadata-backslash":       refusedURL,
	"host-metadata-circled":         refusedSpelling,
	"host-metadata-compatible":      refusedMetadata,
	"host-metadata-decimal":         refusedSpelling,
	"host-metadata-dot":             refusedSpelling,
	"host-metadata-dots":            {reason: kubeconfig.ReasonServerInvalid, field: fieldServer, text: "has no valid host and port"},
	"host-metadata-ecs":             refusedMetadata,
	"host-metadata-fullwidth":       refusedSpelling,
	"host-metadata-google":          address("the host is the name of a cloud metadata service; use the address of a cluster"),
	"host-metadata-google-dot":      address("the host is the name of a cloud metadata service; use the address of a cluster"),
	"host-metadata-hex":             refusedSpelling,
	"host-metadata-hex-parts":       refusedSpelling,
	"host-metadata-ideographic-dot": refusedSpelling,
	"host-metadata-mapped":          refusedMetadata,
	"host-metadata-mapped-hex":      refusedMetadata,
	"host-metadata-mixed":           refusedSpelling,
	"host-metadata-nat64":           refusedMetadata,
	"host-metadata-nat64-local":     refusedMetadata,
	"host-metadata-octal":           refusedSpelling,
	"host-metadata-octal-whole":     refusedSpelling,
	"host-metadata-overflow":        refusedSpelling,
	"host-metadata-port":            refusedMetadata,
	"host-metadata-short":           refusedSpelling,
	"host-metadata-siit":            refusedMetadata,
	"host-metadata-teredo":          refusedMetadata,
	"host-metadata-userinfo":        {reason: kubeconfig.ReasonServerInvalid, field: fieldServer, text: "must not hold a user name or password; put them into the user entry"},
	"host-metadata-zeros":           refusedSpelling,
	"host-metadata-zone":            refusedSpelling,

	"host-unicode-bidi":        refusedSpelling,
	"host-unicode-cyrillic":    refusedSpelling,
	"host-unicode-dot":         refusedSpelling,
	"host-unicode-dotted-i":    refusedSpelling,
	"host-unicode-kelvin":      refusedSpelling,
	"host-unicode-percent":     refusedSpelling,
	"host-unicode-slash":       refusedSpelling,
	"host-unicode-soft-hyphen": refusedSpelling,
	"host-unicode-zero-width":  refusedSpelling,
}
