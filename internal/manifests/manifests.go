// SPDX-License-Identifier: Apache-2.0

// Package manifests makes the objects of which an installed hub consists, for `chandler install`: what config/default builds, with the
// names of one installation. The chart makes the same; a test holds the two together.
package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/yamlfile"
)

const (
	// Name is the name of the hub's Deployment and of its ServiceAccount.
	Name = "chandler"
	// FluxNamespace is where Flux runs, unless a flag says otherwise.
	FluxNamespace = "flux-system"
	// teamsOfHub binds the policy about Teams to those of the hub's namespace.
	teamsOfHub = "chandler-teams-of-hub"
)

// Options are what differs between installations.
type Options struct {
	// Namespace is the hub's, FluxNamespace that of Flux.
	Namespace, FluxNamespace string
	// Image is the hub's, with its registry, and a tag or a digest.
	Image string
	// Args are the hub's.
	Args []string
	// Replicas is how many pods the Deployment has; 0 for what config/manager says.
	Replicas int
	// Policies has the admission policies made too.
	Policies bool
}

// Phase is when an object is applied: each phase waits for the one before, as far as there is something to wait for.
type Phase int

// The phases. A hub does not start without its CRDs, and writes nothing without its rights.
const (
	Definitions Phase = iota
	Rights
	Policies
	Surroundings
	Hub
)

// PhaseOf returns the phase of a kind.
func PhaseOf(kind string) Phase {
	switch kind {
	case "Namespace", "CustomResourceDefinition":
		return Definitions
	case "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return Rights
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return Policies
	case "Deployment":
		return Hub
	}
	return Surroundings
}

// Shared returns the flags that a hub with some arguments shares with the command line. It refuses what a hub of this version refuses.
func Shared(namespace string, args []string) (*hubconfig.Shared, error) {
	for _, a := range args {
		if !strings.HasPrefix(a, "--") || strings.ContainsAny(a, " \t\n") {
			return nil, fmt.Errorf("%q is no flag of the hub: write each as --NAME=VALUE (docs/flags.md)", a)
		}
	}
	options := &hubconfig.Options{}
	f := pflag.NewFlagSet("hub", pflag.ContinueOnError)
	f.Usage = func() {}
	options.AddFlags(f, namespace)
	if err := f.Parse(args); err != nil {
		return nil, fmt.Errorf("flags of the hub: %w (docs/flags.md)", err)
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag of the hub: write each as --NAME=VALUE (docs/flags.md)", f.Arg(0))
	}
	config, err := options.Complete(namespace)
	if err != nil {
		return nil, fmt.Errorf("flags of the hub: %w", err)
	}
	return &config.Shared, nil
}

// Build returns the objects, in the order in which they are applied. files are those of package config.
func Build(files fs.FS, o Options) ([]*unstructured.Unstructured, error) {
	o.FluxNamespace = cmp.Or(o.FluxNamespace, FluxNamespace)
	for _, ns := range []string{o.Namespace, o.FluxNamespace} {
		if errs := validation.IsDNS1123Label(ns); len(errs) > 0 {
			return nil, fmt.Errorf("namespace %q: %s", ns, strings.Join(errs, ", "))
		}
	}
	shared, err := Shared(o.Namespace, o.Args)
	if err != nil {
		return nil, err
	}
	objects, err := build(files)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, u := range objects {
		phase := PhaseOf(u.GetKind())
		if phase == Policies && !o.Policies {
			continue
		}
		if u.GetKind() != "CustomResourceDefinition" {
			u.Object = o.rename("", u.Object).(map[string]any)
		}
		if phase == Hub {
			if err := o.complete(u); err != nil {
				return nil, err
			}
		}
		if u.GetName() == teamsOfHub {
			out = append(out, teams(u, shared.PlatformNamespaces, o.Namespace)...)
		}
		out = append(out, u)
	}
	slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(PhaseOf(a.GetKind()), PhaseOf(b.GetKind())),
			cmp.Compare(rank(a.GetKind()), rank(b.GetKind())), strings.Compare(a.GetName(), b.GetName()))
	})
	return out, nil
}

