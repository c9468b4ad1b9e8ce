// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/version"
	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/eventview"
	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/outdated"
	"github.com/chandler-hub/chandler/internal/rolloutview"
	"github.com/chandler-hub/chandler/test/jsonschema"
)

// documents are what commands write with -o json and -o yaml. chandler diff has a schema of its own, and chandler get writes the objects.
var documents = map[string]any{
	"explain CLUSTER":       explain.ClusterReport{},
	"explain CLUSTER ADDON": explain.AddonReport{},
	"rollout status":        rolloutview.StatusDocument{},
	"rollout history":       rolloutview.HistoryDocument{},
	"rollout plan":          command.Items[rolloutview.PlanDocument]{},
	"removals list":         command.Items[rolloutview.HeldSet]{},
	"events":                eventview.Document{},
	"get outdated":          command.Items[outdated.Item]{},
	"doctor":                doctor.Report{},
	"version":               version.Document{},
}

var outputSchema = filepath.Join("..", "..", "docs", "output.schema.json")

// TestOutputSchema: docs/output.schema.json is what the commands write. With -update it writes it.
func TestOutputSchema(t *testing.T) {
	defs := map[string]any{}
	for name, document := range documents {
		defs[name] = schemaOf(reflect.TypeOf(document))
	}
	raw, err := json.MarshalIndent(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "chandler",
		"description": "What commands write with -o json and -o yaml, by command. A later version may add fields.", "$defs": defs}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	raw = append(raw, '\n')
	if *update {
		if err := os.WriteFile(outputSchema, raw, 0o644); err != nil { //nolint:gosec // a page of the repository
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(outputSchema); err != nil || cmp.Diff(string(got), string(raw)) != "" {
		t.Errorf("docs/output.schema.json is not what the commands write: run make generate (%v)", err)
	}
}

// schemaOf returns the schema of a type: its fields by their names in JSON, and what each is about.
func schemaOf(of reflect.Type) map[string]any {
	switch {
	case of == reflect.TypeFor[time.Time](), of == reflect.TypeFor[metav1.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case of.Kind() == reflect.Pointer:
		return schemaOf(of.Elem())
	case of.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(of.Elem())}
	case of.Kind() == reflect.Struct:
		properties, required := map[string]any{}, []string{}
		addFields(of, properties, &required)
		out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
		if len(required) > 0 {
			out["required"] = required
		}
		return out
	case of.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case of.Kind() == reflect.String:
		return map[string]any{"type": "string"}
	}
	return map[string]any{"type": "integer"}
}

func addFields(of reflect.Type, properties map[string]any, required *[]string) {
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			addFields(f.Type, properties, required)
			continue
		case name == "-" || name == "" || !f.IsExported():
			continue
		}
		schema := schemaOf(f.Type)
		if about := f.Tag.Get("about"); about != "" {
			schema["description"] = about
		}
		if properties[name] = schema; options == "" {
			*required = append(*required, name)
		}
	}
}

// holds returns what holds a text to the schema of a command.
func holds(t *testing.T, command string) func(text string) error {
	t.Helper()
	raw := must.Get(json.Marshal(schemaOf(reflect.TypeOf(documents[command])))).Or(t)
	return jsonschema.Checker(t, raw)
}

// TestOutputs: what a script reads is by the schema, says what the text says, and is the same as YAML.
func TestOutputs(t *testing.T) {
	clitest.NewSmallHub(t, clitest.SmallFleet())
	for args, tc := range map[string]struct{ command, has string }{
		"explain edge3":                                       {"explain CLUSTER", `"state": "NotCompiled"`},
		"explain edge3 cert-manager":                          {"explain CLUSTER ADDON", `"addon": "cert-manager"`},
		"rollout status base --per-cluster":                   {"rollout status", `"set": "flux-system/base"`},
		"rollout history base":                                {"rollout history", `"set": "flux-system/base"`},
		"rollout plan base":                                   {"rollout plan", `"set": "flux-system/base"`},
		"rollout plan -f ../../internal/cli/rollout/testdata": {"rollout plan", `"starts": "first"`},
		"removals list":                                       {"removals list", `"items": [`},
		"removals list base":                                  {"removals list", `"set": "flux-system/base"`},
		"events edge3":                                        {"events", `"what": "InstallFailed"`},
		"events edge3 cert-manager":                           {"events", `"what": "InstallFailed"`},
		"version":                                             {"version", `"revision": `},
		"version --client --flux-namespace other":             {"version", `"client": {`},
	} {
		out, errs, code := runSmall(t, args+" -o json")
		if err := holds(t, tc.command)(out); err != nil || code != 0 || !strings.Contains(out, tc.has) {
			t.Errorf("%s: exit code %d, %v; want %s in\n%s%s", args, code, err, tc.has, out, errs)
			continue
		}
		asYAML, _, _ := runSmall(t, args+" -o yaml")
		back, err := yaml.YAMLToJSON([]byte(asYAML))
		if err != nil || normalized(t, out) != normalized(t, string(back)) {
			t.Errorf("%s: %v, and YAML is something else:\n%s", args, err, asYAML)
		}
	}
}

func normalized(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Error(err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return string(raw)
}
