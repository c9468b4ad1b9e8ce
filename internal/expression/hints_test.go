// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/expression"
)

// TestHints: what was never meant as an expression, or has a key that CEL takes apart, says what to write.
func TestHints(t *testing.T) {
	for text, want := range map[string]string{
		"<<.Series>>":                                          literal,
		"sum(<<.Series>>{<<.LabelMatchers>>})":                 literal,
		"cat << EOF\nhello\nEOF\n":                             "write <<< for a literal <<",
		"cat << EOF > a\nhello\nEOF\necho >> b\n":              literal,
		"x = 1 << 3 >> 1":                                      "the expression is the number 3 and nothing else" + literal,
		"<< cluster.labels.a-b >>":                             "; a key with signs is written labels['a-b']",
		"x-<< cluster.labels.topology.kubernetes.io/region >>": "; a key with signs is written labels['topology.kubernetes.io/region']",
		"<< cluster.nodes * 1.5 >>":                            "; a whole number becomes one with a point by double(…)",
		"<< 3 >>":                                              "", "a << 'b' >>": "", "a <<< 3 >> 1": "", "<< double(cluster.nodes) * 1.5 >>": "", "<< cluster.labels['a-b'] >>": "",
	} {
		_, err := expression.Compile(text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

const literal = "; write <<< for a literal <<"
