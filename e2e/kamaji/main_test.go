// SPDX-License-Identifier: Apache-2.0

// Package kamaji holds the end-to-end tests with the real Kamaji operator. The environment variable CHANDLER_PLATFORM
// says what they run on: local (the default) means processes of this machine, node means pods on a real node of it (package
// test/node), kind means a kind cluster that `make e2e-kind` has set up.
package kamaji

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandler-hub/chandler/internal/hubscheme"
)

// EnvPlatform names the platform.
const EnvPlatform = "CHANDLER_PLATFORM"

// platforms start what the tests run on, by the value of EnvPlatform.
var platforms = map[string]func(context.Context, *runtime.Scheme) (Platform, error){
	"local": startLocal,
	"node":  startNode,
	"kind":  startKind,
}

// platform is shared by all tests: each has namespaces and tenants of its own.
var platform Platform

func TestMain(m *testing.M) {
	if os.Getenv(EnvPlatform) == "node" {
		os.Exit(onNode(tests{m}))
	}
	os.Exit(tests{m}.Run())
}

// tests are all of the package, on a platform of their own.
type tests struct{ *testing.M }

func (m tests) Run() int {
	log.SetLogger(logr.Discard())
	name := os.Getenv(EnvPlatform)
	if name == "" {
		name = "local"
	}
	start := platforms[name]
	if start == nil {
		fmt.Fprintf(os.Stderr, "$%s is %q, and there is no such platform\n", EnvPlatform, name)
		return 2
	}
	var err error
	if platform, err = start(context.Background(), hubscheme.New()); err != nil {
		fmt.Fprintf(os.Stderr, "start the platform %s: %v\n", name, err)
		return 1
	}
	code := m.M.Run()
	denied, err := platform.Denied()
	if err != nil || len(denied) > 0 {
		fmt.Fprintf(os.Stderr, "--- FAIL: config/rbac does not let the hub do what it tried: %v %v\n", denied, err)
		code = 1
	}
	if err := platform.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}
