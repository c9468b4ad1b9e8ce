// SPDX-License-Identifier: Apache-2.0

package live

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"strings"
	"syscall"
)

// Unreached says that there is no API server at an address that lets the caller in, and why. All commands say it by this one line.
type Unreached struct {
	Address, Why string
	cause        error
}

func (u *Unreached) Error() string {
	return "no hub at " + u.Address + ": " + u.Why + "; is the kubeconfig right?"
}

func (u *Unreached) Unwrap() error { return u.cause }

// reason says in a few words why a request got no answer.
func reason(err error) string {
	var silent errSilent
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var network net.Error
	switch {
	case errors.As(err, &silent):
		return silent.Error()
	case errors.As(err, &name) && name.IsNotFound:
		return "there is no address for the name " + name.Name
	case errors.As(err, &name):
		return "the name " + name.Name + " cannot be looked up: " + name.Err
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses the connection"
	case errors.As(err, &certificate):
		return "its certificate is not trusted: " + certificate.Err.Error()
	case errors.As(err, &authority):
		return "its certificate is not trusted: " + authority.Error()
	case errors.As(err, &network) && network.Timeout():
		return "it does not answer"
	case strings.Contains(err.Error(), "malformed HTTP"), strings.Contains(err.Error(), "HTTP response to HTTPS client"),
		errors.As(err, new(tls.RecordHeaderError)):
		return "it answers, but not as a Kubernetes API"
	}
	var request *url.Error
	if errors.As(err, &request) { // without the address, which the line has
		err = request.Err
	}
	return err.Error()
}
