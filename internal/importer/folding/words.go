// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// maxWords is how many words of its own a cluster gets, beside its names.
const maxWords = 3

// word is a word of a cluster, such as its team, that nothing else says.
type word struct {
	// variable is what the sets call it.
	variable string
	// of are the clusters that have one.
	of map[*Cluster]string
}

// text is a text of a cluster, and where it stands: the same place in objects of one kind of all clusters.
type text struct{ at, s string }

// wordsOf finds the words in which the objects of the clusters differ alike, beside the names of the clusters: the one that
// explains most of what differs first, and of several such the longest.
func wordsOf(members []*member) []word {
	texts := map[*Cluster][]text{}
	taken := map[string]bool{tableVariable: true}
	for _, m := range sorted(members) {
		for _, t := range textsOf(m) {
			texts[m.cluster] = append(texts[m.cluster], text{t.at, without(t.s, m.cluster, "\x00")})
		}
		for _, name := range m.holes {
			taken[name] = true
		}
	}
	var out []word
	for len(out) < maxWords && len(texts) > 1 {
		found := best(texts)
		if len(found) < 2 {
			break
		}
		w := word{variableName(found, texts, taken), found}
		taken[w.variable] = true
		out = append(out, w)
		for c, list := range texts {
			for i := range list {
				list[i].s = replace(list[i].s, found[c], "\x00")
			}
		}
	}
	return out
}

// maxText is how long a text is at most in which words are looked for.
const maxText = 253

// textsOf returns the texts of an object: its name, and what its spec says.
func textsOf(m *member) []text {
	out := []text{{m.GetKind() + " name", m.GetName()}}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case string:
			if len(v) <= maxText {
				out = append(out, text{at, v})
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(at+" "+k, v[k])
			}
		case []any:
			for _, x := range v {
				walk(at, x)
			}
		}
	}
	walk(m.GetKind(), m.body)
	return out
}

// ownersOf returns which clusters have each word.
func ownersOf(texts map[*Cluster][]text) map[string]map[*Cluster]bool {
	owners := map[string]map[*Cluster]bool{}
	for c, list := range texts {
		for _, t := range list {
			for _, w := range candidates(t.s) {
				if owners[w] == nil {
					owners[w] = map[*Cluster]bool{}
				}
				owners[w][c] = true
			}
		}
	}
	return owners
}

// best returns the word of each cluster that explains most: put in its place, most of the cluster's texts become those of
// other clusters. A word is of one cluster alone.
func best(texts map[*Cluster][]text) map[*Cluster]string {
	owners := ownersOf(texts)
	shared := map[text]map[*Cluster]bool{}
	each := func(c *Cluster, do func(word string, as text)) {
		for _, t := range texts[c] {
			for _, w := range candidates(t.s) {
				// A name that is all word says nothing: any two names are alike in that.
				if as := replace(t.s, w, "\x01"); len(owners[w]) == 1 && (as != "\x01" || !strings.HasSuffix(t.at, " name")) {
					do(w, text{t.at, as})
				}
			}
		}
	}
	for c := range texts {
		each(c, func(_ string, as text) {
			if shared[as] == nil {
				shared[as] = map[*Cluster]bool{}
			}
			shared[as][c] = true
		})
	}
	out := map[*Cluster]string{}
	for c := range texts {
		scores := map[string]int{}
		each(c, func(w string, as text) { scores[w] += len(shared[as]) - 1 })
		for _, w := range slices.Sorted(maps.Keys(scores)) {
			was := out[c]
			if scores[w] > 0 && cmp.Or(cmp.Compare(scores[w], scores[was]), cmp.Compare(len(w), len(was))) > 0 {
				out[c] = w
			}
		}
	}
	return worth(trimmed(out), texts)
}

// minPlaces is in how many places words stand at least, on all clusters together: of fewer, overlays are shorter.
const minPlaces = 3

// worth returns the words if they are worth a variable.
func worth(words map[*Cluster]string, texts map[*Cluster][]text) map[*Cluster]string {
	n := 0
	for c, w := range words {
		for _, t := range texts[c] {
			if len(places(t.s, w)) > 0 {
				n++
			}
		}
	}
	if n < minPlaces {
		return nil
	}
	return words
}

var (
	part    = regexp.MustCompile(`[[:alnum:]]+([-_][[:alnum:]]+)*`)
	segment = regexp.MustCompile(`[[:alnum:]]+`)
	letter  = regexp.MustCompile(`[[:alpha:]]`)
)

// maxSegments is how many parts with dashes between them a word has at most.
const maxSegments = 5

// candidates returns the words of a text, and those that dashes join.
func candidates(s string) []string {
	var out []string
	for _, whole := range part.FindAllString(s, -1) {
		at := segment.FindAllStringIndex(whole, -1)
		for i := range at {
			for j := i; j < len(at) && j < i+maxSegments; j++ {
				if w := whole[at[i][0]:at[j][1]]; letter.MatchString(w) {
					out = append(out, w)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// replace puts something in place of a word, wherever it stands by itself.
func replace(s, w, instead string) string {
	for _, i := range slices.Backward(places(s, w)) {
		s = s[:i] + instead + s[i+len(w):]
	}
	return s
}

// trimmed takes off what all words end with: that is the name of an add-on, and not of a cluster.
func trimmed(words map[*Cluster]string) map[*Cluster]string {
	for len(words) > 1 {
		ends := map[string]bool{}
		for _, w := range words {
			i := strings.LastIndexAny(w, "-_")
			if i < 0 || !letter.MatchString(w[:i]) {
				return words
			}
			ends[w[i:]] = true
		}
		if len(ends) > 1 {
			return words
		}
		for c, w := range words {
			words[c] = w[:strings.LastIndexAny(w, "-_")]
		}
	}
	return words
}

// variableName names what the words are: as they all begin, or as the field is called that holds nothing else.
func variableName(words map[*Cluster]string, texts map[*Cluster][]text, taken map[string]bool) string {
	begins, fields := map[string]bool{}, map[string]int{}
	for c, w := range words {
		first, _, dashed := strings.Cut(w, "-")
		if !dashed {
			first = w
		}
		begins[first] = true
		for _, t := range texts[c] {
			if t.s == w {
				fields[t.at[strings.LastIndex(t.at, " ")+1:]]++
			}
		}
	}
	name := "alias"
	if most := slices.MaxFunc(append(slices.Sorted(maps.Keys(fields)), ""), func(a, b string) int {
		return cmp.Compare(fields[a], fields[b])
	}); most != "" && most != "name" {
		name = strings.ToLower(most)
	}
	if len(begins) == 1 {
		name = slices.Collect(maps.Keys(begins))[0]
	}
	if name = strings.NewReplacer("-", "", "_", "").Replace(label(name)); name == "" || name[0] < 'a' {
		name = "alias"
	}
	for taken[name] {
		name += "2"
	}
	return name
}
