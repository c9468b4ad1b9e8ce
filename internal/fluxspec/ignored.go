// SPDX-License-Identifier: Apache-2.0

package fluxspec

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandler-hub/chandler/internal/jsontype"
)

// ignored returns what an API server takes in a body, and Flux then ignores, or fails for on each cluster with words that name no remedy.
// TestIgnored has the table of them, with what is documented instead.
func ignored(kind string, body map[string]any) []Problem {
	switch kind {
	case HelmReleaseKind:
		return slices.Concat(ignoredValues(body), ignoredReferences(body), ignoredVersion(body),
			ignoredPaths("driftDetection.ignore", at(body, "driftDetection", "ignore")))
	case KustomizationKind:
		return slices.Concat(ignoredSubstitutes(body), ignoredPaths("ignore", body["ignore"]))
	case ManifestsKind:
		return ignoredKeys("manifestsFrom", "key", body["manifestsFrom"])
	}
	return nil
}

// at returns the value at a path; nil if there is none.
func at(v any, path ...string) any {
	for _, k := range path {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// ignoredValues finds values that are no object: helm-controller reads them as none, and the chart runs with its defaults.
func ignoredValues(body map[string]any) []Problem {
	v := body["values"]
	if h, hole := v.(Hole); hole {
		v = h.Sample
	}
	remedy := "write the chart's values by their names"
	switch v.(type) {
	case nil, map[string]any:
		return nil
	case string:
		remedy = `write "values:" without | or quotes`
	}
	return []Problem{{"values",
		fmt.Sprintf("is %s, and must be an object: Flux ignores anything else, and the chart runs with its defaults; %s",
			jsontype.Of(v), remedy)}}
}

// targetPath matches a path at which Flux sets a value. It ignores one that begins with a dot or an index.
var targetPath = regexp.MustCompile(`^(?:[-\w/]|\\.)+(?:\[\d+\])*(?:\.(?:[-\w/]|\\.)+(?:\[\d+\])*)*$`)

func ignoredReferences(body map[string]any) []Problem {
	problems := ignoredKeys("valuesFrom", "valuesKey", body["valuesFrom"])
	list, _ := body["valuesFrom"].([]any)
	for i := range list {
		path := fmt.Sprintf("valuesFrom[%d]", i)
		to, said := at(list[i], "targetPath").(string)
		if said && to != "" && !targetPath.MatchString(to) {
			problems = append(problems, Problem{path + ".targetPath", fmt.Sprintf("is %q, which leads to no value: write names with dots between, "+
				`such as ingress.hosts[0].host, and \. for a dot in a name`, to)})
		}
		if literal, _ := at(list[i], "literal").(bool); literal && at(list[i], "targetPath") == nil {
			problems = append(problems, Problem{path + ".literal", "has an effect with targetPath alone; write one, or remove it"})
		}
	}
	return problems
}

// ignoredKeys finds keys that no ConfigMap and no Secret can have. Flux ignores an optional one.
func ignoredKeys(list, field string, v any) []Problem {
	var problems []Problem
	refs, _ := v.([]any)
	for i := range refs {
		key, _ := at(refs[i], field).(string)
		if why := validation.IsConfigMapKey(key); key != "" && len(why) > 0 {
			problems = append(problems, Problem{fmt.Sprintf("%s[%d].%s", list, i, field), fmt.Sprintf("is %q, which no key can be called: %s", key,
				why[0])})
		}
	}
	return problems
}

// ignoredVersion finds a version that is none, and one of a chart that has its version from the commit or bucket that it is in.
func ignoredVersion(body map[string]any) []Problem {
	const path = "chart.spec.version"
	if _, kind := IdleVersion(body); kind != "" {
		return []Problem{{path,
			fmt.Sprintf("has no effect on a chart from a %s: Flux takes the chart as it is there. Remove it, and let the source "+
				"say which one (ref)", kind)}}
	}
	return versionRange(path, at(body, "chart", "spec", "version"))
}

// IdleVersion returns the version that the body of a HelmRelease names, and the kind of the chart's source, if Flux takes the chart as it
// is in that source, whatever version is named. It returns "" and "" if the version counts, or none is named.
func IdleVersion(body map[string]any) (version, kind string) {
	spec := at(body, "chart", "spec")
	version, _ = at(spec, "version").(string)
	kind, _ = at(spec, "sourceRef", "kind").(string)
	if version == "" || version == "*" || kind != sourcev1.GitRepositoryKind && kind != sourcev1.BucketKind {
		return "", ""
	}
	return version, kind
}

func versionRange(path string, v any) []Problem {
	text, _ := v.(string)
	if _, err := semver.NewConstraint(text); err == nil || text == "" {
		return nil
	}
	return []Problem{{path,
		fmt.Sprintf("is %q, which is neither a version nor a range of versions; write one such as 4.0.1, 4.x or ^4.0", text)}}
}

// variableName matches the variables that Flux substitutes. One that does not match fails the whole folder.
var variableName = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

// ignoredSubstitutes finds variables of no name that Flux takes, and texts of several lines: Flux takes the ends of the lines away.
func ignoredSubstitutes(body map[string]any) []Problem {
	substitute, _ := at(body, "postBuild", "substitute").(map[string]any)
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(substitute)) {
		path, text := "postBuild.substitute."+name, ""
		if s, ok := substitute[name].(string); ok {
			text = strings.TrimRight(s, "\n")
		}
		switch {
		case !variableName.MatchString(name):
			problems = append(problems, Problem{path,
				"Flux takes no such name of a variable, and would apply nothing: write letters, digits and _, " +
					"and no digit first"})
		case strings.Contains(text, "\n"):
			problems = append(problems, Problem{path, "is of several lines, and Flux would write them without their ends as one; write one line, " +
				"such as base64 for the data of a Secret"})
		}
	}
	return problems
}

// ignoredPaths finds JSON pointers that are none, in rules of what drift Flux leaves alone.
func ignoredPaths(path string, v any) []Problem {
	var problems []Problem
	rules, _ := v.([]any)
	for i := range rules {
		paths, _ := at(rules[i], "paths").([]any)
		for j := range paths {
			if p, _ := paths[j].(string); p != "" && !strings.HasPrefix(p, "/") {
				problems = append(problems, Problem{fmt.Sprintf("%s[%d].paths[%d]", path, i, j),
					fmt.Sprintf("is %q, and must be a JSON pointer, such as "+
						"/spec/replicas; a / within a name is written ~1", p)})
			}
		}
	}
	return problems
}

// ociScheme is how the address of a registry begins.
const ociScheme = "oci://"

// IgnoredInSource returns what an API server takes in the spec of a source, and Flux then fails for.
func IgnoredInSource(kind string, spec map[string]any) []Problem {
	if kind != sourcev1.HelmRepositoryKind {
		return versionRange("ref.semver", at(spec, "ref", "semver"))
	}
	url, known := spec["url"].(string)
	typ, said := spec["type"]
	_, hole := typ.(Hole)
	isOCI := typ == sourcev1.HelmRepositoryTypeOCI
	switch {
	case !known || url == "" || hole:
	case strings.HasPrefix(url, ociScheme) && !isOCI && (!said || typ == nil):
		return []Problem{{"type", "is required: write type: oci, as the address is one of a registry (oci://)"}}
	case strings.HasPrefix(url, ociScheme) && !isOCI:
		return []Problem{{"type", fmt.Sprintf("is %v, and the address is one of a registry (oci://): write oci", typ)}}
	case isOCI && !strings.HasPrefix(url, ociScheme) && strings.Contains(url, "://"):
		return []Problem{{"url",
			fmt.Sprintf("is %q, and a HelmRepository of type oci has an address that begins with oci://; write that, or remove "+
				"the type", url)}}
	}
	return nil
}
