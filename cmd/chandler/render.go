// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/snapshot"
)

// renderOptions are the flags of `chandler render`.
type renderOptions struct {
	files          []string
	crds           string
	preview        preview.Options
	stdin          io.Reader
	stdout, stderr io.Writer
	errors         int
	// flagSet is that of the command, and hubNamespace is the one that it names.
	flagSet      *pflag.FlagSet
	hubNamespace string
}

func renderCommand() *cobra.Command {
	o := &renderOptions{}
	cmd := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Render the Flux objects of a fleet from files",
		Long: `Reads AddonSets, ClusterRegistrations, origins (TenantControlPlanes, Cluster API Clusters, labelled
Secrets), ConfigMaps and Secrets from files, and prints every Flux object that the hub would make. It needs no cluster and
no network.

What only a running cluster knows (UID, version, endpoint, nodes) comes from the status of a ClusterRegistration in the
files. If a value needs what is not there, it gets a placeholder, and a warning says where to write it.`,
		Example: `  chandler render -f fleet/ --cluster tenant1 --explain
  kubectl get addonsets,clusterregistrations,configmaps -A -o yaml | chandler render -f -`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.stdin, o.stdout, o.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			o.preview.Now, o.flagSet = time.Now(), cmd.Flags()
			if err := checkFiles(namedFiles{"-f", o.files}); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	addFiles(f, &o.files)
	f.StringVar(&o.preview.Cluster, "cluster", "", "only this cluster, NAME or NAMESPACE/NAME")
	f.BoolVar(&o.preview.Strict, "strict", false, "treat warnings as errors")
	f.BoolVar(&o.preview.Explain, "explain", false, "show where each field and variable comes from")
	f.StringVar(&o.crds, "crds", "", crdsUsage)
	o.preview.AddFlags(f, hubconfig.DefaultNamespace)
	addHubNamespace(f, &o.hubNamespace)
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err)
	}
	return cmd
}

// addFiles adds the flag that names files.
func addFiles(f *pflag.FlagSet, files *[]string) {
	f.StringArrayVarP(files, "filename", "f", nil, "file, folder (with its subfolders) or - for standard input; may be repeated")
}

// run prints everything that can be rendered, also if there are errors. Then it returns how many there are.
func (o *renderOptions) run(ctx context.Context) error {
	files, err := o.read(ctx)
	if err != nil {
		return err
	}
	objects := o.objects(files)
	if err := o.adopt(objects); err != nil {
		return err
	}
	if o.preview.Schemas, err = readCRDs(o.crds); err != nil {
		return err
	}
	fleet := o.fleet(objects)
	o.booleans(files)
	report := preview.Render(fleet, o.preview)
	for _, text := range report.Errors {
		o.fail(errors.New(text))
	}
	for _, text := range report.Warnings {
		sayLine(o.stderr, "warning: %s", text)
	}
	for _, text := range report.Notes {
		sayLine(o.stderr, "note: %s", text)
	}
	if err := preview.Print(o.stdout, report, o.preview.Explain); err != nil {
		return err
	}
	return o.result()
}

// fleet makes the fleet of the objects of files, and reports what is wrong with them.
func (o *renderOptions) fleet(objects []preview.Object) *preview.Fleet {
	o.preview.Incomplete = o.errors > 0
	fleet, err := preview.NewFleet(objects, o.preview.Origins)
	o.fail(err)
	return fleet
}

// adopt takes the flags that nobody wrote from what the hub has published, if that is in the files.
func (o *renderOptions) adopt(objects []preview.Object) error {
	if err := adopt(o.flagSet, o.hubNamespace, objects); err != nil {
		return err
	}
	return o.preview.Complete(o.hubNamespace)
}

// adopt takes the flags that nobody wrote, and no other objects gave, from what the hub has published.
func adopt(flags *pflag.FlagSet, hubNamespace string, objects []preview.Object) error {
	if err := hubconfig.Adopt(flags, preview.Published(objects, hubNamespace)); err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", hubNamespace, hubconfig.ConfigMapName, err)
	}
	return nil
}

// objects parses files, and reports what is wrong with them.
func (o *renderOptions) objects(files []input) []preview.Object {
	var objects []preview.Object
	for _, in := range files {
		if s, err := snapshot.Read(in.name, in.raw); s != nil && err == nil {
			sayLine(o.stderr, "warning: %s is an export of a fleet (left out): chandler diff reads it by --fleet", in.name)
			continue
		}
		found, _, err := preview.ParseWith(in.name, in.raw, o.preview.Schemas)
		o.unreadable(err, in.named)
		objects = append(objects, found...)
	}
	return objects
}