// rank orders the kinds of a phase: what others refer to goes first.
func rank(kind string) int {
	return slices.Index([]string{"Namespace", "CustomResourceDefinition",
		"ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}, kind) + 1
}

// build returns what config/default builds.
func build(files fs.FS) ([]*unstructured.Unstructured, error) {
	memory := filesys.MakeFsInMemory()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return memory.WriteFile("/"+path, raw)
	})
	if err != nil {
		return nil, fmt.Errorf("read the hub's manifests: %w", err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/default")
	if err != nil {
		return nil, fmt.Errorf("build the hub's manifests: %w", err)
	}
	var out []*unstructured.Unstructured
	for _, r := range built.Resources() {
		raw, err := r.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("build the hub's manifests: %w", err)
		}
		object := map[string]any{}
		if err := yaml.Unmarshal(raw, &object); err != nil {
			return nil, fmt.Errorf("build the hub's manifests: %w", err)
		}
		out = append(out, &unstructured.Unstructured{Object: whole(object).(map[string]any)})
	}
	return out, nil
}

// CRDs returns our CRDs.
func CRDs(files fs.FS) (out []apiextensionsv1.CustomResourceDefinition, err error) {
	err = Each(files, "crd/bases/*.yaml", func(_ string, text []byte) error {
		crd := apiextensionsv1.CustomResourceDefinition{}
		err := yaml.Unmarshal(text, &crd)
		out = append(out, crd)
		return err
	})
	return out, err
}

// Each calls take with each object of some of the files.
func Each(files fs.FS, pattern string, take func(kind string, text []byte) error) error {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return fmt.Errorf("read the manifests that are built in: %w", err)
	}
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("read %s, which is built in: %w", name, err)
		}
		for _, document := range yamlfile.Split(raw) {
			kind := metav1.TypeMeta{}
			if err := yaml.Unmarshal(document.Raw, &kind); err != nil {
				return fmt.Errorf("read %s, which is built in: %w", name, err)
			}
			if kind.Kind == "" {
				continue // what is before the first ---
			}
			if err := take(kind.Kind, document.Raw); err != nil {
				return fmt.Errorf("read %s, which is built in: %w", name, err)
			}
		}
	}
	return nil
}

// whole turns numbers without a fraction into integers, as an API server sends them.
func whole(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	}
	return value
}

// rename puts this installation's names in the place of those that config/ has. key is that of the value in its map.
func (o Options) rename(key string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		isNamespace := v["kind"] == "Namespace"
		for k := range v {
			v[k] = o.rename(k, v[k])
		}
		if m, ok := v["metadata"].(map[string]any); ok && isNamespace {
			m["name"] = o.Namespace
		}
	case []any:
		for i := range v {
			v[i] = o.rename("", v[i])
		}
	case string:
		switch {
		case key == "namespace" && v == hubconfig.DefaultNamespace:
			return o.Namespace
		case key == "kubernetes.io/metadata.name" && v == FluxNamespace:
			return o.FluxNamespace
		}
		return strings.NewReplacer("system:serviceaccount:"+hubconfig.DefaultNamespace+":", "system:serviceaccount:"+o.Namespace+":",
			"'system:serviceaccounts:"+FluxNamespace+"'", "'system:serviceaccounts:"+o.FluxNamespace+"'").Replace(v)
	}
	return value
}

// teams returns the bindings by which the policy about Teams has those of other platform namespaces.
func teams(hub *unstructured.Unstructured, platform []string, namespace string) (out []*unstructured.Unstructured) {
	for _, ns := range platform {
		if ns == namespace || ns == FluxNamespace {
			continue
		}
		u := hub.DeepCopy()
		u.SetName("chandler-teams-" + ns)
		_ = unstructured.SetNestedField(u.Object, ns, "spec", "paramRef", "namespace") // there is one to set
		out = append(out, u)
	}
	return out
}

// complete writes the image and the arguments into the Deployment.
func (o Options) complete(u *unstructured.Unstructured) error {
	if o.Replicas > 0 {
		if err := unstructured.SetNestedField(u.Object, int64(o.Replicas), "spec", "replicas"); err != nil {
			return err
		}
	}
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(u.Object, path...)
	if err != nil || len(containers) != 1 {
		return errors.Join(err, errors.New("the hub's Deployment has not one container"))
	}
	c := containers[0].(map[string]any)
	if o.Image != "" {
		c["image"] = o.Image
	}
	args := o.Args
	if o.FluxNamespace != FluxNamespace {
		args = append([]string{"--flux-namespace=" + o.FluxNamespace}, args...) // whose shards the hub learns; a later flag wins
	}
	if len(args) > 0 {
		if err := unstructured.SetNestedStringSlice(c, args, "args"); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(u.Object, containers, path...)
}
