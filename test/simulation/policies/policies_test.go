// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"
)

var (
	hub     = &user.DefaultInfo{Name: "system:serviceaccount:chandler-system:chandler"}
	flux    = &user.DefaultInfo{Name: "system:serviceaccount:flux-system:helm-controller", Groups: []string{"system:serviceaccounts:flux-system"}}
	cluster = &user.DefaultInfo{Name: "system:kube-controller-manager"}
	jane    = &user.DefaultInfo{Name: "jane", Groups: []string{user.AllAuthenticated}}
	rescuer = &user.DefaultInfo{Name: "jane", Groups: []string{"chandler.dev:break-glass"}}
)

const (
	release = `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: flux-system, name: w1-hello-0, labels: {chandler.dev/cluster-key: k}, finalizers: [f]}, spec: {chart: a}}`
	theirs  = `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: flux-system, name: w1-hello-0}, spec: {chart: a}}`
	given   = `{apiVersion: chandler.dev/v1alpha1, kind: AddonDelivery, metadata: {namespace: flux-system, name: base-w1}, spec: {revisionName: a}}`
	cp      = `{apiVersion: kamaji.clastix.io/v1alpha1, kind: TenantControlPlane, metadata: {namespace: fleet, name: w1, labels: {chandler.dev/drain-before-deletion: "true"}}}`
	plainCP = `{apiVersion: kamaji.clastix.io/v1alpha1, kind: TenantControlPlane, metadata: {namespace: fleet, name: w1}}`
	space   = `{apiVersion: v1, kind: Namespace, metadata: {name: team}}`
	source  = `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: shop, name: git}, spec: {url: "https://elsewhere.example.org/x"}}`
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestDenied: who may do what, as docs/policies.md says it. That an API server decides so is for e2e.
func TestDenied(t *testing.T) {
	p, err := Load("../../../config/policies")
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(release, "chart: a", "chart: b", 1)
	for name, tc := range map[string]struct {
		by            user.Info
		subresource   string
		before, after string
		says          string
		allowed       bool
	}{
		"the hub edits a release":                                {by: hub, before: release, after: edited, allowed: true},
		"somebody edits a release":                               {by: jane, before: release, after: edited, says: "only suspend is yours to change, not chart"},
		"somebody suspends a release":                            {by: jane, before: release, after: strings.Replace(release, "chart: a", "chart: a, suspend: true", 1), allowed: true},
		"somebody deletes a release":                             {by: jane, before: release, says: "It goes by itself"},
		"the group deletes a release":                            {by: rescuer, before: release, allowed: true},
		"the cluster deletes a release":                          {by: cluster, before: release, allowed: true},
		"Flux takes its finalizer off":                           {by: flux, before: release, after: strings.Replace(release, ", finalizers: [f]", "", 1), allowed: true},
		"Flux edits a release":                                   {by: flux, before: release, after: edited, says: "only suspend"},
		"somebody labels a release":                              {by: jane, before: theirs, after: release, says: "would be taken for one"},
		"somebody deletes his own release":                       {by: jane, before: theirs, allowed: true},
		"somebody makes a delivery":                              {by: jane, after: given, says: "would be a decision of the hub"},
		"the group makes a delivery":                             {by: rescuer, after: given, says: "would be a decision of the hub"},
		"somebody writes a delivery's status":                    {by: jane, subresource: "status", before: given, after: given, says: "only the hub writes"},
		"somebody deletes a control plane that is drained first": {by: jane, before: cp, says: "may have add-ons on its cluster"},
		"somebody deletes another control plane":                 {by: jane, before: plainCP, allowed: true},
		"somebody deletes a namespace with a set":                {by: jane, before: space, says: "holds AddonSet base"},
		"somebody writes a source that a Team may not have":      {by: jane, after: source, says: "is not for Team flux-system/shop"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Request{User: tc.by, Subresource: tc.subresource, Object: object(t, tc.after), Old: object(t, tc.before), Operation: admission.Update}
			switch {
			case r.Old == nil:
				r.Operation = admission.Create
			case r.Object == nil:
				r.Operation = admission.Delete
			}
			r.Kind = r.it().GroupVersionKind()
			got := p.Denied(r, func(gk schema.GroupKind, namespace string) []map[string]any {
				switch {
				case gk.Kind == "AddonSet" && namespace == "team":
					return []map[string]any{object(t, `{metadata: {namespace: team, name: base}}`)}
				case gk.Kind == "Team" && namespace == "flux-system":
					return []map[string]any{object(t, `{metadata: {namespace: flux-system, name: shop}, spec: {sources: {allow: ["https://git.example.org/shop/*"]}}}`)}
				}
				return nil
			})
			if tc.allowed != (got == "") || !strings.Contains(got, tc.says) {
				t.Errorf("denied: %q", got)
			}
		})
	}
}