// booleans warns of words in files that somebody may have taken for texts.
func (o *renderOptions) booleans(files []input) {
	for _, in := range files {
		for _, text := range preview.Booleans(in.name, in.raw) {
			if o.preview.Strict {
				o.fail(errors.New(text))
			} else {
				sayLine(o.stderr, "warning: %s", text)
			}
		}
	}
}

// result returns how many errors there were.
func (o *renderOptions) result() error {
	switch o.errors {
	case 0:
		return nil
	case 1:
		return errors.New("1 error")
	}
	return fmt.Errorf("%d errors", o.errors)
}

// unreadable prints the problems of a file. A document in a folder that was not meant for the hub gives a warning,
// and no error.
func (o *renderOptions) unreadable(err error, named bool) {
	for _, e := range joined(err) {
		var not *preview.NotObject
		if errors.As(e, &not) && !named && !not.Meant() {
			sayLine(o.stderr, "warning: %v (left out)", e)
			continue
		}
		o.fail(e)
	}
}

// joined returns the errors that an error joins.
func joined(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return several.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// fail prints an error, or each of several that are joined.
func (o *renderOptions) fail(err error) {
	for _, e := range joined(err) {
		o.errors++
		sayLine(o.stderr, "error: %v", e)
	}
}

// sayLine prints one visible line. Names of files and objects in it are what other people chose.
func sayLine(out io.Writer, format string, args ...any) {
	fmt.Fprintln(out, excerpt.Visible(fmt.Sprintf(format, args...)))
}

// input is a file that has been read.
type input struct {
	name string
	raw  []byte
	// named is true if the user named this file itself, and not a folder that contains it.
	named bool
}

// read reads every file once. If a file cannot be read, it reports an error and goes on with the others. It returns an error if the command
// is being ended.
func (o *renderOptions) read(ctx context.Context) ([]input, error) {
	var out []input
	seen := map[string]bool{}
	add := func(name string, named bool, read func() ([]byte, error)) {
		if seen[name] {
			return
		}
		seen[name] = true
		raw, err := unlessEnded(ctx, read)
		if err != nil {
			if ctx.Err() == nil {
				o.fail(err)
			}
			return
		}
		out = append(out, input{name, raw, named})
	}
	for _, name := range o.files {
		if name == "-" {
			add("standard input", true, func() ([]byte, error) { return io.ReadAll(o.stdin) })
			continue
		}
		name = filepath.Clean(name)
		info, err := os.Stat(name)
		switch {
		case err != nil:
			o.fail(err)
		case info.IsDir():
			names, left, err := list(name)
			o.fail(err)
			for _, n := range left {
				sayLine(o.stderr, "warning: %s is no regular file (left out)", n)
			}
			for _, n := range names {
				add(n, false, func() ([]byte, error) { return os.ReadFile(n) })
			}
		default:
			add(name, true, func() ([]byte, error) { return os.ReadFile(name) })
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w while files were read: nothing is done", errEnded)
	}
	return out, nil
}

// errEnded is why a command that somebody ends has not done what it is for.
var errEnded error = endedBySignal{}

type endedBySignal struct{}

func (endedBySignal) Error() string { return "ended by a signal" }
func (endedBySignal) Unwrap() error { return context.Canceled }

// unlessEnded does what may wait for ever, such as reading a pipe, and waits no longer than the command goes on.
func unlessEnded[T any](ctx context.Context, do func() (T, error)) (out T, err error) {
	done := make(chan struct{})
	var of T
	var failed error
	go func() {
		defer close(done)
		of, failed = do()
	}()
	select {
	case <-done:
		return of, failed
	case <-ctx.Done():
		return out, errEnded
	}
}

var extensions = []string{".yaml", ".yml", ".json"}

// list returns the regular files of a folder and its folders, sorted, with links to such in the folder, and what is left out: reading a
// pipe would wait for ever. A link that leads out of the folder is an error.
func list(dir string) (names, left []string, err error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, nil, err
	}
	var outside []error
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains(extensions, filepath.Ext(path)) {
			return err
		}
		name := filepath.Join(dir, path)
		target, err := filepath.EvalSymlinks(filepath.Join(root, path))
		if err != nil {
			outside = append(outside, err)
			return nil
		}
		info, err := os.Stat(target)
		switch within, _ := filepath.Rel(root, target); {
		case err != nil:
			outside = append(outside, err)
		case !filepath.IsLocal(within):
			outside = append(outside, fmt.Errorf("%s is a link that leads out of the folder, to %s: name that file too, or remove the link",
				name, target))
		case info.Mode().IsRegular():
			names = append(names, name)
		default:
			left = append(left, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, left, errors.Join(append(outside, err)...)
}
