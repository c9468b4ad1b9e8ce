// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"testing"

	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/preview"
)

// TestBooleans: what YAML 1.1 makes true or false of a word is told, and nothing else is.
func TestBooleans(t *testing.T) {
	const head = "apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: a, namespace: b}\n"
	said := func(line, object, path, word, becomes string) string {
		return "f.yaml, line " + line + ": " + object + ": " + path + ": " + word + " without quotes is " + becomes +
			" for kubectl apply and the hub; write \"" + word + "\" if it is text, and " + becomes + " if it is not"
	}
	for name, tc := range map[string]struct {
		in   string
		want []string
	}{
		"Values": {head + "spec:\n  variables: {a: y, b: [No, 1]}\n  addons:\n  - name: x\n    helmRelease:\n      values:\n        c: off\n",
			[]string{said("5", "AddonSet b/a", "spec.variables.a", "y", "true"), said("5", "AddonSet b/a", "spec.variables.b[0]", "No", "false"),
				said("10", "AddonSet b/a", "spec.addons[0].helmRelease.values.c", "off", "false")}},
		"Key": {head + "spec: {variables: {y: 1}}\n", []string{
			`f.yaml, line 4: AddonSet b/a: spec.variables: the key y without quotes is "true" for kubectl apply and the hub; write "y"`}},
		"Cluster": {"---\n{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: c}, spec: {variables: {on: ON}}}\n", []string{
			`f.yaml, line 2: ClusterRegistration default/c: spec.variables: the key on without quotes is "true" for kubectl apply and the hub; write "on"`,
			said("2", "ClusterRegistration default/c", "spec.variables.on", "ON", "true")}},
		"List": {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: chandler.dev/v1alpha1\n  kind: AddonSet\n  metadata: {name: a, namespace: b}\n  spec: {variables: {a: n}}\n",
			[]string{said("7", "AddonSet b/a", "spec.variables.a", "n", "false")}},
		"Alias":   {head + "spec: {variables: {a: &x yes, b: *x}}\n", []string{said("4", "AddonSet b/a", "spec.variables.a", "yes", "true")}},
		"Plain":   {head + "spec: {variables: {a: true, b: false, c: True}}\n", nil},
		"Text":    {head + "spec:\n  variables: {a: 'y', b: \"no\", c: !!str off, d: oN, e: yes please, f: null}\n  x: |\n    y\n", nil},
		"JSON":    {"{\n\t\"apiVersion\": \"chandler.dev/v1alpha1\", \"kind\": \"AddonSet\", \"spec\": {\"variables\": {\"a\": \"y\"}}\n}\n", nil},
		"Others":  {"apiVersion: example.org/v1\nkind: AddonSet\nspec: {a: y}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n", nil},
		"NoYAML":  {head + "spec: {variables: {a: [y}}\n", nil},
		"NoPart":  {"y\n---\n- y\n---\n", nil},
		"Strange": {"apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: [y]\n", []string{said("3", "AddonSet default/", "metadata[0]", "y", "true")}},
	} {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, tc.want, preview.Booleans("f.yaml", []byte(tc.in)))
		})
	}
}
