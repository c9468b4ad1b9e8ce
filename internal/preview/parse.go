// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client" //nolint:depguard // the Object interface
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/yamlfile"
)

// Object is one object that the hub would read.
type Object struct {
	// File that it is from.
	File string
	// Kind, Namespace and Name of the object.
	Kind            schema.GroupKind
	Namespace, Name string

	// Set, Team, Registration and Origin hold the object if it is one of these. For a Secret, Origin holds only the
	// metadata. Origin also holds a Namespace that says whether Secrets may register clusters there.
	Set          *hubv1.AddonSet
	Team         *hubv1.Team
	Registration *hubv1.ClusterRegistration
	Origin       *unstructured.Unstructured
	// Document is set for a ConfigMap, and for a Secret.
	Document *document.Document
	// Flux is a HelmRelease or Kustomization, the hub's or somebody else's.
	Flux client.Object
	// Source is true for a Flux source. The hub does not read it, and add-ons refer to it. Spec is that of the source.
	Source bool
	Spec   map[string]any

	// content changes when that of a Secret does. It is compared, and never told.
	content string
}

// String names the object in messages.
func (o *Object) String() string { return fmt.Sprintf("%s %s/%s", o.Kind.Kind, o.Namespace, o.Name) }

var (
	setKind          = schema.GroupKind{Group: hubv1.GroupVersion.Group, Kind: "AddonSet"}
	teamKind         = schema.GroupKind{Group: hubv1.GroupVersion.Group, Kind: "Team"}
	registrationKind = schema.GroupKind{Group: hubv1.GroupVersion.Group, Kind: "ClusterRegistration"}
	configMapKind    = schema.GroupKind{Kind: "ConfigMap"}
	namespaceKind    = schema.GroupKind{Kind: "Namespace"}
)

// Parse reads a file of YAML or JSON documents. It returns the objects that the hub would read, the number of other
// objects, and all errors, joined. A document that is not an object is a *NotObject among the errors.
// Objects of our kinds, and Flux sources, are held to the CRDs that are built in.
func Parse(name string, raw []byte) (objects []Object, ignored int, err error) {
	return ParseWith(name, raw, nil)
}

// ParseWith is Parse with the schemas of some CRDs in place of those that are built in.
func ParseWith(name string, raw []byte, schemas *crdschema.Library) (objects []Object, ignored int, err error) {
	p := parser{file: name, schemas: schemas}
	for _, d := range yamlfile.Split(raw) {
		p.document(d)
	}
	return p.objects, p.ignored, errors.Join(p.errs...)
}

type parser struct {
	file    string
	schemas *crdschema.Library
	objects []Object
	ignored int
	errs    []error
}

func (p *parser) fail(format string, args ...any) {
	p.errs = append(p.errs, errors.New(oneLine(p.file+": "+fmt.Sprintf(format, args...))))
}

func (p *parser) document(d yamlfile.Document) {
	raw, err := toJSON(d.Raw, yaml.YAMLToJSON)
	if err != nil && isTemplate(d.Raw, err) && !ours.Match(d.Raw) {
		p.ignored++
		return
	}
	if err != nil {
		p.syntax(d, err)
		return
	}
	v, err := decode(raw)
	if err != nil {
		p.syntax(d, err)
		return
	}
	if line := another(d.Raw); line > 0 {
		p.errs = append(p.errs, errors.New(oneLine(fmt.Sprintf("%s, line %d: a second object begins in one document, and only one of them "+
			"would count: write --- on a line of its own between them", p.file, d.Line+line+1))))
		return
	}
	objects := p.flatten(v, d)
	for _, u := range objects {
		if gk := u.GroupVersionKind().GroupKind(); gk == setKind || gk == teamKind || gk == registrationKind {
			// If a key has two values, the API server takes the last, and a person who reads the file takes the
			// first.
			if _, err := toJSON(d.Raw, yaml.YAMLToJSONStrict); err != nil {
				p.syntax(d, err)
				return
			}
		}
	}
	for _, u := range objects {
		p.object(u)
	}
}

// begins matches what every object has once.
var begins = regexp.MustCompile(`(?m)^(apiVersion|kind):`)

// another returns on which line of a document, counted from 0, a second object begins; 0 if there is one.
func another(raw []byte) int {
	seen := map[string]int{}
	for _, m := range begins.FindAllSubmatchIndex(raw, -1) {
		key := string(raw[m[2]:m[3]])
		if seen[key]++; seen[key] == 2 {
			return bytes.Count(raw[:m[0]], []byte("\n"))
		}
	}
	return 0
}

// isTemplate returns whether a document is valid YAML only because {{ and }} happen to be: a Helm template.
func isTemplate(raw []byte, err error) bool {
	return strings.Contains(err.Error(), "invalid map key") && bytes.Contains(raw, []byte("{{"))
}

// ours matches the kinds that the hub reads, in a document that does not parse. Charts have templates of ConfigMaps and Secrets too.
var ours = func() *regexp.Regexp {
	var kinds []string
	for _, k := range lookedAt {
		if k == configMapKind || k == origin.Secret.GroupKind {
			continue
		}
		kinds = append(kinds, regexp.QuoteMeta(k.Kind))
	}
	return regexp.MustCompile(`(?m)^kind:\s*["']?(` + strings.Join(kinds, "|") + `)["']?\s*$`)
}()

