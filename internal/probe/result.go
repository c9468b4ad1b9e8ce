// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Reasons of a Failure, fit for the reason of a condition.
const (
	// ReasonForbiddenAddress: the server's name resolved to an address that the rules forbid.
	ReasonForbiddenAddress = "ForbiddenAddress"
	// ReasonNameNotFound: the server's name does not resolve.
	ReasonNameNotFound = "NameNotFound"
	// ReasonDialFailed: no connection, for example no route to the host, or the resolver failed.
	ReasonDialFailed = "DialFailed"
	// ReasonConnectionRefused: the host is there, but nothing listens on the port.
	ReasonConnectionRefused = "ConnectionRefused"
	// ReasonDialTimeout: no connection within Options.Dial.
	ReasonDialTimeout = "DialTimeout"
	// ReasonTLSFailed: the TLS handshake failed; the message says whether it was the CA, the name, the dates.
	ReasonTLSFailed = "TLSFailed"
	// ReasonTimedOut: connected, but no complete answer within Options.Total.
	ReasonTimedOut = "TimedOut"
	// ReasonConnectionLost: the connection broke before the answer was complete.
	ReasonConnectionLost = "ConnectionLost"
	// ReasonUnauthorized: the server does not accept the credential (401).
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden: the server knows the user, who may not read what the probe needs (403).
	ReasonForbidden = "Forbidden"
	// ReasonServerError: the server answered 5xx or 429.
	ReasonServerError = "ServerError"
	// ReasonNotReady: the server answers, but has no namespace kube-system yet.
	ReasonNotReady = "NotReady"
	// ReasonNotKubernetes: the answer is not one of a Kubernetes API server.
	ReasonNotKubernetes = "NotKubernetes"
	// ReasonCanceled: the caller gave up. The Pool never reports it.
	ReasonCanceled = "Canceled"
)

// Failure says why a cluster did not answer.
type Failure struct {
	// Reason is one of the Reason constants.
	Reason string
	// Message is one line for humans, the same for the same cause. It holds no response body and no credential.
	Message string
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// Result is the outcome of one probe.
type Result struct {
	// Time is when the probe ended, by the hub's clock.
	Time time.Time
	// Err is nil if the cluster answered everything that is needed: version and identity.
	Err *Failure
	// Version is gitVersion of /version, such as v1.34.1. It may be known although Err is set.
	Version string
	// ClusterUID is the UID of the namespace kube-system, the identity of a cluster.
	ClusterUID types.UID
	// Nodes is the number of nodes, if NodesKnown. A credential without the right to list nodes is no failure.
	Nodes      int32
	NodesKnown bool
	// Failures counts the failures in a row up to this one; 0 after an answer. Only the Pool sets it.
	Failures int
	// FailingSince is the Time of the first of these failures; zero after an answer. Only the Pool sets it.
	FailingSince time.Time
}

// Young returns whether a failure is typical of a cluster that is still starting: its API server does not listen yet,
// or has not made its own roles.
func Young(reason string) bool { return quick(reason) || reason == ReasonConnectionRefused }

// Refuses returns whether a failure is that of a cluster that answers, and refuses the credential.
func Refuses(reason string) bool { return reason == ReasonUnauthorized || reason == ReasonForbidden }
