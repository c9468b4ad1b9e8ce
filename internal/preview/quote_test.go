// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestOpenQuote: a quote that is never closed is found where it is opened, in a time that does not grow with the square of the lines.
func TestOpenQuote(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata:\n"
	for _, n := range []int{0, 1, 17, 1500, 2880} {
		lines := strings.Split(head, "\n")
		lines = lines[:len(lines)-1]
		for i := range 2890 {
			lines = append(lines, fmt.Sprintf("  key%d: value", i))
		}
		at := 4 + n
		lines[at] += `s: "open`
		lines[at] = strings.Replace(lines[at], ": values: ", ": ", 1)
		began := time.Now()
		_, _, err := Parse("f.yaml", []byte(strings.Join(lines, "\n")+"\n"))
		want := fmt.Sprintf("f.yaml, line %d: a quote or bracket is opened here, and never closed", at+1)
		if err == nil || err.Error() != want {
			t.Errorf("line %d: %v, want %s", at+1, err, want)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("line %d: it took %s", at+1, took)
		}
	}
}

// TestLongest: prefixes that end within a text of several lines do not hide the rest.
func TestLongest(t *testing.T) {
	var lines [][]byte
	for i := range 500 {
		lines = append(lines, fmt.Appendf(nil, "a%d: \"x\n", i), []byte("  y\"\n"), fmt.Appendf(nil, "b%d: z\n", i))
	}
	lines[1200] = []byte("c: \"open\n")
	if got := longest(lines[:1201], 1201); got != 1200 {
		t.Errorf("%d lines, want 1200", got)
	}
}

// TestTwoObjectsInOne: what somebody has joined without --- between is an error, whichever kind comes last.
func TestTwoObjectsInOne(t *testing.T) {
	set := "apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: a, namespace: b}\nspec: {}\n"
	tenant := "kind: TenantControlPlane\napiVersion: kamaji.clastix.io/v1alpha1\nmetadata: {name: a, namespace: b}\n"
	for name, text := range map[string]string{"the set first": set + tenant, "the set last": tenant + set, "no set": tenant + tenant} {
		_, _, err := Parse("f.yaml", []byte("# one\n---\n"+text))
		if err == nil || !strings.Contains(err.Error(), "a second object begins in one document") || !strings.Contains(err.Error(), "write ---") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _, err := Parse("f.yaml", []byte(set+tenant))
	if err == nil || !strings.HasPrefix(err.Error(), "f.yaml, line 5: ") {
		t.Errorf("the line: %v", err)
	}
}
