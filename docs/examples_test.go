// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/preview"
	teams "github.com/chandler-hub/chandler/internal/team"
)

var (
	fenced     = regexp.MustCompile("(?ms)^ *```([^\n`]*)\n(.*?)^ *```$")
	heredoc    = regexp.MustCompile(`(?ms)<<'?EOF'?\n(.*?)^EOF$`)
	fragmentOf = regexp.MustCompile(`^yaml \{fragment of=(\w+)((?:\.\w+)*)\}$`)
	separator  = regexp.MustCompile(`(?m)^---\n`)
	looksLike  = regexp.MustCompile(`(?m)^(apiVersion|kind|spec|metadata|- ?\{?name): `)
)

// TestExamples tries every block of YAML of every page as what it claims to be: whole objects, or a fragment of one, which its fence
// says, as in ```yaml {fragment of=AddonSet.spec}.
func TestExamples(t *testing.T) {
	count := 0
	for _, page := range pages(t) {
		text := read(t, page)
		for _, at := range fenced.FindAllStringSubmatchIndex(text, -1) {
			where := fmt.Sprintf("%s, line %d", page, 1+strings.Count(text[:at[0]], "\n"))
			n, err := tryBlock(t, text[at[2]:at[3]], text[at[4]:at[5]])
			count += n
			if err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
	}
	if count < 16 {
		t.Errorf("only %d examples were found", count)
	}
}

// TestExamplesDoNotCompete: who has the quickstart's set and follows a page is not told that the one lost its add-on to the other.
func TestExamplesDoNotCompete(t *testing.T) {
	owner := map[string]string{}
	for _, page := range append(pages(t), "../examples/quickstart/addonset.yaml") {
		text := read(t, page)
		var docs []string
		if strings.HasSuffix(page, ".yaml") {
			docs = separator.Split(text, -1)
		}
		for _, block := range fenced.FindAllStringSubmatch(text, -1) {
			if block[1] == "yaml" {
				docs = append(docs, separator.Split(block[2], -1)...)
			}
			for _, here := range heredoc.FindAllStringSubmatch(block[2], -1) {
				docs = append(docs, here[1])
			}
		}
		for _, doc := range docs {
			set := &hubv1.AddonSet{}
			if !strings.Contains(doc, "kind: AddonSet") || yaml.Unmarshal([]byte(doc), set) != nil {
				continue
			}
			for i := range set.Spec.Addons {
				addon := set.Spec.Addons[i].Name
				if other := owner[addon]; other != "" && other != set.Name {
					t.Errorf("%s: add-on %s of set %s is also one of set %s", page, addon, set.Name, other)
				}
				owner[addon] = set.Name
			}
		}
	}
	if len(owner) < 3 {
		t.Errorf("only %d add-ons were found", len(owner))
	}
}

// tryBlock tries what a fence holds, and returns how many objects that was.
func tryBlock(t *testing.T, info, text string) (int, error) {
	switch fragment := fragmentOf.FindStringSubmatch(info); {
	case fragment != nil:
		whole, err := completed(fragment[1], strings.Split(strings.TrimPrefix(fragment[2], "."), "."), text)
		if err == nil {
			err = try(t, whole)
		}
		return 1, err
	case info == "yaml {rules}":
		_, err := origin.ParseRules("rules.yaml", []byte(text))
		return 1, err
	case info == "yaml":
		return tryAll(t, text)
	case strings.HasPrefix(info, "yaml"), strings.HasPrefix(info, "yml"), strings.HasPrefix(info, "json"):
		return 0, fmt.Errorf("the fence says %q; it is yaml, yaml {rules} or yaml {fragment of=KIND.PATH}", info)
	}
	count := 0
	for _, here := range heredoc.FindAllStringSubmatch(text, -1) {
		n, err := tryAll(t, here[1])
		count += n
		if err != nil {
			return count, err
		}
	}
	if count == 0 && looksLike.MatchString(text) && !strings.Contains(text, "$ ") {
		return 0, errors.New("this looks like YAML, and its fence does not say so")
	}
	return count, nil
}

func tryAll(t *testing.T, text string) (int, error) {
	docs := separator.Split(text, -1)
	for _, doc := range docs {
		if err := try(t, doc); err != nil {
			return 0, err
		}
	}
	return len(docs), nil
}

// try tries a whole object.
func try(t *testing.T, text string) error {
	var is metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &is); err != nil {
		return err
	}
	what := is.APIVersion + " " + is.Kind
	check := map[string]func(*testing.T, string) error{
		"chandler.dev/v1alpha1 AddonSet":                trySet,
		"chandler.dev/v1alpha1 ClusterRegistration":     tryRegistration,
		"chandler.dev/v1alpha1 Team":                    tryTeam,
		"kustomize.config.k8s.io/v1beta1 Kustomization": tryKustomization,
		"rbac.authorization.k8s.io/v1 ClusterRole":      func(_ *testing.T, s string) error { return yaml.UnmarshalStrict([]byte(s), &rbacv1.ClusterRole{}) },
		"notification.toolkit.fluxcd.io/v1beta3 Alert":  func(_ *testing.T, s string) error { return yaml.UnmarshalStrict([]byte(s), &alert{}) },
	}[what]
	if check == nil {
		return fmt.Errorf("%q is nothing that this test can try; teach it, or say in the fence what it is a fragment of", what)
	}
	if err := check(t, text); err != nil {
		return fmt.Errorf("%s: %w\n%s", what, err, strings.TrimSpace(text))
	}
	return nil
}

