// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

var (
	yamlBlock  = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	separator  = regexp.MustCompile(`(?m)^---\n`)
	kindOfYAML = regexp.MustCompile(`(?m)^kind: (\w+)$`)
)

// TestExamples: every object of ours that a page shows is one: each field is known, and a set compiles.
func TestExamples(t *testing.T) {
	count := 0
	for _, page := range pages(t) {
		for _, block := range yamlBlock.FindAllStringSubmatch(read(t, page), -1) {
			for _, text := range separator.Split(block[1], -1) {
				kind := kindOfYAML.FindStringSubmatch(text)
				if kind == nil {
					continue
				}
				var err error
				switch kind[1] {
				case "AddonSet":
					set := &hubv1.AddonSet{}
					if err = yaml.UnmarshalStrict([]byte(text), set); err == nil {
						_, err = compile.Compile(&set.Spec, fluxspec.Author{Namespace: set.Namespace, Platform: true})
					}
				case "ClusterRegistration":
					err = yaml.UnmarshalStrict([]byte(text), &hubv1.ClusterRegistration{})
				default:
					continue
				}
				count++
				if err != nil {
					t.Errorf("%s: %s: %v\n%s", page, kind[1], err, strings.TrimSpace(text))
				}
			}
		}
	}
	if count < 4 {
		t.Errorf("only %d examples were found", count)
	}
}
