// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/chandler-hub/chandler/internal/expression/meter"
	"github.com/chandler-hub/chandler/internal/nearest"
	"github.com/chandler-hub/chandler/internal/status"
)

// eval evaluates an expression, and rewords its error for an author of YAML.
func (p *part) eval(r *run) (v ref.Val, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case interpreter.EvalCancelledError:
			err = e
		default: // such as a list as a key of a map, which cel-go does not look out for
			err = errors.New("the expression cannot be evaluated")
		}
	}()
	v = p.program.Eval(r)
	failed, ok := v.(*types.Err)
	if !ok {
		return v, nil
	}
	if unknown := (*Unknown)(nil); errors.As(failed.Unwrap(), &unknown) {
		return nil, unknown
	}
	message := failed.Error()
	if key, ok := strings.CutPrefix(message, "no such key: "); ok {
		return nil, errors.New(p.missing(r.in, key))
	}
	return nil, errors.New(plain(message) + p.reads())
}

// result says of what is wrong with what an expression gives also what the expression reads.
func (p *part) result(err error) error {
	if unknown := (*Unknown)(nil); err == nil || errors.As(err, &unknown) {
		return err
	}
	return errors.New(err.Error() + p.reads())
}

// reads names the values of the cluster, of its origin and the variables that an expression reads, for an error that names none. It shows
// none of them: the same mistake on many clusters is one message.
func (p *part) reads() string {
	var names []string
	for _, l := range p.lookups {
		names = append(names, strings.Join(append([]string{l.root}, l.path...), "."))
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return ""
	}
	return "; it reads " + status.List(names, 5)
}

// missing says where a key was not found, if that can be told from the paths that the expression reads.
func (p *part) missing(in Input, key string) string {
	for _, l := range p.lookups {
		if where, ok := l.missing(in, key); ok && !l.optional {
			return where
		}
	}
	return fmt.Sprintf("no such key: %q", key) + p.reads()
}

func (l lookup) missing(in Input, key string) (string, bool) {
	var at any
	switch {
	case l.root == varsName:
		at = in.Vars
	case l.root == originName:
		at = in.Origin
	case len(l.path) == 0:
		return "", false
	case in.Cluster != nil && l.path[0] == "labels":
		at = map[string]any{"labels": in.Cluster.Labels}
	case in.Cluster != nil && l.path[0] == "annotations":
		at = map[string]any{"annotations": in.Cluster.Annotations}
	default:
		return "", false
	}
	where := l.root
	for _, name := range l.path {
		var next any
		there := false
		switch m := at.(type) {
		case map[string]any:
			next, there = m[name]
		case map[string]string:
			next, there = m[name]
		default:
			return fmt.Sprintf("%s is not a map, and has no %q", where, key), name == key
		}
		if !there {
			text := fmt.Sprintf("%s has no %q", where, key) + meant(key, at)
			if where == varsName && in.Names != nil {
				text = fmt.Sprintf("%s has no %q", where, key) + didYouMean(key, in.Names())
			}
			return text, name == key
		}
		at, where = next, where+"."+name
	}
	return "", false
}

// meant asks for the key of a map that is nearest to one that it does not have; "" if none is near.
func meant(key string, of any) string {
	var names []string
	switch m := of.(type) {
	case map[string]any:
		names = slices.Sorted(maps.Keys(m))
	case map[string]string:
		names = slices.Sorted(maps.Keys(m))
	}
	return didYouMean(key, names)
}

func didYouMean(written string, names []string) string {
	if name := nearest.To(written, names); name != "" {
		return fmt.Sprintf("; did you mean %q?", name)
	}
	return ""
}

