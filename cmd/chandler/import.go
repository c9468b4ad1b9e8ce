// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/folding"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/importer"
	"github.com/chandler-hub/chandler/internal/importer/foreign"
	"github.com/chandler-hub/chandler/internal/layout"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/preview"
)

// importOptions are the flags of `chandler import`.
type importOptions struct {
	genericiooptions.IOStreams
	flags     *genericclioptions.ConfigFlags
	reader    live.Reader
	hubConfig string
	live      bool
	output    string
	namespace string
	cross     bool
	clusters  string
	strict    bool
	// sources are those that objects of folders of clusters need.
	sources []*unstructured.Unstructured
	// foreign are the sets for objects of other tools.
	foreign []*foreign.Set
}

func importCommand() *cobra.Command {
	o := &importOptions{flags: kubectlFlags()}
	o.flags.Namespace = nil
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
			if o.live != (len(args) == 0) {
				return fmt.Errorf("import: write files or folders, or --from-cluster, and not both: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.IOStreams = genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr()}
			return o.run(cmd, args)
		},
	}
	cmd.ValidArgsFunction = fileNames
	f := cmd.Flags()
	f.BoolVar(&o.live, "from-cluster", false, "read the management cluster instead of files")
	f.StringVar(&o.output, "output-dir", "", "folder to write the sets to, as NAMESPACE/NAME.yaml (default: standard output)")
	f.StringVarP(&o.namespace, "namespace", "n", "flux-system",
		"namespace for sets that can be in a platform namespace; others stay in that of their objects")
	f.BoolVar(&o.cross, "cross-namespace-refs", false, "make one set of objects in several namespaces; not with Flux's "+
		"--no-cross-namespace-refs")
	f.StringVar(&o.clusters, "clusters-dir", "", "folder in DIR with a folder for each cluster that runs Flux itself, such as clusters")
	f.BoolVar(&o.strict, "strict", false, "exit code 1 if an object is left, or a note says what is not quite as it was")
	o.flags.AddFlags(f)
	o.reader.Hub.AddFlags(f, hubconfig.DefaultNamespace)
	addHubNamespace(f, &o.hubConfig)
	return cmd
}

func (o *importOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(args); err != nil {
		return &exit{uncertain, fmt.Errorf("import: %w", err)}
	}
	in, unread, err := o.input(cmd, args)
	if err != nil {
		return err
	}
	in.Namespace, in.CrossNamespace, in.Now = o.namespace, o.cross, time.Now()
	result := folding.Fold(in)
	for _, l := range result.Left {
		sayLine(o.ErrOut, "left as it is: %s", l)
	}
	if len(result.Sets)+len(o.foreign) == 0 {
		sayLine(o.ErrOut, "%s", result.Nothing())
		return o.ends(result, unread)
	}
	there := func(s *hubv1.AddonSet) bool { return s.Namespace == o.namespace }
	if cmd.Flags().Changed("namespace") && len(o.foreign) == 0 && !slices.ContainsFunc(result.Sets, there) {
		sayLine(o.ErrOut, "note: no set is in namespace %s (-n): what was read is delivered from its own namespace", o.namespace)
	}
	if err := o.write(result, in.Hub); err != nil {
		return err
	}
	return o.ends(result, unread)
}

// ends says how the command ends: what is left, or not quite as it was, is a result and no failure, unless --strict says so.
func (o *importOptions) ends(result *folding.Result, unread int) error {
	switch {
	case unread > 0:
		return errors.New(folding.Count(unread, "document could", "documents could") + " not be read, and " +
			folding.Verb(unread, "is", "are") + " not in what was printed")
	case o.strict && len(result.Sets)+len(o.foreign) == 0:
		return errors.New("nothing is folded, and --strict allows none of that")
	case o.strict && len(result.Left)+len(result.Notes) > 0:
		return fmt.Errorf("%s left as %s, %s not quite as it was, and --strict allows none of that",
			folding.Count(len(result.Left), "object is", "objects are"), folding.Verb(len(result.Left), "it is", "they are"),
			folding.Count(len(result.Notes), "note says what is", "notes say what is"))
	}
	return nil
}

// check says what is wrong with the flags and arguments.
func (o *importOptions) check(args []string) error {
	if errs := content.IsDNS1123Label(o.namespace); len(errs) > 0 {
		return fmt.Errorf("--namespace %q: %s", o.namespace, strings.Join(errs, ", "))
	}
	return checkFiles(namedFiles{"", args})
}

