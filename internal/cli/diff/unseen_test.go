// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
)

const unseenSource = `
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: fleet, namespace: flux-system}, spec: {interval: 1m, url: "ssh://git@git.example.org/fleet", ref: {tag: v1}, include: [{repository: {name: other}}]}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: other, namespace: flux-system}, spec: {interval: 1m, url: "ssh://git@git.example.org/other", ref: {tag: w1}}}
`

const unseenSecret = "---\n{apiVersion: v1, kind: Secret, metadata: {name: pw, namespace: flux-system}, stringData: {b: hunter1}}\n"

// TestDiffUnseen: where the Flux objects stay as they are and nobody knows their objects, only what is the same on both sides is passed
// over, and counted; everything else could not be compared.
func TestDiffUnseen(t *testing.T) {
	const gone = "GitRepository flux-system/fleet is not in the files"
	for name, tc := range map[string]struct {
		old, next string
		code      int
		want      string
		args      []string
	}{
		"the same source, which nobody needs":       {old: clitest.Fleet + unseenSource, code: 0, want: "no changes on 2 clusters"},
		"no source on either side":                  {old: clitest.Fleet, code: 0, want: "note: 2 Flux objects as before, not looked into: " + gone},
		"no source, and other values":               {old: clitest.Fleet, next: strings.Replace(clitest.Fleet, `a: "1"`, `a: "2"`, 1), code: 2, want: "what it refers to is not as before, and its objects are not known: " + gone},
		"another tag that nobody can fetch":         {old: clitest.Fleet + unseenSource, next: clitest.Fleet + strings.Replace(unseenSource, "v1}", "v2}", 1), code: 2, want: "all 2 clusters: add-on policies of AddonSet flux-system/base: what it refers to is not as before"},
		"another tag of what the source takes":      {old: clitest.Fleet + unseenSource, next: clitest.Fleet + strings.Replace(unseenSource, "w1", "w2", 1), code: 2, want: "what it refers to is not as before"},
		"values that nobody can look into":          {old: clitest.Fleet + unseenSource, next: strings.Replace(clitest.Fleet, `a: "1"`, `a: "2"`, 1) + unseenSource, code: 2, want: "not everything could be compared"},
		"the source comes with the change":          {old: clitest.Fleet, next: clitest.Fleet + unseenSource, code: 2, want: gone},
		"no source, and the same as JSON":           {old: clitest.Fleet, code: 0, want: `"unseen": [`, args: []string{"--output", "json"}},
		"another tag, and there is no more time":    {old: clitest.Fleet + unseenSource, next: clitest.Fleet + strings.Replace(unseenSource, "v1}", "v2}", 1), code: 2, want: "the time was over before", args: []string{"--timeout", "1ns"}},
		"a Secret with other values":                {old: clitest.Fleet + unseenSource + unseenSecret, next: clitest.Fleet + unseenSource + strings.Replace(unseenSecret, "hunter1", "hunter2", 1), code: 2, want: "Secret flux-system/pw is not as before"},
		"a Secret with other values, and no source": {old: clitest.Fleet + unseenSecret, next: clitest.Fleet + strings.Replace(unseenSecret, "hunter1", "hunter2", 1), code: 2, want: "Secret flux-system/pw is not as before"},
		"a Secret with the same values":             {old: clitest.Fleet + unseenSource + unseenSecret, code: 0, want: "no changes on 2 clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.next == "" {
				tc.next = tc.old
			}
			old, next := filepath.Join(t.TempDir(), "a.yaml"), filepath.Join(t.TempDir(), "a.yaml")
			clitest.Write(t, old, tc.old)
			clitest.Write(t, next, tc.next)
			out, errs, code := diffed(t, append([]string{"-f", next, "--against", old, "--charts"}, tc.args...)...)
			if code != tc.code || !strings.Contains(out+errs, tc.want) || strings.Count(out+errs, "note: 2 Flux objects") > 1 || strings.Contains(out+errs, "hunter") {
				t.Errorf("ends with %d, want %d and %q:\n%s\n%s", code, tc.code, tc.want, out, errs)
			}
		})
	}
}