// issue makes an error of the first thing that is wrong with an expression. The parsed expression is nil if that is its
// syntax.
func issue(p piece, parsed *ast.AST, issues *cel.Issues) *Error {
	first := issues.Errors()[0]
	for _, e := range issues.Errors()[1:] {
		l, f := e.Location, first.Location
		if strings.Contains(e.Message, giveUp) {
			continue
		}
		if strings.Contains(first.Message, giveUp) || l.Line() < f.Line() || l.Line() == f.Line() && l.Column() < f.Column() {
			first = e
		}
	}
	at := max(0, first.Location.Column())
	for i, line := range strings.Split(p.text, "\n") {
		if i+1 >= first.Location.Line() {
			break
		}
		at += utf8.RuneCountInString(line) + 1
	}
	message := plain(first.Message)
	if m := undeclared.FindStringSubmatch(message); m != nil {
		message = fmt.Sprintf("there is no variable %q: there are cluster, origin and vars", m[1])
		if parsed != nil && isCall(parsed.Expr(), first.ExprID) {
			message = fmt.Sprintf("there is no function %q", m[1])
		}
	}
	if m := noField.FindStringSubmatch(message); m != nil {
		var names []string
		for _, typ := range slices.Sorted(maps.Keys(shapes)) {
			names = append(names, shapes[typ].names...)
		}
		message += didYouMean(m[1], names)
	}
	return &Error{p.start + min(at, utf8.RuneCountInString(p.text)) + 1, message}
}

func isCall(e ast.Expr, id int64) bool {
	if e.ID() == id {
		return e.Kind() == ast.CallKind
	}
	return slices.ContainsFunc(meter.Children(e), func(child ast.Expr) bool { return isCall(child, id) })
}

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '(.*)' \(in container '.*'\)$`)
	noField    = regexp.MustCompile(`^undefined field '(.*)'$`)
	either     = regexp.MustCompile(`^found no matching overload for '_\?_:_' applied to '\(([^,]+), ([^,]+), ([^,]+)\)'$`)
	badKey     = regexp.MustCompile(`^found no matching overload for '@key' applied to '\((.*)\)'$`)
	quoted     = regexp.MustCompile(`'[^' ]+'`)
	goParser   = regexp.MustCompile(`(?:netip\.)?\bParse[A-Za-z]+\(("[^"]*")\)`)
	goType     = regexp.MustCompile(`\*?\b(?:types|traits|ref|expression)\.([A-Za-z]+)`)
)

// giveUp is in the message of a parser that met too many errors: it is not the one to show.
const giveUp = "error recovery"

var tooDeep = fmt.Sprintf("the expression nests or chains more than %d levels", MaxNesting)

// phrases are what CEL says, by what it begins with or holds, and what is said instead.
var phrases = []struct{ theirs, ours string }{
	{"expression recursion limit exceeded", tooDeep},
	{"max recursion depth exceeded", tooDeep},
	{giveUp, "syntax error"},
	{"no such attribute(s): cluster", "no cluster is known here"},
	{"expected iterable type", "only a list or a map can be looped over"},
	{"invalid qualifier type", "a value is of the wrong type for an index or a key"},
	{"reference to undefined type", "a type cannot be the value of a variable"},
	{"unsupported comprehension range type", "only a list or a map can be looped over"},
}

func notAKey(typ string) string { return "a key of a map cannot be of type " + typ }

// plain rewords what CEL says for an author of YAML who does not know CEL's source.
func plain(s string) string {
	for _, p := range phrases {
		if strings.Contains(s, p.theirs) {
			return p.ours
		}
	}
	if s == "no such overload" {
		return "a value is of the wrong type for its operator: && || ! and ?: take true or false"
	}
	if m := either.FindStringSubmatch(s); m != nil {
		if m[1] != "bool" && m[1] != "dyn" {
			return "what is before ? must be true or false, and is of type " + m[1]
		}
		return fmt.Sprintf("? : gives either type %s or type %s: make both of one type", m[2], m[3])
	}
	if m := badKey.FindStringSubmatch(s); m != nil {
		return notAKey(m[1])
	}
	if rest, ok := strings.CutPrefix(s, "Syntax error: "); ok {
		rest, _, _ = strings.Cut(rest, " expecting ")
		s = "syntax error: " + rest
	}
	s = strings.Replace(s, "mismatched input '<EOF>'", "the expression ends too early", 1)
	s = strings.Replace(s, "'<EOF>'", "the end", 1)
	s = strings.NewReplacer("null_type", "null", "google.protobuf.Duration", "duration", "google.protobuf.Timestamp", "timestamp").Replace(s)
	s = quoted.ReplaceAllStringFunc(s, func(q string) string {
		if display, ok := operators.FindReverse(strings.Trim(q, "'")); ok && display != "" {
			return "'" + display + "'"
		}
		return q
	})
	s = goParser.ReplaceAllString(s, "$1")
	return goType.ReplaceAllString(s, "$1")
}