// toJSON returns a document as JSON. A JSON document may be indented by tabs, and is then not valid YAML.
func toJSON(raw []byte, convert func([]byte) ([]byte, error)) ([]byte, error) {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return trimmed, nil
	}
	return convert(raw)
}

func decode(raw []byte) (any, error) {
	var v any
	err := utiljson.Unmarshal(raw, &v)
	return v, err
}

// flatten returns the Kubernetes objects of a document: the document itself, or the items of a list. It reports
// anything else.
func (p *parser) flatten(v any, d yamlfile.Document) []*unstructured.Unstructured {
	if v == nil {
		return nil // nothing, or comments alone
	}
	m, _ := v.(map[string]any)
	kind, _ := m["kind"].(string)
	apiVersion, _ := m["apiVersion"].(string)
	if kind == "" || apiVersion == "" {
		p.errs = append(p.errs, &NotObject{File: p.file, Line: d.Line + 1 + leading(d.Raw), APIVersion: apiVersion, Kind: kind})
		return nil
	}
	items, ok := m["items"].([]any)
	if !ok || !strings.HasSuffix(kind, "List") {
		return []*unstructured.Unstructured{{Object: m}}
	}
	var out []*unstructured.Unstructured
	for _, x := range items {
		if o, ok := x.(map[string]any); ok && kind != "List" && o["kind"] == nil && o["apiVersion"] == nil {
			// The API server leaves out both in the items of most lists.
			o["kind"], o["apiVersion"] = strings.TrimSuffix(kind, "List"), apiVersion
		}
		out = append(out, p.flatten(x, d)...)
	}
	return out
}

// leading counts the lines before the first one that is not empty, a comment or a separator.
func leading(raw []byte) int {
	for i, line := range bytes.Split(raw, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.HasPrefix(line, []byte("---")) {
			return i
		}
	}
	return 0
}

func (p *parser) object(u *unstructured.Unstructured) {
	gk := u.GroupVersionKind().GroupKind()
	if flux := fluxObject(u); flux != nil {
		p.objects = append(p.objects, Object{File: p.file, Kind: gk, Namespace: flux.GetNamespace(), Name: flux.GetName(), Flux: flux})
		return
	}
	_, allows := u.GetLabels()[hubv1.RegisterSecretsLabel]
	switch gk {
	case namespaceKind:
		if !allows {
			p.ignored++
			return
		}
	default:
		if text := misnamed(u); text != "" {
			p.fail("%s %s: %s", gk.Kind, strings.Trim(u.GetNamespace()+"/"+u.GetName(), "/"), text)
			return
		}
		if !slices.Contains(lookedAt, gk) {
			p.source(u)
			p.ignored++
			return
		}
	}
	if problems := names(u.Object); len(problems) > 0 {
		p.fail("%s: %s", gk.Kind, strings.Join(problems, "; "))
		return
	}
	if u.GetNamespace() == "" && gk != namespaceKind {
		u.SetNamespace("default") // as kubectl would
	}
	o := Object{File: p.file, Kind: gk, Namespace: u.GetNamespace(), Name: u.GetName()}
	if o.Name == "" {
		p.fail("%s in namespace %s: metadata.name: is missing", gk.Kind, o.Namespace)
		return
	}
	var problems []string
	switch gk {
	case setKind:
		o.Set = &hubv1.AddonSet{}
		problems = strict(u, o.Set, p.schemas)
	case teamKind:
		o.Team = &hubv1.Team{}
		problems = strict(u, o.Team, p.schemas)
	case registrationKind:
		o.Registration = &hubv1.ClusterRegistration{}
		problems = strict(u, o.Registration, p.schemas)
	case configMapKind:
		o.Document, problems = configMap(u)
	case origin.Secret.GroupKind:
		o.Document, o.Origin, o.content, problems = secret(u)
	default:
		o.Origin, problems = u, metadata(u)
	}
	for _, text := range problems {
		p.fail("%s: %s", o.String(), text)
	}
	if len(problems) == 0 {
		p.objects = append(p.objects, o)
	}
}

// Located is an object of a file, of any kind.
type Located struct {
	// Line on which its document begins, counted from 1.
	Line int
	*unstructured.Unstructured
}

// Documents reads all objects of a file of YAML or JSON documents, also those in lists, and returns all errors, joined. A
// document that is not an object is a *NotObject among them.
func Documents(name string, raw []byte) ([]Located, error) {
	p := parser{file: name}
	var out []Located
	for _, d := range yamlfile.Split(raw) {
		asJSON, err := toJSON(d.Raw, yaml.YAMLToJSON)
		if err != nil && isTemplate(d.Raw, err) {
			continue
		}
		var v any
		if err == nil {
			v, err = decode(asJSON)
		}
		if err != nil {
			p.syntax(d, err)
			continue
		}
		for _, u := range p.flatten(v, d) {
			if problems := names(u.Object); len(problems) > 0 {
				p.fail("%s: %s", u.GetKind(), strings.Join(problems, "; "))
				continue
			}
			out = append(out, Located{d.Line + 1 + leading(d.Raw), u})
		}
	}
	return out, errors.Join(p.errs...)
}

// Strict decodes an object of the hub's own kinds into its type, and returns what does not fit.
func Strict(u *unstructured.Unstructured, into any) error {
	problems := strict(u, into, nil)
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}
