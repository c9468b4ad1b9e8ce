// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fenceAgain is for how long it counts that the policies are there.
const fenceAgain = time.Minute

// required are the bindings of config/policies without which people can write what only the hub may, and the policies that they bind. The
// policies of origins, namespaces and Teams protect what people have asked for: an installation may do without these.
var required = map[string]string{
	"chandler-generated":         "chandler-generated",
	"chandler-generated-charts":  "chandler-generated",
	"chandler-generated-sources": "chandler-generated",
	"chandler-copies":            "chandler-copies",
	"chandler-copies-by-cluster": "chandler-copies",
	"chandler-deliveries":        "chandler-deliveries",
	"chandler-revisions":         "chandler-deliveries",
	"chandler-registrations":     "chandler-registrations",
}

// fence is a check of /readyz: the admission policies are in force. The hub does not undo all that people can do without them.
type fence struct {
	live client.Reader
	log  logr.Logger
	now  func() time.Time

	mu     sync.Mutex
	said   string // why the hub is not Ready; "" if it may be
	looked time.Time
}

// Ready is a check of /readyz.
func (f *fence) Ready(r *http.Request) error { return f.look(r.Context()) }

// look returns what is missing. It asks the API server again when a minute has passed, or when something was missing.
func (f *fence) look(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.said == "" && !f.looked.IsZero() && f.now().Sub(f.looked) < fenceAgain {
		return nil
	}
	missing, err := f.missing(ctx)
	if err != nil {
		missing = err.Error()
	}
	if missing != f.said && missing != "" {
		f.log.Error(errors.New(missing), "this hub is not Ready without its admission policies")
	} else if missing != f.said {
		f.log.Info("the admission policies are there")
	}
	f.said, f.looked = missing, f.now()
	if missing == "" {
		return nil
	}
	return errors.New(missing)
}

const withoutPolicies = "apply config/policies of the hub's version, or start the hub with --without-policies"

// missing returns which policy is not in force; "" if all are.
func (f *fence) missing(ctx context.Context) (string, error) {
	policies, bindings := &admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{}
	for kind, into := range map[string]runtime.Object{"ValidatingAdmissionPolicyList": policies,
		"ValidatingAdmissionPolicyBindingList": bindings} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(kind))
		if err := f.live.List(ctx, list); meta.IsNoMatchError(err) {
			return "this API server has no " + strings.TrimSuffix(kind, "List") +
				", which Kubernetes 1.30 and newer have: start the hub with --without-policies", nil
		} else if err != nil {
			return "", fmt.Errorf("list the admission policies (config/rbac of the hub's version gives the right): %w", err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), into); err != nil {
			return "", fmt.Errorf("read the admission policies: %w", err)
		}
	}
	var out []string
	for binding, policy := range required {
		if why := inForce(policies.Items, bindings.Items, binding, policy); why != "" && !slices.Contains(out, why) {
			out = append(out, why)
		}
	}
	if len(out) == 0 {
		return "", nil
	}
	slices.Sort(out)
	return strings.Join(out, ", ") + ": " + withoutPolicies, nil
}

// inForce returns why a binding does not have its policy deny anything; "" if it does.
func inForce(policies []admissionv1.ValidatingAdmissionPolicy, bindings []admissionv1.ValidatingAdmissionPolicyBinding,
	binding, policy string) string {
	p := slices.IndexFunc(policies, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == policy })
	b := slices.IndexFunc(bindings, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Name == binding })
	switch {
	case p < 0:
		return "there is no ValidatingAdmissionPolicy " + policy
	case policies[p].Spec.FailurePolicy != nil && *policies[p].Spec.FailurePolicy != admissionv1.Fail:
		return "ValidatingAdmissionPolicy " + policy + " has failurePolicy Ignore"
	case b < 0:
		return "there is no ValidatingAdmissionPolicyBinding " + binding
	case bindings[b].Spec.PolicyName != policy:
		return "ValidatingAdmissionPolicyBinding " + binding + " binds another policy"
	case !slices.Contains(bindings[b].Spec.ValidationActions, admissionv1.Deny):
		return "ValidatingAdmissionPolicyBinding " + binding + " does not deny"
	}
	return ""
}
