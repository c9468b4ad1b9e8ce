// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import "errors"

// Reasons of an [Error], fit for the reason of a condition.
const (
	// ReasonKeyNotFound: the Secret lacks the key that was asked for, or every well-known one.
	ReasonKeyNotFound = "KeyNotFound"
	// ReasonEmpty: the value is empty or whitespace.
	ReasonEmpty = "KubeConfigEmpty"
	// ReasonTooLarge: the value exceeds MaxSize.
	ReasonTooLarge = "KubeConfigTooLarge"
	// ReasonKeyTooLarge: a certificate or a private key is so large that a handshake takes for ever.
	ReasonKeyTooLarge = "KeyTooLarge"
	// ReasonMalformed: the value is not YAML or JSON of the shape of a kubeconfig.
	ReasonMalformed = "KubeConfigMalformed"
	// ReasonAmbiguous: YAML that two parsers may read differently (aliases, tags, duplicate keys, several documents).
	ReasonAmbiguous = "KubeConfigAmbiguous"
	// ReasonUnknownField: the cluster or user in use has a field whose meaning is not known here.
	ReasonUnknownField = "UnknownField"
	// ReasonContext: no current context, or it leads to no cluster or no user.
	ReasonContext = "ContextNotFound"
	// ReasonExec: an exec or auth-provider plugin.
	ReasonExec = "ExecForbidden"
	// ReasonFileReference: a path to a file of the hub.
	ReasonFileReference = "FileReferenceForbidden"
	// ReasonImpersonation: as, as-uid, as-groups or as-user-extra.
	ReasonImpersonation = "ImpersonationForbidden"
	// ReasonInsecureTLS: insecure-skip-tls-verify.
	ReasonInsecureTLS = "InsecureTLSForbidden"
	// ReasonProxy: proxy-url.
	ReasonProxy = "ProxyForbidden"
	// ReasonHTTP: a server without TLS.
	ReasonHTTP = "PlainHTTPForbidden"
	// ReasonServerInvalid: the server is not a plain https://host[:port][/path].
	ReasonServerInvalid = "ServerInvalid"
	// ReasonTLSServerName: tls-server-name where no CA pins the server, or not a name.
	ReasonTLSServerName = "TLSServerNameForbidden"
	// ReasonMissingCA: no certificate-authority-data.
	ReasonMissingCA = "CAMissing"
	// ReasonInvalidCA: certificate-authority-data does not parse.
	ReasonInvalidCA = "CAInvalid"
	// ReasonAddress: the server is, or resolves to, an address that no workload cluster has.
	ReasonAddress = "AddressForbidden"
	// ReasonHub: the server is the hub's own API server.
	ReasonHub = "TargetIsHub"
	// ReasonCredentialMissing: the user has neither token nor client certificate nor password.
	ReasonCredentialMissing = "CredentialMissing"
	// ReasonCredentialInvalid: the user's credential does not parse, or its parts do not match.
	ReasonCredentialInvalid = "CredentialInvalid"
)

// Error says why a kubeconfig was refused. It never holds bytes of the Secret (see the package comment) and may be shown
// in a condition, an event or a log as it is.
type Error struct {
	// Reason is one of the Reason constants, CamelCase.
	Reason string
	// Field is the path into the kubeconfig, entries by index: users[0].user.exec. Empty if the whole is meant.
	Field string
	// Message says what is wrong and what to do, including the flag that lifts the rule if there is one.
	Message string
}

// Error returns the field and the message in one line.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// unusable returns err, which a field's value brought, as an Error with a reason and a message. If a rule refuses the value, what the
// rule says comes first.
func unusable(err error, reason, field, message string) error {
	var refused *Error
	if errors.As(err, &refused) {
		return &Error{Reason: refused.Reason, Field: field, Message: refused.Message}
	}
	return &Error{Reason: reason, Field: field, Message: message}
}

// malformed is short for the most common kind of Error.
func malformed(field, message string) error {
	return &Error{Reason: ReasonMalformed, Field: field, Message: message}
}
