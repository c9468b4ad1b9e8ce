// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits on what people write.
const (
	// MaxTemplate is the length of the longest template, in bytes.
	MaxTemplate = 64 << 10
	// MaxHoles is how many expressions a template may hold.
	MaxHoles = 64
)

const (
	open    = "<<"
	closing = ">>"
	escaped = "<<<"
)

// Has returns whether s holds "<<" at all, so that most strings never need to be compiled.
func Has(s string) bool { return strings.Contains(s, open) }

// Escape returns a template that evaluates to s.
func Escape(s string) string { return strings.ReplaceAll(s, open, escaped) }

// EscapeAll returns a copy of a JSON value in which no text is taken for an expression.
func EscapeAll(v any) any {
	switch v := v.(type) {
	case string:
		return Escape(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = EscapeAll(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = EscapeAll(x)
		}
		return out
	}
	return v
}

// piece is a part of a template: literal text, or an expression.
type piece struct {
	text string
	// hole is true for an expression, whose text begins at this rune of the template, counted from 0.
	hole  bool
	start int
}

// scan cuts a template into its pieces. Neighbouring pieces of text are one piece.
func scan(text string) ([]piece, *Error) {
	if len(text) > MaxTemplate {
		return nil, &Error{1, fmt.Sprintf("the text is longer than the limit of %d KiB", MaxTemplate>>10)}
	}
	var pieces []piece
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			pieces = append(pieces, piece{text: literal.String()})
			literal.Reset()
		}
	}
	holes := 0
	for at := 0; at < len(text); {
		next := strings.Index(text[at:], open)
		if next < 0 {
			literal.WriteString(text[at:])
			break
		}
		literal.WriteString(text[at : at+next])
		at += next
		if strings.HasPrefix(text[at:], escaped) {
			literal.WriteString(open)
			at += len(escaped)
			continue
		}
		column := utf8.RuneCountInString(text[:at]) + 1
		body := text[at+len(open):]
		end := holeEnd(body)
		switch holes++; {
		case end < 0:
			return nil, &Error{column, "the expression has no closing >>; write <<< for a literal <<. " +
				"If the >> is there, put the whole value in quotes: for YAML it ends at a comma or #"}
		case strings.TrimSpace(body[:end]) == "":
			return nil, &Error{column, "the expression is empty; write <<< for a literal <<"}
		case !utf8.ValidString(body[:end]):
			return nil, &Error{column, "the expression is not valid UTF-8"}
		case holes > MaxHoles:
			return nil, &Error{column, fmt.Sprintf("the text holds more than %d expressions", MaxHoles)}
		}
		flush()
		pieces = append(pieces, piece{text: body[:end], hole: true, start: column - 1 + len(open)})
		at += len(open) + end + len(closing)
	}
	flush()
	return pieces, nil
}

// holeEnd returns where the >> that ends an expression is, or -1. It knows the strings and comments of CEL: in a string
// >> is text, and in a comment a quote is.
func holeEnd(s string) int {
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], closing):
			return i
		case strings.HasPrefix(s[i:], "//"):
			for i < len(s) && s[i] != '\n' && !strings.HasPrefix(s[i:], closing) {
				i++
			}
		case s[i] == '"' || s[i] == '\'':
			i = stringEnd(s, i, isRaw(s[:i]))
		default:
			i++
		}
	}
	return -1
}

// stringEnd returns the position after the CEL string that begins with the quote at i. Only strings in three quotes go
// on after the end of a line; any other that does not end there is an error, which is left to the CEL parser.
func stringEnd(s string, i int, raw bool) int {
	quote := s[i : i+1]
	long := strings.HasPrefix(s[i:], strings.Repeat(quote, 3))
	if long {
		quote = strings.Repeat(quote, 3)
	}
	for i += len(quote); i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], quote):
			return i + len(quote)
		case s[i] == '\\' && !raw:
			i++
		case (s[i] == '\n' || s[i] == '\r') && !long:
			return i
		}
	}
	return len(s)
}

// isRaw returns whether a string that follows has the prefix r, or br, and not just a name that ends so.
func isRaw(before string) bool {
	word := before
	for i := len(before); ; i-- {
		if i == 0 || !isNameByte(before[i-1]) {
			word = before[i:]
			break
		}
	}
	switch strings.ToLower(word) {
	case "r", "br":
		return true
	}
	return false
}

func isNameByte(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
