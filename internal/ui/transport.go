// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Restrict makes all clients of a configuration unable to do what a page never does: to read a Secret, or to write anything but an
// AddonSet and questions about the caller's own rights. It is a net below the code above it, which asks for none of that.
func Restrict(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &restricted{next} })
	return config
}

type restricted struct{ next http.RoundTripper }

// RoundTrip answers in the API server's place what may not be asked.
func (t *restricted) RoundTrip(r *http.Request) (*http.Response, error) {
	if why := refused(r.Method, r.URL.Path); why != "" {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return forbidden(r, why), nil
	}
	return t.next.RoundTrip(r)
}

// refused returns why a request may not be made; "" if it may.
func refused(method, path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		// Whatever the prefix of the API server: .../api/v1/secrets, .../api/v1/namespaces/NAMESPACE/secrets, and below.
		core := i >= 2 && parts[i-2] == "api" && parts[i-1] == "v1"
		inNamespace := i >= 4 && parts[i-4] == "api" && parts[i-3] == "v1" && parts[i-2] == "namespaces"
		if part == "secrets" && (core || inNamespace) {
			return "chandler ui reads no Secrets"
		}
	}
	last := parts[len(parts)-1]
	switch {
	case method == http.MethodGet:
		return ""
	case method == http.MethodPost && last == "selfsubjectaccessreviews":
		return ""
	case method == http.MethodPatch && len(parts) >= 2 && parts[len(parts)-2] == "addonsets":
		return ""
	}
	return "chandler ui writes nothing but orders to AddonSets"
}

func forbidden(r *http.Request, why string) *http.Response {
	raw, _ := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: why}) // plain strings
	return &http.Response{Status: "403 Forbidden", StatusCode: http.StatusForbidden, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(raw)), ContentLength: int64(len(raw)),
		Request: r}
}