// input reads the files, or the management cluster. unread is how many documents could not be read.
func (o *importOptions) input(cmd *cobra.Command, args []string) (in folding.Input, unread int, err error) {
	if !o.live {
		if err := o.reader.Hub.Complete(hubconfig.DefaultNamespace); err != nil {
			return in, 0, err
		}
		in, unread, err = o.files(cmd.Context(), args)
		in.Hub = o.reader.Hub
		return in, unread, err
	}
	config, err := reach(cmd.Context(), o.flags)
	if err != nil {
		return in, 0, err
	}
	if o.reader.Client, err = live.Connect(config); err != nil {
		return in, 0, &exit{uncertain, err}
	}
	if err := o.reader.Ask(cmd.Context(), o.hubConfig, cmd.Flags()); err != nil {
		return in, 0, err
	}
	in, notes, err := o.reader.HandWritten(cmd.Context())
	for _, note := range notes {
		sayLine(o.ErrOut, "note: %s", note)
	}
	return in, 0, err
}

// files reads the objects of files. It tells what cannot be read, and goes on.
func (o *importOptions) files(ctx context.Context, args []string) (in folding.Input, unread int, err error) {
	r := renderOptions{files: args, stdin: o.In, stderr: o.ErrOut}
	files, err := r.read(ctx)
	if err != nil {
		return in, 0, err
	}
	reader := importer.New(o.namespace)
	roots := o.roots(args, files)
	if o.clusters != "" {
		for _, root := range roots {
			if err := reader.Clusters(root.Tree, filepath.ToSlash(o.clusters), o.namespace); err != nil {
				sayLine(o.ErrOut, "note: %v", err)
			}
		}
		o.sources = reader.Sources()
	}
	for _, file := range files {
		if reader.Fleet(filepath.ToSlash(file.name), file.raw) {
			continue
		}
		found, err := preview.Documents(file.name, file.raw)
		r.unreadable(err, file.named)
		for _, d := range found {
			if o.clusters == "" {
				r.fail(reader.Take(filepath.ToSlash(file.name), d))
			}
		}
	}
	if o.clusters == "" {
		reader.Build(roots)
	}
	o.foreign = reader.Foreign()
	for _, note := range reader.Notes() {
		sayLine(o.ErrOut, "note: %s", note)
	}
	return reader.Input(), r.errors, nil
}

// roots returns the folders that were named, with the files below them.
func (o *importOptions) roots(args []string, files []input) []importer.Root {
	var out []importer.Root
	for _, arg := range args {
		root := filepath.Clean(arg)
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			continue
		}
		byPath := map[string][]byte{}
		for _, f := range files {
			if rel, err := filepath.Rel(root, f.name); err == nil && filepath.IsLocal(rel) {
				byPath[filepath.ToSlash(rel)] = f.raw
			}
		}
		tree, err := layout.New(root, byPath)
		if err != nil {
			sayLine(o.ErrOut, "note: %v", err)
			continue
		}
		out = append(out, importer.Root{Dir: filepath.ToSlash(root), Tree: tree})
	}
	return out
}

// write prints the result, or writes it into a folder.
func (o *importOptions) write(result *folding.Result, hub hubconfig.Shared) error {
	head := ""
	if result.Seen > 0 || len(o.foreign) == 0 {
		head = result.Head(hub)
	}
	var sources strings.Builder
	if err := export(&sources, o.sources); err != nil {
		return err
	}
	if o.output == "" {
		text := head + sources.String()
		for _, s := range result.Sets {
			one, err := folding.YAML(s)
			if err != nil {
				return err
			}
			text += "---\n" + one
		}
		for _, s := range o.foreign {
			one, err := s.YAML(folding.YAML)
			if err != nil {
				return err
			}
			text += "---\n" + one
		}
		_, err := io.WriteString(o.Out, text)
		return err
	}
	files := map[string]string{"README.md": "# Imported\n\n```\n" + head + "```\n"}
	if sources.Len() > 0 {
		files["sources.yaml"] = sources.String()
	}
	for _, s := range result.Sets {
		text, err := folding.YAML(s)
		if err != nil {
			return err
		}
		files[filepath.Join(s.Namespace, s.Name+".yaml")] = text
	}
	for _, s := range o.foreign {
		text, err := s.YAML(folding.YAML)
		if err != nil {
			return err
		}
		files[filepath.Join(s.Namespace, s.Name+".yaml")] = text
	}
	if err := save(o.output, files); err != nil {
		return fmt.Errorf("--output-dir: %w", err)
	}
	_, err := io.WriteString(o.Out, head)
	return err
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
