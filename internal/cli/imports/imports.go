// SPDX-License-Identifier: Apache-2.0

// Package imports is `chandler import`.
package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/input"
	"github.com/chandler-hub/chandler/internal/cli/resource"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/importer"
	"github.com/chandler-hub/chandler/internal/importer/folding"
	"github.com/chandler-hub/chandler/internal/importer/foreign"
	"github.com/chandler-hub/chandler/internal/importer/layout"
	"github.com/chandler-hub/chandler/internal/preview"
)

// Options are the flags of `chandler import`.
type Options struct {
	hub.Connection
	terminal.Streams
	// Args are files and folders.
	Args            []string
	FromCluster     bool
	OutputDir       string
	Namespace       string
	CrossNamespace  bool
	ClustersDir     string
	Strict          bool
	namespaceIsSaid bool
	// sources are those that objects of folders of clusters need.
	sources []*unstructured.Unstructured
	// foreign are the sets for objects of other tools.
	foreign []*foreign.Set
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "import (DIR | FILE | -)... | --from-cluster",
		Short: "Import existing Flux objects into AddonSets",
		Long: `Reads HelmReleases and Kustomizations with spec.kubeConfig, one for each cluster and add-on, and prints
AddonSets that take them over. What most clusters have becomes the set, and differences become overlays. It changes nothing.
The output starts with what to do before you apply it.

Nothing is reinstalled: import renders every set for every cluster, and leaves out what would change, with the reason.`,
		Example: `  chandler import clusters/ > addonsets.yaml
  chandler import --from-cluster --output-dir fleet/
  chandler import fleet-repository/ --clusters-dir clusters
  kubectl get helmreleases,kustomizations -A -o yaml | chandler import -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.FromCluster != (len(args) == 0) {
				return fmt.Errorf("import: write files or folders, or --from-cluster, and not both: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Streams, o.Args, o.namespaceIsSaid = terminal.Of(cmd), args, cmd.Flags().Changed("namespace")
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	cmd.ValidArgsFunction = command.FileNames
	f := cmd.Flags()
	f.BoolVar(&o.FromCluster, "from-cluster", false, "read the management cluster instead of files")
	f.StringVar(&o.OutputDir, "output-dir", "", "folder to write the sets to, as NAMESPACE/NAME.yaml (default: standard output)")
	f.StringVarP(&o.Namespace, "namespace", "n", "flux-system",
		"namespace for sets that can be in a platform namespace; others stay in that of their objects")
	f.BoolVar(&o.CrossNamespace, "cross-namespace-refs", false, "make one set of objects in several namespaces; not with Flux's "+
		"--no-cross-namespace-refs")
	f.StringVar(&o.ClustersDir, "clusters-dir", "", "folder in DIR with a folder for each cluster that runs Flux itself, such as clusters")
	f.BoolVar(&o.Strict, "strict", false, "exit code 1 if an object is left, or a note says what is not quite as it was")
	o.AddBare(cmd, from)
	o.AddShared(cmd)
	exit.Means(cmd, "the sets are written, if there are any; what is left as it is counts as well",
		"a document could not be read; with --strict, something is left, or not quite as it was")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return exit.Wrong(fmt.Errorf("import: %w", err))
	}
	in, unread, err := o.input(ctx)
	if err != nil {
		return err
	}
	in.Namespace, in.CrossNamespace, in.Now = o.Namespace, o.CrossNamespace, o.Now()
	result := folding.Fold(in)
	for _, l := range result.Left {
		terminal.Say(o.ErrOut, "left as it is: %s", l)
	}
	if remedy := result.Remedy(in.Hub); remedy != "" {
		terminal.Say(o.ErrOut, "%s", remedy)
	}
	if len(result.Sets)+len(o.foreign) == 0 {
		terminal.Say(o.ErrOut, "%s", result.Nothing())
		return o.ends(result, unread)
	}
	there := func(s *hubv1.AddonSet) bool { return s.Namespace == o.Namespace }
	if o.namespaceIsSaid && len(o.foreign) == 0 && !slices.ContainsFunc(result.Sets, there) {
		terminal.Say(o.ErrOut, "note: no set is in namespace %s (-n): what was read is delivered from its own namespace", o.Namespace)
	}
	if err := o.write(result, in.Hub); err != nil {
		return err
	}
	return o.ends(result, unread)
}

// ends says how the command ends: what is left, or not quite as it was, is a result and no failure, unless --strict says so.
func (o *Options) ends(result *folding.Result, unread int) error {
	switch {
	case unread > 0:
		return errors.New(folding.Count(unread, "document could", "documents could") + " not be read, and " +
			folding.Verb(unread, "is", "are") + " not in what was printed")
	case o.Strict && len(result.Sets)+len(o.foreign) == 0:
		return errors.New("nothing is imported, and --strict allows none of that")
	case o.Strict && len(result.Left)+len(result.Notes) > 0:
		return fmt.Errorf("%s left as %s, %s not quite as it was, and --strict allows none of that",
			folding.Count(len(result.Left), "object is", "objects are"), folding.Verb(len(result.Left), "it is", "they are"),
			folding.Count(len(result.Notes), "note says what is", "notes say what is"))
	}
	return nil
}

// check says what is wrong with the flags and arguments.
func (o *Options) check() error {
	if errs := content.IsDNS1123Label(o.Namespace); len(errs) > 0 {
		return fmt.Errorf("--namespace %q: %s", o.Namespace, strings.Join(errs, ", "))
	}
	return input.Check(input.Flag{Files: o.Args})
}

// input reads the files, or the management cluster. unread is how many documents could not be read.
func (o *Options) input(ctx context.Context) (in folding.Input, unread int, err error) {
	if !o.FromCluster {
		if err := o.Reader.Hub.Complete(hubconfig.DefaultNamespace); err != nil {
			return in, 0, err
		}
		in, unread, err = o.files(ctx)
		in.Hub = o.Reader.Hub
		return in, unread, err
	}
	if err := o.Ask(ctx); err != nil {
		return in, 0, err
	}
	in, notes, err := o.handWritten(ctx)
	for _, note := range notes {
		terminal.Say(o.ErrOut, "note: %s", note)
	}
	return in, 0, err
}

// files reads the objects of files. It tells what cannot be read, and goes on.
func (o *Options) files(ctx context.Context) (in folding.Input, unread int, err error) {
	r := input.Files{Names: o.Args, Stdin: o.In, Stderr: o.ErrOut}
	files, err := r.Read(ctx)
	if err != nil {
		return in, 0, err
	}
	reader := importer.New(o.Namespace)
	roots := o.roots(files)
	if o.ClustersDir != "" {
		for _, root := range roots {
			if err := reader.Clusters(root.Tree, filepath.ToSlash(o.ClustersDir), o.Namespace); err != nil {
				terminal.Say(o.ErrOut, "note: %v", err)
			}
		}
		o.sources = reader.Sources()
	}
	for _, file := range files {
		if reader.Fleet(filepath.ToSlash(file.Name), file.Raw) {
			continue
		}
		found, err := preview.Documents(file.Name, file.Raw)
		var not *preview.NotObject
		if file.Named || !layout.SaysHow(file.Name) || !errors.As(err, &not) {
			r.Unreadable(err, file.Named)
		}
		for _, d := range found {
			if o.ClustersDir == "" {
				r.Fail(reader.Take(filepath.ToSlash(file.Name), d))
			}
		}
	}
	if o.ClustersDir == "" {
		reader.Build(roots)
	}
	o.foreign = reader.Foreign()
	for _, note := range reader.Notes() {
		terminal.Say(o.ErrOut, "note: %s", note)
	}
	return reader.Input(), r.Errors, nil
}

// roots returns the folders that were named, with the files below them.
func (o *Options) roots(files []input.File) []importer.Root {
	var out []importer.Root
	for _, arg := range o.Args {
		root := filepath.Clean(arg)
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			continue
		}
		byPath := map[string][]byte{}
		for _, f := range files {
			if rel, err := filepath.Rel(root, f.Name); err == nil && filepath.IsLocal(rel) {
				byPath[filepath.ToSlash(rel)] = f.Raw
			}
		}
		tree, err := layout.New(root, byPath)
		if err != nil {
			terminal.Say(o.ErrOut, "note: %v", err)
			continue
		}
		out = append(out, importer.Root{Dir: filepath.ToSlash(root), Tree: tree})
	}
	return out
}

// write prints the result, or writes it into a folder.
func (o *Options) write(result *folding.Result, hub hubconfig.Shared) error {
	head := ""
	if result.Seen > 0 || len(o.foreign) == 0 {
		head = result.Head(hub)
	}
	var sources strings.Builder
	if err := resource.Export(&sources, o.sources); err != nil {
		return err
	}
	sets, err := o.sets(result)
	if err != nil {
		return err
	}
	if o.OutputDir == "" {
		text := head + sources.String()
		for _, s := range sets {
			text += "---\n" + s.text
		}
		_, err := io.WriteString(o.Out, text)
		return err
	}
	files := map[string]string{"README.md": "# Imported\n\n```\n" + head + "```\n"}
	if sources.Len() > 0 {
		files["sources.yaml"] = sources.String()
	}
	for _, s := range sets {
		files[s.path] = s.text
	}
	if err := save(o.OutputDir, files); err != nil {
		return fmt.Errorf("--output-dir: %w", err)
	}
	_, err = io.WriteString(o.Out, head)
	return err
}

// file is a set as it is written: its path in a folder, and its text.
type file struct{ path, text string }

// sets returns the sets of Flux objects, and then those for objects of other tools, with a comment.
func (o *Options) sets(result *folding.Result) (out []file, err error) {
	all, comments := slices.Clone(result.Sets), map[*hubv1.AddonSet]string{}
	for _, s := range o.foreign {
		all, comments[s.AddonSet] = append(all, s.AddonSet), s.Comment()
	}
	for _, s := range all {
		text, err := folding.YAML(s)
		if err != nil {
			return nil, err
		}
		out = append(out, file{filepath.Join(s.Namespace, s.Name+".yaml"), comments[s] + text})
	}
	return out, nil
}

// save writes files into a folder, unless one of them is there already.
func save(dir string, files map[string]string) error {
	for name := range files {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%s exists already: choose another folder, or remove it", filepath.Join(dir, name))
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
