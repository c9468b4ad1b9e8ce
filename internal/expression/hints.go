// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"regexp"
	"strings"
)

const literalHint = "; write <<< for a literal <<"

var (
	known      = regexp.MustCompile(`\b(?:cluster|origin|vars)\b`)
	onlyNumber = regexp.MustCompile(`^[-+]?[0-9][0-9.]*$`)
	operand    = regexp.MustCompile(`\d\s*$`)
	signedKey  = regexp.MustCompile(`\b(labels|annotations)\.(\w+(?:[-./]\w+)+)`)
	mixed      = regexp.MustCompile(`^found no matching overload for '[-+*/%]' applied to '\((?:int, double|double, int)\)'$`)
)

// hinted adds to an error of an expression what was probably meant: text of a template, a heredoc or a shift in place of an
// expression, or a key with signs that CEL takes for its own. alone is true if the text is the expression and nothing else.
func hinted(p piece, alone bool, e *Error) *Error {
	text := strings.TrimSpace(p.text)
	message := e.Message
	if m := signedKey.FindStringSubmatch(text); m != nil {
		message += fmt.Sprintf("; a key with signs is written %s['%s']", m[1], m[2])
	}
	if mixed.MatchString(message) {
		message += "; a whole number becomes one with a point by double(…)"
	}
	if !known.MatchString(text) && (!alone || strings.HasPrefix(text, ".")) {
		message += literalHint
	}
	return &Error{e.Column, message}
}

// shift says of a number after another one that it is hardly meant as an expression: a text such as 1 << 3 >> 1 would become another one.
func shift(p piece, before string) *Error {
	text := strings.TrimSpace(p.text)
	if !operand.MatchString(before) || !onlyNumber.MatchString(text) {
		return nil
	}
	return &Error{p.start + 1, fmt.Sprintf("the expression is the number %s and nothing else", text) + literalHint}
}
