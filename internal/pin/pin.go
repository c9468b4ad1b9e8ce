// SPDX-License-Identifier: Apache-2.0

// Package pin decides what the next revision of a set holds in place of what floats: a chart's version, a commit, a digest,
// the content of a ConfigMap. It knows which sources follow upstream, and how one is held. It is pure: what upstream has is read by Flux,
// and comes as an argument.
package pin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/identity"
)

// Float is something that a set follows upstream.
type Float struct {
	// Key is how compile.Pins name it: a source's key, or the name of a ConfigMap.
	Key string
	// ConfigMap is true for a ConfigMap.
	ConfigMap bool
	// What says what it is, for people.
	What string
	// Used is true if a cluster of the set gets it. Needed is true if no revision may be made without it.
	Used, Needed bool
	// Upstream is what it has now; empty if that is not known. Why says why not; empty while Flux is at work.
	Upstream, Why string
	// Data of a ConfigMap; nil if it does not exist. Known is false if that is not known.
	Data  map[string]string
	Known bool
}

// Read returns what the revision of a source's artifact is pinned to. revision is what Flux wrote: a chart's version, or a
// name and a checksum (fluxcd/pkg/git, Commit.String; source-controller, getRevision). An error says that it is neither.
func Read(kind, revision string, valuesFiles bool) (string, error) {
	refuse := func() (string, error) {
		return "", fmt.Errorf("its artifact has revision %q, which is not that of a %s", short(revision), kind)
	}
	_, sum, named := strings.Cut(revision, "@")
	if !named {
		sum = revision
	}
	switch kind {
	case sourcev1.HelmChartKind:
		version := revision
		if valuesFiles { // then Flux puts the HelmChart's generation there, which the repository does not know
			version, _, _ = strings.Cut(revision, "+")
		}
		if _, err := semver.NewVersion(version); err != nil || len(version) > maxVersion {
			return refuse()
		}
		return version, nil
	case sourcev1.GitRepositoryKind:
		algorithm, hash, _ := strings.Cut(last(revision, "@"), ":")
		if !(algorithm == "sha1" && len(hash) == 40 || algorithm == "sha256" && len(hash) == 64) || !hexadecimal(hash) {
			return refuse()
		}
		return hash, nil
	case sourcev1.OCIRepositoryKind:
		if hash, ok := strings.CutPrefix(sum, "sha256:"); !ok || len(hash) != 64 || !hexadecimal(hash) {
			return refuse()
		}
		return sum, nil
	}
	return refuse()
}

// maxVersion is the longest version of a chart that is believed.
const maxVersion = 128

func last(s, separator string) string { return s[strings.LastIndex(s, separator)+1:] }

// short bounds a text of others.
func short(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "..."
	}
	return s
}

const maxText = 512

func hexadecimal(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') }) < 0
}

// Input is what the pins of the next revision are decided from.
type Input struct {
	// Present are the pins of the present revision. SameSpec is true if that revision has the present spec.
	Present  *compile.Pins
	SameSpec bool
	// Hold is true while upstream news waits: the present revision is on its way through the waves.
	Hold   bool
	Floats []Float
}

// Output is what the next revision holds.
type Output struct {
	Pins *compile.Pins
	// Waits says for what the next revision waits; empty if it can be made. Broken is true if Flux has failed to read that.
	Waits  string
	Broken bool
	// News says what upstream has and the next revision does not have, because news waits.
	News []string
}

// Next decides what the next revision holds.
//
// An edit of the set takes what upstream has now. While the present revision is on its way, upstream news waits for its end:
// otherwise a branch with a commit every ten minutes would never get past a canary that soaks for an hour. What upstream
// does not show now keeps its pin, so a source that fails changes nothing. What was never seen is waited for, if it is
// needed: a chart that does not exist breaks no cluster. What is not needed makes no revision by itself.
func Next(in Input) Output {
	if in.SameSpec && in.Hold {
		out := Output{Pins: in.Present.Clone()}
		for i := range in.Floats {
			if f := &in.Floats[i]; f.holds(in.Present) && f.isNews(in.Present) {
				out.News = append(out.News, f.What)
			}
		}
		return out
	}
	out := Output{Pins: (*compile.Pins)(nil).Clone()}
	changed := !in.SameSpec
	for i := range in.Floats {
		f := &in.Floats[i]
		switch {
		case f.take(out.Pins):
			changed = changed || f.Needed && f.isNews(in.Present)
		case f.keep(in.Present, out.Pins):
		case !f.Needed: // it concerns few clusters, or none: the revision does not wait for it
		case f.Why == "" && out.Waits == "":
			out.Waits = "Flux to read " + f.What
		case f.Why != "" && !out.Broken:
			out.Waits, out.Broken = f.What+": "+f.Why, true
		}
	}
	if !changed && out.Waits == "" && sameMaps(out.Pins, in.Present) {
		out.Pins = in.Present.Clone()
	}
	return out
}

