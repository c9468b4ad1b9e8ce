// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/chandler-hub/chandler/internal/status"
)

// ledger collects sentences about clusters. What is the same for several clusters is said once, with their number, and so is what differs
// in nothing but what the clusters are called, or what their labels and variables say.
type ledger struct {
	entries []*entry
	byText  map[string]*entry
	// values returns what a sentence about a cluster may show of it, beside its name; nil for nothing.
	values func(cluster string) []string
}

// entry is what is said of some clusters; of none if it is not about clusters.
type entry struct {
	text     string
	clusters []string
	// example is the cluster whose text it is, if that stands for those of the others too; "" otherwise.
	example string
}

// add notes a sentence. about begins with what follows the cluster's name, such as ": spec.variables: ..."; without a cluster it is all.
func (l *ledger) add(cluster, about string) {
	e := l.byText[about]
	if e == nil {
		e = &entry{text: about}
		if l.byText == nil {
			l.byText = map[string]*entry{}
		}
		l.entries, l.byText[about] = append(l.entries, e), e
	}
	if cluster != "" {
		e.clusters = append(e.clusters, cluster)
	}
}

// lines returns the sentences, in the order in which they came first.
func (l *ledger) lines() []string {
	var out []string
	for _, e := range l.merged() {
		text := e.text
		if e.example != "" {
			text += fmt.Sprintf(" (so on %s, and likewise on the others)", e.example)
			slices.Sort(e.clusters)
		}
		switch n := len(e.clusters); n {
		case 0:
			out = append(out, oneLine(e.text))
		case 1:
			out = append(out, oneLine("ClusterRegistration "+e.clusters[0]+text))
		default:
			out = append(out, oneLine(fmt.Sprintf("%d ClusterRegistrations (%s)%s", n, status.List(e.clusters, maxWhy), text)))
		}
	}
	return out
}

// merged returns the entries, those that differ in what they show of their clusters alone as one.
func (l *ledger) merged() []*entry {
	var out []*entry
	first := map[string]*entry{}
	for _, e := range l.entries {
		own := &entry{text: e.text, clusters: slices.Clone(e.clusters)}
		if len(e.clusters) == 0 {
			out = append(out, own)
			continue
		}
		like := l.impersonal(e)
		if f := first[like]; f != nil && like != e.text {
			f.clusters, f.example = append(f.clusters, e.clusters...), cmp.Or(f.example, f.clusters[0])
			continue
		}
		first[like] = own
		out = append(out, own)
	}
	return out
}

// head is the beginning of a sentence: where the mistake is. What it names is never a cluster's.
var head = regexp.MustCompile(`^(, AddonSet [^ :]+)?: (add-on "[^"]*": )?([^: ]+: )?`)

// quotation matches what a sentence quotes.
var quotation = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// impersonal returns the text of an entry with marks in place of what it shows of its clusters, where these are words of it: their name,
// if it is one cluster, and what the labels and variables of all of them say. A value that is a word counts where it is quoted alone: it
// may be one of the sentence's own.
func (l *ledger) impersonal(e *entry) string {
	at := head.FindString(e.text)
	text := e.text[len(at):]
	if len(e.clusters) == 1 {
		namespace, name, _ := strings.Cut(e.clusters[0], "/")
		text = without(without(text, name, "\x00"), namespace, "\x01")
	}
	if l.values == nil {
		return at + text
	}
	values := slices.Clone(l.values(e.clusters[0]))
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	for _, v := range slices.Compact(values) {
		as := strconv.Quote(v)
		as = as[1 : len(as)-1]
		if !strings.Contains(text, v) && !strings.Contains(text, as) {
			continue
		}
		if !slices.ContainsFunc(e.clusters[1:], func(c string) bool { return !slices.Contains(l.values(c), v) }) {
			text = quotation.ReplaceAllStringFunc(text, func(q string) string {
				return without(without(q, as, "\x02"), v, "\x02")
			})
			if strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsLetter(r) }) {
				text = without(text, v, "\x02")
			}
		}
	}
	return at + text
}

func without(text, word, mark string) string {
	var out strings.Builder
	for at := 0; ; {
		next := strings.Index(text[at:], word)
		if next < 0 || word == "" {
			out.WriteString(text[at:])
			return out.String()
		}
		from, to := at+next, at+next+len(word)
		out.WriteString(text[at:from])
		if inWord(text, from-1) || inWord(text, to) {
			out.WriteString(word)
		} else {
			out.WriteString(mark)
		}
		at = to
	}
}

// inWord returns whether a letter or a digit is there.
func inWord(text string, at int) bool {
	return at >= 0 && at < len(text) && (unicode.IsLetter(rune(text[at])) || unicode.IsDigit(rune(text[at])))
}
