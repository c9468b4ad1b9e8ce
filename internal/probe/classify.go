// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// How far an attempt got.
const (
	phaseConnect int32 = iota
	phaseTLS
	phaseRequest
	phaseResponse
)

// requestFailure turns an error of net/http into a Failure, without repeating its text, which may quote the server.
func (a *attempt) requestFailure(err error) *Failure {
	at := a.phase.Load()
	if at > phaseTLS && a.over() { // net/http may have begun a request anew, with another connection
		return a.timeoutFailure(at)
	}
	var failure *Failure
	if errors.As(err, &failure) {
		return failure
	}
	if failure = tlsFailure(err); failure != nil {
		return failure
	}
	if isTimeout(err) || a.over() {
		return a.timeoutFailure(at)
	}
	broken := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
	switch {
	case at == phaseConnect:
		return &Failure{Reason: ReasonDialFailed, Message: "no connection to the server through the proxy"}
	case at == phaseTLS:
		return &Failure{Reason: ReasonTLSFailed, Message: "the server ended the TLS handshake"}
	case broken:
		return &Failure{Reason: ReasonConnectionLost, Message: "the server closed the connection before its answer was complete"}
	}
	return &Failure{Reason: ReasonNotKubernetes, Message: "the server does not answer in HTTP"}
}

// isTimeout covers contexts, deadlines of connections, and the timeouts of net/http.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// over tells whether the attempt's time is up. The deadline of the connection may strike before the context's timer, and
// net/http does not always say that it was one.
func (a *attempt) over() bool {
	deadline, ok := a.ctx.Deadline()
	return a.ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

func (a *attempt) timeoutFailure(at int32) *Failure {
	switch at {
	case phaseConnect:
		return &Failure{Reason: ReasonDialTimeout, Message: fmt.Sprintf("no connection to the server within %s", a.opts.Total)}
	case phaseTLS:
		return &Failure{Reason: ReasonTimedOut, Message: fmt.Sprintf("the server accepts connections, but did not finish the TLS handshake "+
			"within %s", a.opts.Total)}
	case phaseRequest:
		return &Failure{Reason: ReasonTimedOut, Message: fmt.Sprintf("the server accepts connections, but sent no answer within %s",
			a.opts.Total)}
	}
	return &Failure{Reason: ReasonTimedOut, Message: fmt.Sprintf("the server's answer was not complete within %s", a.opts.Total)}
}

// tlsFailure says plainly what is wrong with the server's certificate, or nil if err is about something else.
func tlsFailure(err error) *Failure {
	fail := func(message string) *Failure { return &Failure{Reason: ReasonTLSFailed, Message: message} }
	var (
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		verify  *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		remote  *net.OpError
	)
	switch {
	case errors.As(err, &unknown):
		return fail("the server's certificate was not signed by the CA in the kubeconfig")
	case errors.As(err, &host):
		return fail("the server's certificate is not valid for the host name or address in the kubeconfig")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		if invalid.Cert != nil && time.Now().Before(invalid.Cert.NotBefore) {
			return fail("the server's certificate is not valid yet; compare the clocks")
		}
		return fail("the server's certificate has expired")
	case errors.As(err, &verify), errors.As(err, &invalid):
		return fail("the server's certificate is not acceptable")
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return fail("the server does not speak TLS on this port")
	case errors.As(err, &remote) && remote.Op == "remote error": // how crypto/tls reports an alert; the text is from its fixed table
		return fail("the server refused the TLS connection (" + remote.Err.Error() + "); the client certificate may have expired")
	}
	return nil
}

// statusFailure judges the status of a response. what completes "may not …".
func statusFailure(code int, what string) *Failure {
	switch {
	case code == http.StatusOK, code == http.StatusCreated:
		return nil
	case code == http.StatusUnauthorized:
		return &Failure{Reason: ReasonUnauthorized, Message: "the server does not accept the credential (401); it may have expired or been " +
			"replaced"}
	case code == http.StatusForbidden:
		return &Failure{Reason: ReasonForbidden, Message: "the credential's user may not " + what + " (403); grant the right in the cluster"}
	case code == http.StatusNotFound && what == tokenRequest:
		return &Failure{Reason: ReasonNotReady, Message: "the server does not have the ServiceAccount (404)"}
	case code == http.StatusNotFound && what != "read /version":
		return &Failure{Reason: ReasonNotReady, Message: "the server has no namespace kube-system yet (404)"}
	case code == http.StatusTooManyRequests || code >= 500 && code <= 599:
		return &Failure{Reason: ReasonServerError, Message: fmt.Sprintf("the server answers HTTP %d", code)}
	case code >= 300 && code <= 399:
		return &Failure{Reason: ReasonNotKubernetes, Message: fmt.Sprintf("the server redirects (HTTP %d), which an API server never does", code)}
	}
	return &Failure{Reason: ReasonNotKubernetes, Message: fmt.Sprintf("the server answers HTTP %d where Kubernetes would not", code)}
}
