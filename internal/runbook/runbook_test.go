// SPDX-License-Identifier: Apache-2.0

package runbook_test

import (
	"testing"

	"github.com/chandler-hub/chandler/internal/runbook"
)

func TestAdd(t *testing.T) {
	const docs, at = "https://docs.example.org/", "; runbook: https://docs.example.org/runbooks.md#"
	for name, tc := range map[string]struct{ docs, reason, message, want string }{
		"NeedsAPerson": {docs, "InvalidSpec", "no such field", "no such field" + at + "a-set-does-not-compile"},
		"NeedsNobody":  {docs, "Progressing", "on its way", "on its way"},
		"NoPages":      {"", "InvalidSpec", "no such field", "no such field"},
		"Again":        {docs, "InvalidSpec", "no such field" + at + "a-set-does-not-compile", "no such field" + at + "a-set-does-not-compile"},
		"Moved": {docs, "InvalidSpec", "no such field; runbook: https://old.example.org/runbooks.md#x",
			"no such field" + at + "a-set-does-not-compile"},
		"Better": {docs, "Succeeded", "no such field" + at + "a-set-does-not-compile", "no such field"},
		"Quotes": {docs, "AddonsFailed", "one: it fails" + at + "an-add-on-fails; another is well", "one: it fails; another is well" + at + "an-add-on-fails"},
		"Cut":    {docs, "Progressing", "quotes: it fails; runbook: https://docs.exam… (and 20 more characters)", "quotes: it fails (and 20 more characters)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := runbook.Add(tc.docs, tc.reason, tc.message); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
