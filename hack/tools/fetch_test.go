// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// The pins are of the versions that would be built. One of another version would not be used, and the program be built.
func TestPinsAreOfTheVersionsInUse(t *testing.T) {
	content, err := os.ReadFile("pins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var pins struct {
		Parts map[string]struct{ Version string }
	}
	if err := yaml.Unmarshal(content, &pins); err != nil {
		t.Fatal(err)
	}
	for _, part := range parts.All() {
		pin, ok := pins.Parts[part.Name]
		if !ok {
			t.Errorf("pins.yaml does not say where %s is published", part.Name)
			continue
		}
		delete(pins.Parts, part.Name)
		version, err := version(t.Context(), part)
		if err != nil {
			t.Fatal(err)
		}
		if pin.Version != "" && pin.Version != version {
			t.Errorf("pins.yaml has %s %s, and %s/go.mod %s: run `go run ./hack/tools pin %s`", part.Name, pin.Version, part.Pins, version, part.Name)
		}
	}
	for name := range pins.Parts {
		t.Errorf("pins.yaml has %s, which is no part", name)
	}
}

func TestWay(t *testing.T) {
	for value, want := range map[string]way{"": wayEither, "build": wayBuild, "download": wayDownload} {
		t.Setenv(envWay, value)
		if got, err := wayFromEnv(); err != nil || got != want {
			t.Errorf("%q gave %q, %v", value, got, err)
		}
	}
	t.Setenv(envWay, "never")
	if _, err := wayFromEnv(); err == nil {
		t.Error("an unknown way passed")
	}
}
