// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	generator "github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/resource"
)

// The characters that stand around the name of a variable whose value is not known. They are for private use: nobody writes
// them, and YAML passes them on.
const (
	holeBegins = "\ue000"
	holeEnds   = "\ue001"
)

// Hole is the text that stands for the value of a variable that is not known.
func Hole(name string) string { return holeBegins + name + holeEnds }

// Holes finds them. Its first group is the name.
var Holes = regexp.MustCompile(holeBegins + `([_[:alpha:]][_[:alnum:]]*)` + holeEnds)

// ConfigMaps returns the data of a ConfigMap; false if it is not known.
type ConfigMaps func(namespace, name string) (data map[string]string, known bool)

// substitution is what spec.postBuild of a Kustomization says, with what its ConfigMaps hold written into it.
type substitution struct {
	known  map[string]string
	always bool
	// unread are the objects that hold variables too, and were not read.
	unread []string
}

// substitutionOf reads the variables of a Kustomization; nil if it has no spec.postBuild.
func substitutionOf(k *kustomizev1.Kustomization, configMaps ConfigMaps) *substitution {
	if k.Spec.PostBuild == nil {
		return nil
	}
	s := &substitution{known: map[string]string{}, always: k.GetSubstituteStrategy() == kustomizev1.SubstituteStrategyAlways}
	for _, ref := range k.Spec.PostBuild.SubstituteFrom {
		var data map[string]string
		known := false
		if ref.Kind == "ConfigMap" && configMaps != nil {
			data, known = configMaps(k.Namespace, ref.Name)
		}
		if !known {
			s.unread = append(s.unread, fmt.Sprintf("%s %s/%s", ref.Kind, k.Namespace, ref.Name))
		}
		for name, value := range data {
			s.known[name] = value
		}
	}
	for name, value := range k.Spec.PostBuild.Substitute {
		s.known[name] = value
	}
	return s
}

// used finds a variable and what follows its name: an operator, or nothing.
var used = regexp.MustCompile(`\$\{([_[:alpha:]][_[:alnum:]]*)([^}]*)\}`)

// apply replaces the variables in an object, by the function that Flux replaces them with. A variable that nobody sets, or
// that may be in an object that was not read, becomes a hole.
func (s *substitution) apply(res *resource.Resource) error {
	raw, err := res.AsYAML()
	if err != nil {
		return err
	}
	values := map[string]any{}
	for name, value := range s.known {
		values[name] = value
	}
	for _, m := range used.FindAllStringSubmatchIndex(string(raw), -1) {
		name, operator := string(raw[m[2]:m[3]]), string(raw[m[4]:m[5]])
		escaped := m[0] > 0 && raw[m[0]-1] == '$'
		defaults := strings.HasPrefix(operator, ":=") || strings.HasPrefix(operator, ":-") || strings.HasPrefix(operator, "=") ||
			strings.HasPrefix(operator, "-")
		if _, known := values[name]; known || escaped || defaults && len(s.unread) == 0 {
			continue
		}
		if operator != "" && !defaults {
			return fmt.Errorf("${%s%s} has an operator, and the variable's value is not known", name, operator)
		}
		values[name] = Hole(name)
	}
	if len(values) == 0 && !s.always && len(s.unread) == 0 {
		return nil
	}
	u := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"postBuild": map[string]any{"substitute": values}}}}
	_, err = generator.SubstituteVariables(context.Background(), nil, u, res, generator.SubstituteWithDryRun(true),
		generator.SubstituteWithAlways(true), generator.SubstituteWithStrict(true))
	return err
}
