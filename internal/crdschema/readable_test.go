// SPDX-License-Identifier: Apache-2.0

package crdschema_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/must"
)

// TestWhatIsTakenCanBeRead: the API server takes times by format that Go does not read. One object that the hub cannot read is a list that it
// cannot read, and with it the informer of the whole fleet.
func TestWhatIsTakenCanBeRead(t *testing.T) {
	schema := crdschema.Ours("ClusterRegistration")
	const pause, override = "pause: {until: %q}", "overrides: [{name: web, exclude: true, until: %q}]"
	for until, good := range map[string]bool{
		"2026-12-01T00:00:00Z": true, "2026-12-01T00:00:00.5+02:00": true,
		"2026-12-01t00:00:00z": false, "2026-12-01T00:00:00+99:99": false, "2026-12-01T00:00:60Z": false, "2026-12-01T00:00:00x5Z": false, "2026-12-01": false, "": false,
	} {
		for _, field := range []string{pause, override} {
			raw, err := yaml.YAMLToJSON(fmt.Appendf(nil, "{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: x, namespace: tenant}, spec: {kubeConfig: {secretRef: {name: x}}, "+field+"}}", until))
			if err != nil {
				t.Fatal(err)
			}
			taken := schema.Refuses(raw) == nil
			read := json.Unmarshal(raw, &hubv1.ClusterRegistration{}) == nil
			if taken && !read || taken != good {
				t.Errorf("%q in %s is taken: %t, and can be read: %t", until, field, taken, read)
			}
		}
	}
}

// TestAmountsCanBeRead: a number or percentage of a wave is a 32-bit number in Go, and any number on the API server.
func TestAmountsCanBeRead(t *testing.T) {
	schema := crdschema.Ours("AddonSet")
	for amount, good := range map[string]bool{
		"1": true, "2147483647": true, `"25%"`: true, "2147483648": false, "-2147483649": false, "-1": false, "1e30": false, "1.5": false, "{}": false,
	} {
		for _, field := range []string{"size", "maxConcurrency", "maxFailures"} {
			raw, err := yaml.YAMLToJSON(fmt.Appendf(nil, "{apiVersion: chandler.dev/v1alpha1, kind: AddonSet, metadata: {name: x, namespace: tenant}, spec: {selectAll: true, rollout: {waves: [{name: first, %s: %s}]}, addons: [{name: x, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}]}}]}}", field, amount))
			if err != nil {
				t.Fatal(err)
			}
			invalid := schema.Refuses(raw)
			read := json.Unmarshal(raw, &hubv1.AddonSet{}) == nil
			if taken := invalid == nil; taken && !read || taken != good {
				t.Errorf("%s: %s is taken: %t (%v), and can be read: %t", field, amount, taken, invalid, read)
			}
		}
	}
}

// TestTimesHaveARule: each time, duration and amount of a spec is checked by an expression, which reads it as Go does.
func TestTimesHaveARule(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d CRDs, %v", len(files), err)
	}
	found := 0
	for _, file := range files {
		raw := must.Read(t, file)
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema struct{ Properties struct{ Spec any } }
					}
				}
			}
		}
		must.Do(t, yaml.Unmarshal(raw, &crd))
		var look func(path string, v any)
		look = func(path string, v any) {
			schema, _ := v.(map[string]any)
			if schema["format"] == "date-time" || schema["format"] == "duration" || schema["x-kubernetes-int-or-string"] == true {
				if found++; schema["x-kubernetes-validations"] == nil {
					t.Errorf("%s: %s has no rule", filepath.Base(file), path)
				}
			}
			if schema["items"] != nil {
				look(path+"[]", schema["items"])
			}
			properties, _ := schema["properties"].(map[string]any)
			for name := range properties {
				look(path+"."+name, properties[name])
			}
		}
		for _, v := range crd.Spec.Versions {
			look("spec", v.Schema.OpenAPIV3Schema.Properties.Spec)
		}
	}
	if found < 2 {
		t.Errorf("%d times found", found)
	}
}
