// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/origin"
)

func TestParseRules(t *testing.T) {
	got, err := origin.ParseRules("r.yaml", []byte("# what registers by itself\n---\nrules:\n- name: k3k\n  match: {kind: Secret, namespaces: ['k3k-*'], owner: {apiGroup: k3k.io, kind: Cluster}, names: k3k-*-kubeconfig}\n"+
		"  register: {name: '*', labels: {tier: dev}, key: kubeconfig.yaml}\n"))
	want := []origin.Rule{{Name: "k3k", Match: origin.RuleMatch{Kind: "Secret", Namespaces: []string{"k3k-*"}, Owner: &origin.RuleOwner{APIGroup: "k3k.io", Kind: "Cluster"}, Names: "k3k-*-kubeconfig"},
		Register: origin.RuleRegister{Name: "*", Labels: map[string]string{"tier": "dev"}, Key: "kubeconfig.yaml"}}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v; -want +got:\n%s", err, d)
	}
}

// TestRefusedRules: each mistake is told with the file, the rule, the field, and what is wrong.
func TestRefusedRules(t *testing.T) {
	one := func(match, register string) string {
		return "rules: [{name: a, match: {" + match + "}, register: {" + register + "}}]"
	}
	right := "kind: Secret, namespaces: [team-a], names: vc-*"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"Empty":            {"", []string{`r.yaml: rules: write at least one rule; without any, leave out the file`}},
		"Comment":          {"# rules\n", []string{`r.yaml: rules: write at least one rule`}},
		"NoRules":          {"rules: []", []string{`r.yaml: rules: write at least one rule`}},
		"NoYAML":           {"rules: [", []string{`r.yaml: `}},
		"AList":            {"[]", []string{`r.yaml: json: cannot unmarshal array`}},
		"Documents":        {"rules: []\n---\nrules: []", []string{`r.yaml: it has several documents: write all rules into one`}},
		"Twice":            {"rules: []\nrules: []", []string{`key "rules" already set in map`}},
		"UnknownAtTheTop":  {"rules: []\nrule: []", []string{`r.yaml: unknown field "rule"`}},
		"Unknown":          {one(right+", label: {a: b}", ""), []string{`r.yaml: rule "a": match.label: there is no such field`}},
		"UnknownOfNoName":  {"rules: [{}, {match: {}, as: x}]", []string{`r.yaml: rule number 2: as: there is no such field`}},
		"WrongCase":        {one("Kind: Secret, namespaces: [team-a], names: vc-*", ""), []string{`r.yaml: rule "a": match.Kind: there is no such field`}},
		"ABoolean":         {one(right+", labels: {a: true}", ""), []string{`r.yaml: json: cannot unmarshal bool into Go struct field`, `match.labels`}},
		"NoName":           {"rules: [{match: {" + right + "}}]", []string{`r.yaml: rule number 1: name: write one`}},
		"BadName":          {"rules: [{name: A b, match: {" + right + "}}]", []string{`r.yaml: rule "A b": name: a lowercase RFC 1123 label`}},
		"OneName":          {"rules: [{name: a, match: {" + right + "}}, {name: a, match: {" + right + "}}]", []string{`r.yaml: rule "a": name: another rule has it too`}},
		"NoKind":           {one("namespaces: [team-a], names: vc-*", ""), []string{`r.yaml: rule "a": match.kind: is ""; write one of TenantControlPlane, Cluster, Secret, ClusterProfile`}},
		"BadKind":          {one("kind: HostedCluster, namespaces: [team-a]", ""), []string{`match.kind: is "HostedCluster"; write one of`}},
		"NoNamespaces":     {one("kind: Secret, names: vc-*", ""), []string{`r.yaml: rule "a": match.namespaces: write names of namespaces, or patterns such as team-*; * for all`}},
		"EmptyNamespace":   {one("kind: Secret, namespaces: [''], names: vc-*", ""), []string{`match.namespaces: an empty text matches nothing`}},
		"BadNamespace":     {one("kind: Secret, namespaces: [Team], names: vc-*", ""), []string{`match.namespaces: "Team" can be no name: a lowercase`}},
		"TwoWildcards":     {one("kind: Secret, namespaces: ['*-a-*'], names: vc-*", ""), []string{`match.namespaces: "*-a-*" has more than one *`}},
		"BadNames":         {one("kind: Secret, namespaces: [team-a], names: 'vc_*'", ""), []string{`match.names: "vc_*" can be no name`}},
		"ARegexp":          {one("kind: Secret, namespaces: [team-a], names: 'vc-.+'", ""), []string{`match.names: "vc-.+" can be no name`}},
		"AnyNames":         {one("kind: Secret, namespaces: [team-a], names: '*'", ""), []string{`r.yaml: rule "a": match: it matches every Secret: write labels, owner or names`}},
		"Everything":       {one("kind: ClusterProfile, namespaces: [team-a]", ""), []string{`match: it matches every ClusterProfile`}},
		"BadLabel":         {one(right+", labels: {'a b': c}", ""), []string{`match.labels: "a b": name part must consist of`}},
		"BadValue":         {one(right+", labels: {a: 'b c'}", ""), []string{`match.labels: a: a valid label must be`}},
		"TheHubsLabel":     {one(right+", labels: {chandler.dev/register: 'true'}", ""), []string{`match.labels: chandler.dev/register is a label of the hub, by which no rule matches`}},
		"NoOwner":          {one(right+", owner: {apiGroup: apps}", ""), []string{`match.owner.kind: is ""; write the kind of an owner, such as StatefulSet`}},
		"OwnerWithVersion": {one(right+", owner: {apiGroup: apps/v1, kind: StatefulSet}", ""), []string{`match.owner.apiGroup: is "apps/v1"; write a group without a version`}},
		"OneNameForAll":    {one(right, "name: prod"), []string{`register.name: is "prod" for all that the rule matches: write * for what the * of match.names stands for`}},
		"OneNameForAny":    {one("kind: Secret, namespaces: [team-a], labels: {a: b}", "name: prod"), []string{`register.name: is "prod" for all`}},
		"StarOfNothing":    {one("kind: Secret, namespaces: [team-a], labels: {a: b}", "name: vc-*"), []string{`register.name: is "vc-*", and match.names has no * that it could stand for`}},
		"BadRegistration":  {one(right, "name: 'A-*'"), []string{`register.name: "A-*" can be no name`}},
		"BadNewLabel":      {one(right, "labels: {a: 'b c'}"), []string{`register.labels: a: a valid label must be`}},
		"AMark":            {one(right, "labels: {app.kubernetes.io/managed-by: x}"), []string{`register.labels: app.kubernetes.io/managed-by is the mark of a tool, which owns what has it`}},
		"TheHubsNewLabel":  {one(right, "labels: {chandler.dev/name: x}"), []string{`register.labels: chandler.dev/name is the mark of a tool`}},
		"BadKey":           {one(right, "key: 'a/b'"), []string{`register.key: a valid config key must consist of`}},
		"KeyOfATenant":     {one("kind: TenantControlPlane, namespaces: [team-a]", "key: config"), []string{`register.key: a TenantControlPlane says itself where its kubeconfig is: leave it out`}},
		"AllOfThem":        {"rules: [{name: a, match: {kind: Secret}}, {name: b, match: {kind: X, namespaces: [a]}}]", []string{`rule "a": match.namespaces`, `rule "a": match: it`, `rule "b": match.kind`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := origin.ParseRules("r.yaml", []byte(tc.text))
			if err == nil || got != nil {
				t.Fatalf("it is accepted: %+v", got)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("there is no %q in\n%v", want, err)
				}
			}
		})
	}
}

func FuzzParseRules(f *testing.F) {
	f.Add([]byte(someRules))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got, err := origin.ParseRules("r.yaml", raw); err == nil && len(got) == 0 {
			t.Error("no rules, and no error")
		}
	})
}
