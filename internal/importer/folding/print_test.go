// SPDX-License-Identifier: Apache-2.0

package folding_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/importer/folding"
	"github.com/chandler-hub/chandler/internal/origin"
)

// TestHeadIsAComment: whatever people call their objects, files and clusters, each line above the sets is a comment, and shows
// what is in it.
func TestHeadIsAComment(t *testing.T) {
	named := func(file, name string) *folding.Object {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "Kustomization"}}
		u.SetName(name)
		return &folding.Object{File: file, Line: 1, Unstructured: u}
	}
	cluster := func(name string) *folding.Cluster {
		return &folding.Cluster{Name: name, Origin: name, Kind: origin.Secret}
	}
	for _, end := range []string{"\n", "\r", "\r\n", "\v", "\f", "\u0085", "\u2028", "\u2029", "\x1b[2K\x1b[1A", "\u202e"} {
		evil := "x" + end + "---" + end + "kind: Evil"
		for what, r := range map[string]*folding.Result{
			"Object":         {Left: []folding.Left{{Object: named("a.yaml", evil), Reason: "x"}}},
			"File":           {Left: []folding.Left{{Object: named(evil, "a"), Reason: "x"}}},
			"Reason":         {Left: []folding.Left{{Object: named("a.yaml", "a"), Reason: evil}}},
			"Cluster":        {Clusters: []*folding.Cluster{cluster(evil)}},
			"ClusterOfFlux":  {Clusters: []*folding.Cluster{cluster(evil)}, NotHere: true},
			"Maker":          {Makers: []folding.Maker{{Name: evil, Objects: []string{"a"}}}},
			"ObjectOfAMaker": {Makers: []folding.Maker{{Name: "Kustomization a/b", Objects: []string{evil}}}},
		} {
			t.Run(fmt.Sprintf("%s%q", what, end), func(t *testing.T) {
				text := r.Head(hub())
				for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
					if !strings.HasPrefix(line, "#") {
						t.Errorf("a line that is no comment: %q", line)
					}
				}
				if strings.ContainsAny(text, "\r\v\f\u0085\u2028\u2029\x1b\u202e") {
					t.Errorf("it holds what a terminal, or YAML, does not show as text: %q", text)
				}
				if !strings.Contains(text, "kind: Evil") {
					t.Errorf("it does not show what somebody wrote: %q", text)
				}
			})
		}
	}
}
