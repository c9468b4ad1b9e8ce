// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
)

// Restrict makes all clients of a configuration unable to do what a page never does. They may read the kinds that pages show, order
// something of an AddonSet, and ask about the caller's own rights. It is a net below the code above it, which asks for nothing else.
func Restrict(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	prefix := ""
	if base, _, err := rest.DefaultServerUrlFor(config); err == nil {
		prefix = strings.TrimSuffix(base.Path, "/") // of a proxy for many API servers
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &restricted{next, prefix} })
	return config
}

type restricted struct {
	next   http.RoundTripper
	prefix string
}

// RoundTrip answers in the API server's place what may not be asked.
func (t *restricted) RoundTrip(r *http.Request) (*http.Response, error) {
	path, ok := strings.CutPrefix(r.URL.Path, t.prefix)
	why := elsewhere
	if ok {
		why = refused(r.Method, path)
	}
	if why != "" {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return forbidden(r, why), nil
	}
	return t.next.RoundTrip(r)
}

// readable are the kinds that a page reads. There is no Secret among them.
var readable = map[schema.GroupResource]bool{
	{Resource: "configmaps"}: true, {Resource: "events"}: true,
	{Group: hubv1.GroupVersion.Group, Resource: "clusterregistrations"}: true,
	{Group: hubv1.GroupVersion.Group, Resource: "addonsets"}:            true,
	{Group: hubv1.GroupVersion.Group, Resource: "addondeliveries"}:      true,
	{Group: hubv1.GroupVersion.Group, Resource: "teams"}:                true,
	{Group: "apps", Resource: "controllerrevisions"}:                    true,
	{Group: helmv2.GroupVersion.Group, Resource: "helmreleases"}:        true,
	{Group: kustomizev1.GroupVersion.Group, Resource: "kustomizations"}: true,
	// What clusters come from.
	{Group: origin.Kamaji.Group, Resource: "tenantcontrolplanes"}:     true,
	{Group: origin.ClusterAPI.Group, Resource: "clusters"}:            true,
	{Group: origin.ClusterProfile.Group, Resource: "clusterprofiles"}: true,
}

const elsewhere = "chandler ui does not ask for such a path"

// refused returns why a request may not be made; "" if it may. Only what is listed may.
func refused(method, path string) string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	most := map[string]int{"api": 2, "apis": 3, "version": 1}[parts[0]] // of what asks which kinds there are
	switch {
	case slices.ContainsFunc(parts, func(p string) bool { return p == "" || p == "." || p == ".." }):
		return elsewhere
	case len(parts) <= most && method == http.MethodGet:
		return ""
	case len(parts) <= most || most < 2:
		return elsewhere
	}
	of := schema.GroupResource{}
	if parts[0] == "apis" {
		of.Group = parts[1]
	}
	parts = parts[most:]
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	of.Resource = parts[0]
	named := len(parts) == 2
	rights := schema.GroupResource{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}
	switch {
	case len(parts) > 2:
		return "chandler ui does not ask for parts of objects"
	case method == http.MethodGet && readable[of]:
		return ""
	case method == http.MethodGet:
		return "chandler ui reads no " + of.String()
	case method == http.MethodPost && !named && of == rights:
		return ""
	case method == http.MethodPatch && named && of == schema.GroupResource{Group: hubv1.GroupVersion.Group, Resource: "addonsets"}:
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
