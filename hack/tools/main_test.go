// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// What a real node needs takes minutes to build: only who names it gets it, and the Makefile names all of it.
func TestNodeIsForThoseWhoNameIt(t *testing.T) {
	all, err := selected(nil)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^NODE_PARTS = (.*)$`).FindSubmatch(content)
	if line == nil {
		t.Fatal("the Makefile has no NODE_PARTS")
	}
	names := strings.Fields(string(line[1]))
	for _, part := range parts.Node() {
		if slices.ContainsFunc(all, func(i item) bool { return i.name == part.Name }) {
			t.Errorf("`make tools` builds %s", part.Name)
		}
		if !slices.Contains(names, part.Name) {
			t.Errorf("`make tools-node` does not build %s", part.Name)
		}
	}
	if named, err := selected(names); err != nil || len(named) != len(parts.Node()) {
		t.Errorf("`make tools-node` builds %d parts (%v), want %d", len(named), err, len(parts.Node()))
	}
}
