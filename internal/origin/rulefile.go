// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/metakey"
)

// ruleFile is the content of a file with rules.
type ruleFile struct {
	Rules []Rule `json:"rules"`
}

// ParseRules reads the content of a file with rules. It refuses what it does not know, and what would do nothing or anything else than it
// says. name is the file's, for messages; each says the file, the rule, the field, and what is wrong.
func ParseRules(name string, raw []byte) ([]Rule, error) {
	file, problems := decode(raw)
	if len(problems) == 0 {
		problems = file.problems()
	}
	if len(problems) == 0 {
		return file.Rules, nil
	}
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = fmt.Errorf("%s: %s", name, p)
	}
	return nil, errors.Join(errs...)
}

// decode decodes strictly: a misspelt field would widen what a rule matches.
func decode(raw []byte) (file ruleFile, problems []string) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	var content [][]byte
	for {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return file, []string{err.Error()}
		}
		if json, err := yaml.YAMLToJSONStrict(doc); err != nil {
			return file, []string{strings.ReplaceAll(err.Error(), "\n", " ")}
		} else if !bytes.Equal(json, []byte("null")) {
			content = append(content, json)
		}
	}
	switch len(content) {
	case 0:
		return file, []string{"rules: write at least one rule; without any, leave out the file"}
	case 1:
	default:
		return file, []string{"it has several documents: write all rules into one"}
	}
	strict, err := sigsjson.UnmarshalStrict(content[0], &file)
	if err != nil {
		return file, []string{err.Error()}
	}
	for _, err := range strict {
		problems = append(problems, file.named(err.Error()))
	}
	return file, problems
}

var unknownField = regexp.MustCompile(`^unknown field "rules\[(\d+)\]\.(.*)"$`)

// named says of which rule an error is that names it by its number.
func (f *ruleFile) named(message string) string {
	m := unknownField.FindStringSubmatch(message)
	if m == nil {
		return message
	}
	i, _ := strconv.Atoi(m[1]) // digits
	return fmt.Sprintf("%s: %s: there is no such field", f.called(i), m[2])
}

func (f *ruleFile) called(i int) string {
	if i < len(f.Rules) && f.Rules[i].Name != "" {
		return fmt.Sprintf("rule %q", f.Rules[i].Name)
	}
	return fmt.Sprintf("rule number %d", i+1)
}

// problems returns what is wrong with rules that could be decoded.
func (f *ruleFile) problems() (out []string) {
	if len(f.Rules) == 0 {
		return []string{"rules: write at least one rule; without any, leave out the file"}
	}
	names := map[string]bool{}
	for i := range f.Rules {
		r, say := &f.Rules[i], func(field, format string, args ...any) {
			out = append(out, fmt.Sprintf("%s: %s: %s", f.called(i), field, fmt.Sprintf(format, args...)))
		}
		switch errs := validation.IsDNS1123Label(r.Name); {
		case r.Name == "":
			say("name", "write one: messages name the rule by it")
		case len(errs) > 0:
			say("name", "%s", errs[0])
		case names[r.Name]:
			say("name", "another rule has it too")
		}
		names[r.Name] = true
		r.Match.check(say)
		r.Register.check(&r.Match, say)
	}
	return out
}

type sayer func(field, format string, args ...any)

func (m *RuleMatch) check(say sayer) {
	at := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Kind == m.Kind })
	if at < 0 {
		known := make([]string, len(Kinds))
		for i, k := range Kinds {
			known[i] = k.Kind
		}
		say("match.kind", "is %q; write one of %s", m.Kind, strings.Join(known, ", "))
	}
	if len(m.Namespaces) == 0 {
		say("match.namespaces", "write names of namespaces, or patterns such as team-*; * for all")
	}
	for _, p := range m.Namespaces {
		checkPattern(say, "match.namespaces", p, validation.IsDNS1123Label)
	}
	checkLabels(say, "match.labels", m.Labels)
	for _, k := range slices.Sorted(maps.Keys(m.Labels)) {
		if strings.HasPrefix(k, "chandler.dev/") {
			say("match.labels", "%s is a label of the hub, by which no rule matches", k)
		}
	}
	if o := m.Owner; o != nil {
		switch errs := validation.IsDNS1123Subdomain(o.APIGroup); {
		case o.Kind == "" || strings.ContainsAny(o.Kind, "/.* "):
			say("match.owner.kind", "is %q; write the kind of an owner, such as StatefulSet", o.Kind)
		case o.APIGroup != "" && len(errs) > 0:
			say("match.owner.apiGroup", "is %q; write a group without a version, such as apps, and none for the core group", o.APIGroup)
		}
	}
	if m.Names != "" {
		checkPattern(say, "match.names", m.Names, validation.IsDNS1123Subdomain)
	}
	// Most Secrets hold no kubeconfig. Each of them would be registered, and say that it has none.
	if at >= 0 && !Kinds[at].IsCluster() && len(m.Labels) == 0 && m.Owner == nil && (m.Names == "" || m.Names == wildcard) {
		say("match", "it matches every %s: write labels, owner or names", m.Kind)
	}
}

func (r *RuleRegister) check(m *RuleMatch, say sayer) {
	switch in, of := strings.Contains(r.Name, wildcard), strings.Contains(m.Names, wildcard); {
	case r.Name == "":
	case in && !of:
		say("register.name", "is %q, and match.names has no * that it could stand for", r.Name)
	case !in && (of || m.Names == ""):
		say("register.name", "is %q for all that the rule matches: write * for what the * of match.names stands for", r.Name)
	default:
		checkPattern(say, "register.name", r.Name, validation.IsDNS1123Subdomain)
	}
	checkLabels(say, "register.labels", r.Labels)
	for _, k := range slices.Sorted(maps.Keys(r.Labels)) {
		if metakey.Marks(k) {
			say("register.labels", "%s is the mark of a tool, which owns what has it", k)
		}
	}
	switch errs := validation.IsConfigMapKey(r.Key); {
	case r.Key == "":
	case m.Kind != Secret.Kind:
		say("register.key", "a %s says itself where its kubeconfig is: leave it out", m.Kind)
	case len(errs) > 0:
		say("register.key", "%s", errs[0])
	}
}

// checkPattern checks a name that may have a wildcard.
func checkPattern(say sayer, field, pattern string, valid func(string) []string) {
	switch errs := valid(strings.ReplaceAll(pattern, wildcard, "x")); {
	case pattern == "":
		say(field, "an empty text matches nothing")
	case strings.Count(pattern, wildcard) > 1:
		say(field, "%q has more than one *", pattern)
	case len(errs) > 0:
		say(field, "%q can be no name: %s", pattern, errs[0])
	}
}

func checkLabels(say sayer, field string, labels map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if errs := validation.IsQualifiedName(k); len(errs) > 0 {
			say(field, "%q: %s", k, errs[0])
		}
		if errs := validation.IsValidLabelValue(labels[k]); len(errs) > 0 {
			say(field, "%s: %s", k, errs[0])
		}
	}
}
