// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestWithoutConversion(t *testing.T) {
	const crd = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: xs.example.com
spec:
  conversion:
    strategy: Webhook
    webhook:

      conversionReviewVersions:
        - v1
  group: example.com
  versions:
  - name: v1
    schema:
      conversion:
        type: object
status:
  conversion: kept
`
	got := string(withoutConversion([]byte(crd)))
	from, to := strings.Index(crd, "  conversion:\n"), strings.Index(crd, "  group:")
	want := crd[:from] + crd[to:]
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again := string(withoutConversion([]byte(want))); again != want {
		t.Errorf("a CRD without a conversion became\n%s", again)
	}
}

func TestTail(t *testing.T) {
	if got := tail("a\nb\n"); got != "a\nb" {
		t.Errorf("tail of a short text: %q", got)
	}
	got := tail(strings.Repeat("x\n", 100) + "end\n")
	if strings.Count(got, "\n") != tailLines-1 || !strings.HasSuffix(got, "\nend") {
		t.Errorf("tail of a long text: %q", got)
	}
}
