// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/chandler-hub/chandler/internal/status"
)

// ledger collects sentences about clusters. What is the same for several clusters is said once, with their number, and so is what differs
// in nothing but the clusters' names.
type ledger struct {
	entries []*entry
	byText  map[string]*entry
}

// entry is what is said of some clusters; of none if it is not about clusters.
type entry struct {
	text     string
	clusters []string
	// named is true if the text has the name of the first cluster, and stands for those with the names of the others.
	named bool
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
		if e.named {
			text += fmt.Sprintf(" (so on %s, and likewise on the others)", e.clusters[0])
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

// merged returns the entries, those of one cluster each that differ in its name alone as one.
func (l *ledger) merged() []*entry {
	var out []*entry
	first := map[string]*entry{}
	for _, e := range l.entries {
		if len(e.clusters) != 1 {
			out = append(out, e)
			continue
		}
		like := nameless(e.text, e.clusters[0])
		if f := first[like]; f != nil && like != e.text {
			f.clusters, f.named = append(f.clusters, e.clusters[0]), true
			continue
		}
		own := &entry{text: e.text, clusters: slices.Clone(e.clusters)}
		first[like] = own
		out = append(out, own)
	}
	return out
}

// nameless returns a text with marks in place of a cluster's name and namespace, where these are words of it.
func nameless(text, cluster string) string {
	namespace, name, _ := strings.Cut(cluster, "/")
	return without(without(text, name, "\x00"), namespace, "\x01")
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
