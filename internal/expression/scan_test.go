// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"plain", "plain"},
		{"a > b >> c", "a > b >> c"},
		{"<", "<"},
		{"<<<", "<<"},
		{"<<<<", "<<<"},
		{"<<<<<<", "<<<<"},
		{"a <<< b <<< c", "a << b << c"},
		{"<<x>>", "[x]"},
		{" << x >> ", " |[ x ]| "},
		{"a<<x>>b<<y>>c", "a|[x]|b|[y]|c"},
		{"<<x>><<y>>", "[x]|[y]"},
		{"<<<<<x>>", "<<|[x]"},
		{"<<<x>>", "<<x>>"},
		{"<<x>>>", "[x]|>"},
		{"<<x<y>>", "[x<y]"},
		// Strings of CEL.
		{`<<'>>'>>`, `['>>']`},
		{`<<">>">>`, `[">>"]`},
		{`<<'\'>>'>>`, `['\'>>']`},
		{`<<'\\'>>`, `['\\']`},
		{`<<r'\'>>`, `[r'\']`},
		{`<<R"\">>`, `[R"\"]`},
		{`<<br'\'>>`, `[br'\']`},
		{`<<b'\'>>'>>`, `[b'\'>>']`},
		{`<<bar'\'>>'>>`, `[bar'\'>>']`}, // a name, not a prefix
		{`<<'''a'>>'''>>`, `['''a'>>''']`},
		{`<<"""a">>"""+''>>`, `["""a">>"""+'']`},
		{`<<r'''\'''>>`, `[r'''\''']`},
		{"<<'''a\n>>'''>>", "['''a\n>>''']"},
		{`<<''+'>>'>>`, `[''+'>>']`},
		{"<<'a\n>>", "['a\n]"}, // ends with the line: CEL says what is wrong
		{"<< // it's\n1 >>", "[ // it's\n1 ]"},
		{"<< 1 // one >>", "[ 1 // one ]"},
		// Other people's templates.
		{"${var} ${var:=<x>} {{ .Values.x | quote }} {{- if gt 1 2 }}", "${var} ${var:=<x>} {{ .Values.x | quote }} {{- if gt 1 2 }}"},
		{"line\n<<x>>\nline\n", "line\n|[x]|\nline\n"},
	} {
		pieces, err := scan(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		var got []string
		for _, p := range pieces {
			if p.hole {
				got = append(got, "["+p.text+"]")
				if runes := []rune(test.text); string(runes[p.start:p.start+len([]rune(p.text))]) != p.text {
					t.Errorf("%q: hole at %d", test.text, p.start)
				}
			} else {
				got = append(got, p.text)
			}
		}
		if s := strings.Join(got, "|"); s != test.want {
			t.Errorf("%q: got %q, want %q", test.text, s, test.want)
		}
	}
}

func TestScanErrors(t *testing.T) {
	noEnd := "the expression has no closing >>; write <<< for a literal <<. If the >> is there, put the whole value in quotes: for YAML it ends at a comma or #"
	empty := "the expression is empty; write <<< for a literal <<"
	for _, test := range []struct{ text, want string }{
		{"<<", "column 1: " + noEnd},
		{"été << x", "column 5: " + noEnd},
		{"cat << EOF > x\n", "column 5: " + noEnd},
		{"<< 'x >>", "column 1: " + noEnd},
		{"<<x>> << y >", "column 7: " + noEnd},
		{"<<>>", "column 1: " + empty},
		{"a\n<< \n >>", "column 3: " + empty},
		{"<< '\xff' >>", "column 1: the expression is not valid UTF-8"},
		{strings.Repeat("x", MaxTemplate+1), "column 1: the text is longer than the limit of 64 KiB"},
		{strings.Repeat("<<1>>", MaxHoles+1), fmt.Sprintf("column %d: the text holds more than 64 expressions", 5*MaxHoles+1)},
	} {
		_, err := Compile(test.text)
		if err == nil || err.Error() != test.want {
			t.Errorf("%.40q: got %v, want %s", test.text, err, test.want)
		}
	}
	if _, err := Compile(strings.Repeat("<<1>>", MaxHoles)); err != nil {
		t.Error(err)
	}
}

func TestEscape(t *testing.T) {
	for n := range 12 {
		s := "a" + strings.Repeat("<", n) + " x >>"
		template, err := Compile(Escape(s))
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if got, ok := template.Literal(); !ok || got != s {
			t.Errorf("%q came back as %q", s, got)
		}
		if out, err := template.Eval(Input{}); out != s || err != nil {
			t.Errorf("%q: got %v, %v", s, out, err)
		}
		if Has(s) != (n >= 2) {
			t.Errorf("Has(%q) = %v", s, Has(s))
		}
	}
}
