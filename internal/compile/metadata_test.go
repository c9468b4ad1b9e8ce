// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

const ownAddon = "name: x, kustomization: {sourceRef: {kind: GitRepository, name: fleet}}"

func specOf(t *testing.T, text string) *hubv1.AddonSetSpec {
	t.Helper()
	spec := &hubv1.AddonSetSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestMetadata(t *testing.T) {
	team := fluxspec.Author{Namespace: "shop", Set: "apps", Team: &fluxspec.TeamRules{Name: "shop"}}
	for name, tc := range map[string]struct {
		set, addon string
		author     fluxspec.Author
		want       []string
	}{
		"Plain":       {set: "{labels: {team: payments}, annotations: {event.toolkit.fluxcd.io/team: 'Team A, floor 2'}}", addon: "{labels: {team: shop}}"},
		"Expressions": {set: "{labels: {team: << vars.team >>, cluster: 'c-<< cluster.name >>'}, annotations: {example.org/pods: << origin.spec.x >>}}"},
		"Literal":     {set: "{annotations: {example.org/x: '<<< text'}}"},
		"OfFlux": {set: "{labels: {sharding.fluxcd.io/key: a}}", want: []string{
			"metadata.labels[sharding.fluxcd.io/key]: is a key of Flux, which may go by it; choose one of your own, such as example.org/key"}},
		"OfTheHubOnAnAddon": {addon: "{annotations: {chandler.dev/owner: a}}", want: []string{
			`add-on "x": metadata.annotations[chandler.dev/owner]: is a key of the hub, which may go by it; choose one of your own, such as example.org/owner`}},
		"NoKey": {set: "{labels: {two words: a}}", want: []string{"metadata.labels[two words]: is no key that Kubernetes takes: name part must consist of"}},
		"NoLabel": {set: "{labels: {team: team A}}", want: []string{
			`metadata.labels[team]: is "team A", which no label can have: a valid label must be`}},
		"NoLiteralLabel": {set: "{labels: {team: '<<< a'}}", want: []string{`metadata.labels[team]: is "<< a", which no label can have`}},
		"NoText": {set: "{annotations: {example.org/n: << cluster.version.minor >>}}", want: []string{
			"metadata.annotations[example.org/n]: << cluster.version.minor >> gives a number, and must give a text: write << string(cluster.version.minor) >>"}},
		"NoExpression": {addon: "{labels: {team: << cluster. >>}}", want: []string{`add-on "x": metadata.labels[team]: `}},
		"TooLong":      {set: "{annotations: {example.org/n: " + strings.Repeat("x", 2049) + "}}", want: []string{"has 2049 bytes, and 2048 are the most"}},
		"TeamReadsOrigins": {set: "{annotations: {example.org/n: << origin.metadata.name >>}}", author: team, want: []string{
			"metadata.annotations[example.org/n]: Team "}},
		"TeamSteers": {set: "{labels: {kustomize.toolkit.fluxcd.io/prune: disabled}}", author: team, want: []string{"is a key of Flux"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.author.Namespace == "" {
				tc.author = platform
			}
			text := "selectAll: true\nvariables: {team: a}\naddons: [{" + ownAddon
			if tc.addon != "" {
				text += ", metadata: " + tc.addon
			}
			if text += "}]"; tc.set != "" {
				text += "\nmetadata: " + tc.set
			}
			spec := specOf(t, text)
			err := compile.CheckMetadata(spec, tc.author)
			holdsErrors(t, err, tc.want)
			if _, whole := compile.Compile(spec, tc.author); tc.author.Team == nil && fmt.Sprint(whole) != fmt.Sprint(err) {
				t.Errorf("the set as a whole: %v, want %v", whole, err)
			}
		})
	}
}

func holdsErrors(t *testing.T, err error, want []string) {
	t.Helper()
	errs, _ := err.(compile.Errors) //nolint:errorlint // made by compile, never wrapped
	if err != nil && errs == nil || len(errs) != len(want) {
		t.Fatalf("got %v, want %q", err, want)
	}
	for i := range want {
		if !strings.Contains(errs[i].Error(), want[i]) {
			t.Errorf("got %q, want %q", errs[i].Error(), want[i])
		}
	}
}

// TestMetadataIsNoRevision: a change of labels and annotations alone makes no new revision, and a revision has none.
func TestMetadataIsNoRevision(t *testing.T) {
	bare := specOf(t, "addons: [{"+ownAddon+"}]")
	own := specOf(t, "metadata: {labels: {team: a}}\naddons: [{"+ownAddon+", metadata: {annotations: {example.org/x: << cluster.name >>}}}]")
	before := own.DeepCopy()
	a, hash, err := compile.Snapshot(bare, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, other, err := compile.Snapshot(own, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(a), string(b)); d != "" || hash != other {
		t.Errorf("another revision: %s", d)
	}
	if d := cmp.Diff(before, own); d != "" {
		t.Errorf("the set has changed: %s", d)
	}
	p, err := compile.Revision(b, platform)
	if err != nil || p.Metadata != nil {
		t.Errorf("the revision has %+v, %v", p.Metadata, err)
	}
}

// TestMetadataIsBounded: the hub evaluates labels and annotations of a set that does not compile, so it goes by the bounds itself.
func TestMetadataIsBounded(t *testing.T) {
	spec := &hubv1.AddonSetSpec{}
	for i := range 20 {
		a := hubv1.Addon{Name: fmt.Sprintf("a%02d", i), Metadata: &hubv1.OwnMetadata{Labels: map[string]string{"plain": "x"}, Annotations: map[string]string{}}}
		for j := range 20 {
			a.Metadata.Annotations[fmt.Sprintf("example.org/a%d", j)] = fmt.Sprintf("<< cluster.name + '%d' >>", i)
		}
		spec.Addons = append(spec.Addons, a)
	}
	entries, over := compile.MetadataOf(spec).Bounded()
	if len(entries) != 20+200 || !strings.Contains(over, "more than 200") {
		t.Errorf("%d entries: %s", len(entries), over)
	}
	err := compile.CheckMetadata(spec, platform)
	holdsErrors(t, err, []string{"metadata: more than 200 labels and annotations"})
}