// ofOurs is what all our kinds are held to: the CRD takes it, every field is known, and `chandler render` sees it.
func ofOurs(text, kind string, into any) error {
	objects, _, err := preview.Parse("here", []byte(text))
	if err == nil && len(objects) != 1 {
		err = fmt.Errorf("chandler render sees %d objects", len(objects))
	}
	return errors.Join(crdschema.Ours(kind).Refuses([]byte(text)), yaml.UnmarshalStrict([]byte(text), into), err)
}

func trySet(t *testing.T, text string) error {
	set := &hubv1.AddonSet{}
	if err := ofOurs(text, "AddonSet", set); err != nil {
		return err
	}
	_, err := compile.Compile(&set.Spec, fluxspec.Author{Namespace: set.Namespace, Platform: true})
	return err
}

func tryRegistration(t *testing.T, text string) error {
	return ofOurs(text, "ClusterRegistration", &hubv1.ClusterRegistration{})
}

func tryTeam(t *testing.T, text string) error {
	team := &hubv1.Team{}
	if err := ofOurs(text, "Team", team); err != nil {
		return err
	}
	return teams.Check(team)
}

// alert is as much of Flux's Alert as we show.
type alert struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		ProviderRef   struct{ Name string } `json:"providerRef"`
		EventSeverity string                `json:"eventSeverity"`
		EventSources  []struct {
			Kind, Name  string
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"eventSources"`
	} `json:"spec"`
}

// kustomization is as much of kustomize's as we show.
type kustomization struct {
	metav1.TypeMeta `json:",inline"`
	Resources       []string `json:"resources"`
	Components      []string `json:"components"`
	Images          []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
	} `json:"images"`
	Patches []struct {
		Target struct{ Kind, Name string } `json:"target"`
		Patch  string                      `json:"patch"`
	} `json:"patches"`
}

// tryKustomization applies each patch to every object of config/ that it is for, and wants one at least.
func tryKustomization(t *testing.T, text string) error {
	k := &kustomization{}
	if err := yaml.UnmarshalStrict([]byte(text), k); err != nil {
		return err
	}
	for _, r := range k.Resources {
		if _, in, ours := strings.Cut(r, "chandler//"); ours {
			in, _, _ = strings.Cut(in, "?")
			if _, err := os.Stat(filepath.Join("..", in, "kustomization.yaml")); err != nil {
				return err
			}
		}
	}
	for _, p := range k.Patches {
		raw, err := yaml.YAMLToJSON([]byte(p.Patch))
		if err != nil {
			return err
		}
		name, err := regexp.Compile("^(" + p.Target.Name + ")$")
		if err != nil {
			return err
		}
		deletes := strings.Contains(string(raw), `"$patch":"delete"`)
		patch, err := jsonpatch.DecodePatch(raw)
		if err != nil && !deletes {
			return err
		}
		count := 0
		for _, object := range shipped(t) {
			if object.Kind != p.Target.Kind || p.Target.Name != "" && !name.MatchString(object.Name) {
				continue
			}
			if count++; deletes {
				continue
			}
			changed, err := patch.Apply(object.raw)
			if err == nil && jsonpatch.Equal(changed, object.raw) {
				err = errors.New("nothing changes")
			}
			if err != nil {
				return fmt.Errorf("the patch of %s %s: %w", object.Kind, object.Name, err)
			}
		}
		if count == 0 {
			return fmt.Errorf("no object of config/ is a %s %s", p.Target.Kind, p.Target.Name)
		}
	}
	return nil
}

// object is one of those that config/ installs.
type object struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	raw               []byte
}

func shipped(t *testing.T) []object {
	t.Helper()
	files := must.Get(filepath.Glob("../config/*/*.yaml")).Or(t)
	var out []object
	for _, file := range files {
		for _, text := range separator.Split(read(t, file), -1) {
			o := object{}
			err := yaml.Unmarshal([]byte(text), &o)
			if err == nil {
				o.raw, err = yaml.YAMLToJSON([]byte(text))
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			out = append(out, o)
		}
	}
	return out
}

// completed makes a whole object of a fragment: what is not shown is the least that makes it one.
func completed(kind string, path []string, fragment string) (string, error) {
	var value any
	if err := yaml.Unmarshal([]byte(fragment), &value); err != nil {
		return "", err
	}
	for _, name := range slices.Backward(path) {
		if name != "" {
			value = map[string]any{name: value}
		}
	}
	object, ok := value.(map[string]any)
	if !ok {
		return "", fmt.Errorf("a fragment of %s is an object", kind)
	}
	if kind == "Kustomization" {
		object["apiVersion"], object["kind"] = "kustomize.config.k8s.io/v1beta1", kind
	} else {
		object["apiVersion"], object["kind"], object["metadata"] = "chandler.dev/v1alpha1", kind, map[string]any{"name": "a", "namespace": "flux-system"}
	}
	if spec, _ := object["spec"].(map[string]any); spec != nil {
		complete(kind, spec)
	}
	raw, err := yaml.Marshal(object)
	return string(raw), err
}

func complete(kind string, spec map[string]any) {
	switch kind {
	case "ClusterRegistration":
		spec["kubeConfig"] = map[string]any{"secretRef": map[string]any{"name": "a"}}
	case "AddonSet":
		if spec["clusterSelector"] == nil {
			spec["selectAll"] = true
		}
		if spec["addons"] == nil {
			spec["addons"] = addonsOf(spec["overlays"])
		}
	}
}

// addonsOf returns an add-on for each that an overlay changes, and one if none changes any.
func addonsOf(overlays any) []any {
	list, _ := overlays.([]any)
	if len(list) == 0 {
		list = []any{map[string]any{"addons": []any{map[string]any{"name": "a"}}}}
	}
	var out []any
	for _, o := range list {
		overlay, _ := o.(map[string]any)
		addons, _ := overlay["addons"].([]any)
		for _, a := range addons {
			addon, _ := a.(map[string]any)
			out = append(out, map[string]any{"name": addon["name"], "helmRelease": map[string]any{
				"chartRef": map[string]any{"kind": "OCIRepository", "name": "a"}, "values": map[string]any{"tolerations": []any{}},
			}})
		}
	}
	return out
}

// TestBlocks: what the pages' blocks are held to, shown by some that are wrong.
func TestBlocks(t *testing.T) {
	const set = "apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: a}\nspec: "
	for name, tc := range map[string]struct{ info, text, says string }{
		"NoAPIVersion":     {"yaml", "kind: ClusterRegistration\nmetadata: {name: a}\n", "nothing that this test can try"},
		"UnmarkedFragment": {"yaml", "overlays: []\n", "nothing that this test can try"},
		"UnknownField":     {"yaml", set + "{selectAll: true, adons: []}\n", "adons"},
		"DoesNotCompile":   {"yaml", set + "{selectAll: true, addons: [{name: a, helmRelease: {intervall: 1m}}]}\n", "intervall"},
		"CRDRefuses":       {"yaml", set + "{selectAll: true, addons: [{name: A_B, manifests: {objects: []}}]}\n", "A_B"},
		"SecondDocument":   {"yaml", set + "{selectAll: true, addons: [{name: a, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}]}\n---\nkind: x\n", "nothing that this test can try"},
		"Fragment":         {"yaml {fragment of=AddonSet.spec}", "addons: [{name: a, manifests: {}, dependson: []}]\n", "dependson"},
		"FragmentOfOther":  {"yaml {fragment of=ClusterRegistration.spec}", "overlays: []\n", "overlays"},
		"PatchOfNothing":   {"yaml {fragment of=Kustomization}", "patches: [{target: {kind: Deployment, name: other}, patch: '[]'}]\n", "no object of config/"},
		"PatchMisses":      {"yaml {fragment of=Kustomization}", "patches: [{target: {kind: Deployment, name: chandler}, patch: '[{op: replace, path: /spec/nothing, value: 1}]'}]\n", "the patch of Deployment chandler"},
		"Heredoc":          {"console", "$ kubectl apply -f - <<'EOF'\nkind: AddonSet\nEOF\n", "nothing that this test can try"},
		"NotSaid":          {"", "apiVersion: v1\nkind: Secret\n", "looks like YAML"},
		"OtherInfo":        {"yaml title=x", "a: 1\n", "the fence says"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tryBlock(t, tc.info, tc.text); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}
