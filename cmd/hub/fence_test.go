// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/must"
)

// installed returns the policies and bindings of config/policies.
func installed(t *testing.T) []client.Object {
	t.Helper()
	files, err := filepath.Glob("../../config/policies/[^k]*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var out []client.Object
	for _, file := range files {
		raw := must.Read(t, file)
		for _, text := range strings.Split(string(raw), "\n---\n") {
			var o client.Object
			switch {
			case strings.Contains(text, "kind: ValidatingAdmissionPolicyBinding"):
				o = &admissionv1.ValidatingAdmissionPolicyBinding{}
			case strings.Contains(text, "kind: ValidatingAdmissionPolicy"):
				o = &admissionv1.ValidatingAdmissionPolicy{}
			default:
				continue
			}
			must.Do(t, yaml.Unmarshal([]byte(text), o))
			out = append(out, o)
		}
	}
	return out
}

// TestFence: the hub is not Ready, and says why, unless config/policies is in force.
func TestFence(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Do(t, admissionv1.AddToScheme(scheme))
	ignore := admissionv1.Ignore
	for name, tc := range map[string]struct {
		change func(o client.Object) bool // whether it stays
		says   string
	}{
		"AsItIs":    {func(client.Object) bool { return true }, ""},
		"None":      {func(client.Object) bool { return false }, "there is no ValidatingAdmissionPolicy chandler-deliveries, there is no ValidatingAdmissionPolicy chandler-generated"},
		"OneGone":   {func(o client.Object) bool { return o.GetName() != "chandler-copies-by-cluster" }, "there is no ValidatingAdmissionPolicyBinding chandler-copies-by-cluster: apply config/policies"},
		"NoOrigins": {func(o client.Object) bool { return o.GetName() != "chandler-origins" }, ""},
		"Warns": {func(o client.Object) bool {
			if b, ok := o.(*admissionv1.ValidatingAdmissionPolicyBinding); ok && b.Name == "chandler-revisions" {
				b.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
			}
			return true
		}, "ValidatingAdmissionPolicyBinding chandler-revisions does not deny"},
		"Ignores": {func(o client.Object) bool {
			if p, ok := o.(*admissionv1.ValidatingAdmissionPolicy); ok && p.Name == "chandler-generated" {
				p.Spec.FailurePolicy = &ignore
			}
			return true
		}, "ValidatingAdmissionPolicy chandler-generated has failurePolicy Ignore"},
	} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(scheme)
			for _, o := range installed(t) {
				if tc.change(o) {
					b = b.WithObjects(o)
				}
			}
			f := &fence{live: b.Build(), log: logr.Discard(), now: time.Now}
			err := f.look(t.Context())
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// TestFenceLooksAgain: policies that come are seen at once, and those that go within a minute.
func TestFenceLooksAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Do(t, admissionv1.AddToScheme(scheme))
	api, now := fake.NewClientBuilder().WithScheme(scheme).Build(), time.Now()
	f := &fence{live: api, log: logr.Discard(), now: func() time.Time { return now }}
	if f.look(t.Context()) == nil {
		t.Error("it is Ready without policies")
	}
	all := installed(t)
	for _, o := range all {
		must.Do(t, api.Create(t.Context(), o))
	}
	if err := f.look(t.Context()); err != nil {
		t.Errorf("it does not see them come: %v", err)
	}
	for _, o := range all {
		must.Do(t, api.Delete(t.Context(), o))
	}
	if err := f.look(t.Context()); err != nil {
		t.Errorf("it asks again at once: %v", err)
	}
	now = now.Add(fenceAgain)
	if f.look(t.Context()) == nil {
		t.Error("it does not see them go")
	}
}
