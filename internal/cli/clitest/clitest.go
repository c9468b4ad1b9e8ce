// SPDX-License-Identifier: Apache-2.0

// Package clitest runs commands in tests, with hubs that they ask, and holds what they print against golden files.
package clitest

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/golden"
)

// Update is the flag -update. Write writes a file, and the folders that it is in.
var (
	Update = golden.Update
	Write  = golden.Write
)

// RegistrationFile and SetFile are files of one cluster, and of one set that goes there.
const (
	RegistrationFile = "apiVersion: chandler.dev/v1alpha1\nkind: ClusterRegistration\nmetadata: {name: a}\n" +
		"spec: {kubeConfig: {secretRef: {name: a}}}\n"
	SetFile = "apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: a}\nspec: {selectAll: true, addons: [" +
		"{name: a, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}]}\n"
)

// At returns the factory of commands for which it is some time; the time of the clock without one.
func At(now time.Time) *factory.Factory {
	f := factory.New()
	if !now.IsZero() {
		f.Now = func() time.Time { return now }
	}
	return f
}

// Root returns the program with some commands.
func Root(commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{Use: "chandler", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(commands...)
	root.SetIn(strings.NewReader(""))
	exit.Finish(root)
	return root
}

// Run runs the program with some commands, and returns what it prints on both streams, and how it ends.
func Run(commands []*cobra.Command, args ...string) (out, errs string, err error) {
	root := Root(commands...)
	var o, e strings.Builder
	root.SetArgs(args)
	root.SetOut(&o)
	root.SetErr(&e)
	err = root.Execute()
	return o.String(), e.String(), err
}

// Ends runs a program, and returns what it prints on both streams, with the error behind the rest, and its exit code.
func Ends(root *cobra.Command, args ...string) (out, errs string, code int) {
	var o, e strings.Builder
	root.SetArgs(args)
	root.SetOut(&o)
	root.SetErr(&e)
	root.SetIn(strings.NewReader(""))
	if err := root.Execute(); err != nil {
		code = exit.Uncertain
		var decided *exit.Error
		if errors.As(err, &decided) {
			code = decided.Code
		}
		e.WriteString(err.Error())
	}
	return o.String(), e.String(), code
}

// Output is written by a command, and read by a test at the same time.
type Output struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *Output) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *Output) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Golden compares a text with a file of testdata. With -update it writes the file.
func Golden(t *testing.T, file, got string) {
	t.Helper()
	golden.Compare(t, filepath.Join("testdata", filepath.FromSlash(file)), got)
}

// Words splits a line as a shell does that knows single quotes.
func Words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}