// sameMaps returns whether two pins hold the same ConfigMaps. One may have become too large to be held.
func sameMaps(a, b *compile.Pins) bool {
	maps := func(p *compile.Pins) *compile.Pins { return &compile.Pins{ConfigMaps: p.Clone().ConfigMaps} }
	return maps(a).Equal(maps(b))
}

// Unheld names what clusters get and a revision does not hold.
func Unheld(floats []Float, pins *compile.Pins) []string {
	var out []string
	for i := range floats {
		f := &floats[i]
		if (f.ConfigMap || f.Used) && !f.holds(pins) {
			out = append(out, f.What)
		}
	}
	return out
}

// take pins what upstream has, and returns false if that is not known.
func (f *Float) take(to *compile.Pins) bool {
	switch {
	case f.ConfigMap && f.Known:
		to.ConfigMaps[f.Key] = f.Data
	case !f.ConfigMap && f.Upstream != "":
		to.Sources[f.Key] = f.Upstream
	default:
		return false
	}
	return true
}

// keep pins what the present revision has, and returns false if it has nothing.
func (f *Float) keep(present, to *compile.Pins) bool {
	if f.ConfigMap {
		data, ok := present.ConfigMap(f.Key)
		if ok {
			to.ConfigMaps[f.Key] = data
		}
		return ok
	}
	is := present.Source(f.Key)
	if is != "" {
		to.Sources[f.Key] = is
	}
	return is != ""
}

// Status says what is followed, and what some pins hold of it. namespace is that of a ConfigMap.
func (f *Float) Status(namespace string, pins *compile.Pins) hubv1.FollowedSource {
	out := hubv1.FollowedSource{Kind: configMap, Namespace: namespace, Name: f.Key, What: short(f.What), Message: short(f.Why)}
	if !f.ConfigMap {
		parts := strings.SplitN(f.Key, "/", 3)
		out.Kind, out.Namespace, out.Name = parts[0], parts[1], parts[2]
		out.Pinned, out.Upstream = pins.Source(f.Key), f.Upstream
		return out
	}
	if data, ok := pins.ConfigMap(f.Key); ok {
		out.Pinned = hash(data)
	}
	if f.Known {
		out.Upstream = hash(f.Data)
	}
	return out
}

// Recorded returns the pins that a set's status tells of, so that a revision that a user has deleted can be made again. It does
// not tell the data of ConfigMaps.
func Recorded(sources []hubv1.FollowedSource) *compile.Pins {
	out := (*compile.Pins)(nil).Clone()
	for i := range sources {
		if s := &sources[i]; s.Kind != configMap && s.Pinned != "" {
			out.Sources[compile.SourceKey(s.Kind, s.Namespace, s.Name)] = s.Pinned
		}
	}
	return out
}

const configMap = "ConfigMap"

// hash identifies the data of a ConfigMap.
func hash(data map[string]string) string {
	if data == nil {
		return "absent"
	}
	parts := make([]string, 0, 2*len(data))
	for _, k := range slices.Sorted(maps.Keys(data)) {
		parts = append(parts, k, data[k])
	}
	return identity.Hash(12, parts...)
}

// holds returns whether a revision holds anything of it.
func (f *Float) holds(pins *compile.Pins) bool {
	_, ok := pins.ConfigMap(f.Key)
	return f.ConfigMap && ok || !f.ConfigMap && pins.Source(f.Key) != ""
}

// isNews returns whether upstream has something else than a revision.
func (f *Float) isNews(present *compile.Pins) bool {
	next := present.Clone()
	return f.take(next) && !next.Equal(present)
}
