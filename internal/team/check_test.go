// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/team"
)

func TestGoodTeams(t *testing.T) {
	for _, spec := range []string{
		"namespaces: [{name: apps}]",
		"namespaces: [{name: apps}], clusterRole: cluster-admin", // in the team's namespaces, and nowhere else
		"namespaces: [{name: apps}], clusterRole: 'system:aggregate-to-edit'",
		"namespaces: [{name: apps, labels: {team.example.org/name: x, empty: '', pod-security.kubernetes.io/warn: restricted, pod-security.kubernetes.io/audit: baseline}}]",
		"namespaces: [{name: defaults}, {name: kube}, {name: kubernetes}, {name: flux-system-2}, {name: chandler}]",
		"namespaces: [{name: apps, resourceQuota: {hard: {count/deployments.apps: 1, requests.nvidia.com/gpu: 0, gold.storageclass.storage.k8s.io/requests.storage: 1Gi}}}]",
		"namespaces: [{name: 'apps-<< cluster.name >>'}, {name: 'apps-<< cluster.labels.region >>-<< cluster.version.minor >>'}]",
		"namespaces: [{name: apps}], hubNamespaces: [dev, dev-2]",
	} {
		in := plain(t, "dev", spec)
		if err := team.Check(in); err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		compiled(t, "dev", bootstrap(t, in))
	}
}

func TestBadTeams(t *testing.T) {
	ns := func(rest string) string { return "namespaces: [{name: apps, " + rest + "}]" }
	for _, c := range []struct{ spec, path, message string }{
		{"namespaces: [{name: kube-system}]", "spec.namespaces[kube-system].name", "kept for Kubernetes"},
		{"namespaces: [{name: kube-anything}]", "spec.namespaces[kube-anything].name", "kept for Kubernetes"},
		{"namespaces: [{name: kube-public}]", "spec.namespaces[kube-public].name", "write another name"},
		{"namespaces: [{name: default}]", "spec.namespaces[default].name", "Helm's records"},
		{"namespaces: [{name: flux-system}]", "spec.namespaces[flux-system].name", "kept for Flux"},
		{"namespaces: [{name: chandler-system}]", "spec.namespaces[chandler-system].name", "kept for the hub"},
		{"namespaces: [{name: chandler-dev}]", "spec.namespaces[chandler-dev].name", "ServiceAccounts of teams"},
		{"namespaces: [{name: chandler-other}]", "spec.namespaces[chandler-other].name", "ServiceAccounts of teams"},
		{"namespaces: [{name: Apps}]", "spec.namespaces[Apps].name", "lower"},
		{"namespaces: [{name: a.b}]", "spec.namespaces[a.b].name", "no name of a namespace"},
		{"namespaces: [{name: " + strings.Repeat("a", 64) + "}]", ".name", "63"},
		{"namespaces: [{name: apps}, {name: apps}]", "spec.namespaces[apps].name", "there twice"},

		{"namespaces: [{name: '<< cluster.name >>'}]", "spec.namespaces[<< cluster.name >>].name", `could become "kube-system"`},
		{"namespaces: [{name: 'kube-<< cluster.name >>'}]", ".name", `could become "kube-system"`},
		{"namespaces: [{name: 'kube-apps-<< cluster.name >>'}]", ".name", "kept for Kubernetes"},
		{"namespaces: [{name: 'def<< cluster.labels.x >>'}]", ".name", `could become "default"`},
		{"namespaces: [{name: 'c<< cluster.labels.x >>'}]", ".name", `could become "chandler-system"`},
		{"namespaces: [{name: 'apps-<< cluster.nmae >>'}]", ".name", "nmae"},
		{"namespaces: [{name: 'apps-<< cluster.name'}]", ".name", "closing"},
		{"namespaces: [{name: 'apps-<< vars.x >>'}]", ".name", "only cluster may be read here"},
		{"namespaces: [{name: \"apps-<< string(vars['a' + 'b']) >>\"}]", ".name", "only cluster may be read here"},
		{"namespaces: [{name: 'apps-<< origin.metadata.name >>'}]", ".name", "only cluster may be read here"},
		{"namespaces: [{name: 'Apps-<< cluster.name >>'}]", ".name", `such as "Apps-x"`},
		{"namespaces: [{name: '-<< cluster.name >>'}]", ".name", `such as "-x"`},
		{"namespaces: [{name: 'apps-<< cluster.name >>-'}]", ".name", `such as "apps-x-"`},
		{"namespaces: [{name: 'apps-<< cluster.name >>_a'}]", ".name", `such as "apps-x_a"`},
		{"namespaces: [{name: 'apps<<<-<< cluster.name >>'}]", ".name", `such as "apps<<-x"`},
		{"namespaces: [{name: 'apps<<<'}]", ".name", `such as "apps<<"`},

		{ns("labels: {chandler.dev/team: other}"), "spec.namespaces[apps].labels[chandler.dev/team]", "Remove it"},
		{ns("labels: {x.chandler.dev/y: z}"), "spec.namespaces[apps].labels[x.chandler.dev/y]", "the hub's"},
		{ns("labels: {pod-security.kubernetes.io/enforce: privileged}"), "spec.namespaces[apps].labels[pod-security.kubernetes.io/enforce]", "write podSecurity"},
		{ns("labels: {pod-security.kubernetes.io/enforce-version: v1.20}"), "labels[pod-security.kubernetes.io/enforce-version]", "write podSecurity"},
		{ns("labels: {kubernetes.io/metadata.name: kube-system}"), "labels[kubernetes.io/metadata.name]", "Kubernetes or Helm sets it"},
		{ns("labels: {app.kubernetes.io/managed-by: me}"), "labels[app.kubernetes.io/managed-by]", "Kubernetes or Helm sets it"},
		{ns("labels: {'a b': c}"), "spec.namespaces[apps].labels[a b]", "no key of a label"},
		{ns("labels: {a: 'b c'}"), "spec.namespaces[apps].labels[a]", "no label has such a value"},
		{ns("labels: {a: << cluster.name >>}"), "spec.namespaces[apps].labels[a]", "begins an expression"},
		{ns("labels: {'<< cluster.name >>': a}"), "spec.namespaces[apps].labels[<< cluster.name >>]", "begins an expression"},
		{ns("podSecurity: strict"), "spec.namespaces[apps].podSecurity", "privileged, baseline, restricted"},
		{ns("networkPolicy: Open"), "spec.namespaces[apps].networkPolicy", "None or Isolated"},

		{ns("resourceQuota: {}"), "spec.namespaces[apps].resourceQuota.hard", "limits nothing"},
		{ns("resourceQuota: {scopes: [BestEffort]}"), "spec.namespaces[apps].resourceQuota.hard", "limits nothing"},
		{ns("resourceQuota: {hard: {pods: -1}}"), "spec.namespaces[apps].resourceQuota.hard[pods]", "write 0 or more"},
		{ns("resourceQuota: {hard: {'a b': 1}}"), "spec.namespaces[apps].resourceQuota.hard[a b]", "no name of a resource"},
		{ns("resourceQuota: {hard: {'<< cluster.name >>': 1}}"), "spec.namespaces[apps].resourceQuota.hard.<< cluster.name >>", "begins an expression"},
		{ns("resourceQuota: {hard: {pods: 1}, scopes: ['<< cluster.name >>']}"), "spec.namespaces[apps].resourceQuota.scopes[0]", "begins an expression"},
		{ns("resourceQuota: {hard: {pods: 1}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [low, 'x<<y']}]}}"),
			"spec.namespaces[apps].resourceQuota.scopeSelector.matchExpressions[0].values[1]", "Write a plain text"},
		{ns("limitRange: {limits: []}"), "spec.namespaces[apps].limitRange.limits", "limits nothing"},
		{ns("limitRange: {limits: [{type: Container}]}"), "spec.namespaces[apps].limitRange.limits[0]", "limits nothing"},
		{ns("limitRange: {limits: [{max: {cpu: 1}}]}"), "spec.namespaces[apps].limitRange.limits[0].type", "is required"},
		{ns("limitRange: {limits: [{type: '<< cluster.name >>', max: {cpu: 1}}]}"), "spec.namespaces[apps].limitRange.limits[0].type", "begins an expression"},
		{ns("limitRange: {limits: [{type: Pod, defaultRequest: {cpu: -1}}]}"), "spec.namespaces[apps].limitRange.limits[0].defaultRequest[cpu]", "0 or more"},

		{"namespaces: [{name: apps}], clusterRole: a/b", "spec.clusterRole", "may not contain '/'"},
		{"namespaces: [{name: apps}], clusterRole: '<< cluster.labels.role >>'", "spec.clusterRole", "begins an expression"},
		{"namespaces: [{name: apps}], hubNamespaces: [a, b, a]", "spec.hubNamespaces[2]", `"a" is there twice`},
		{"namespaces: [{name: apps}], clusterSelector: {matchLabels: {a: b}}", "spec.clusterSelector", "not both"},
	} {
		in := plain(t, "dev", c.spec)
		only(t, c.spec, team.Check(in), c.path, c.message)
		if _, err := team.Bootstrap(in); err == nil {
			t.Errorf("%s is brought to clusters", c.spec)
		}
	}
	for name, message := range map[string]string{
		"system": "chandler-system", "default": "ServiceAccount", "a.b": "another name", "A": "another name", "": "another name",
		strings.Repeat("a", 44): "room for 43",
	} {
		only(t, name, team.Check(plain(t, name, "namespaces: [{name: apps}]")), "metadata.name", message)
	}
	elsewhere := plain(t, "dev", "namespaces: [{name: platform}]")
	elsewhere.Namespace = "platform"
	only(t, "its own namespace", team.Check(elsewhere), "spec.namespaces[platform].name", "kept for the platform")
}

// only checks that there is one problem: one mistake gives one message.
func only(t *testing.T, what string, err error, path, message string) {
	t.Helper()
	var errs team.Errors
	if !errors.As(err, &errs) || len(errs) != 1 || !strings.HasSuffix(errs[0].Path, path) || !strings.Contains(errs[0].Message, message) {
		t.Errorf("%s: %v, want one error at %s with %q", what, err, path, message)
	}
}

func TestAllProblems(t *testing.T) {
	err := team.Check(plain(t, "dev", "hubNamespaces: [a, a], namespaces: [{name: default, labels: {chandler.dev/x: y}}, {name: web, resourceQuota: {}}]"))
	var errs team.Errors
	if !errors.As(err, &errs) || len(errs) != 4 {
		t.Fatalf("%v", err)
	}
	for _, p := range errs {
		if want := p.Path + ": " + p.Message; !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}

// TestNoClusterMakesAnotherName tries every way to complete a text to the name of a namespace that no team may have. A cluster's label may be
// its owner's, who would make a team the admin of kube-system by it.
func TestNoClusterMakesAnotherName(t *testing.T) {
	forbidden := []string{"kube-system", "kube-public", "kube-node-lease", "kube-flannel", "default", "flux-system", "chandler-system", "chandler-dev", "chandler-other"}
	for _, name := range forbidden {
		for cut := 0; cut <= len(name); cut++ {
			for _, end := range []string{"", "<< '' >>", "<< cluster.?labels['y'].orValue('') >>"} {
				text := name[:cut] + "<< cluster.labels.x >>" + end
				in := expression.Input{Cluster: &expression.Cluster{Labels: map[string]string{"x": name[cut:]}}}
				if got := evaluated(t, text, in); got != name {
					t.Fatalf("%s gives %q, want %q", text, got, name)
				}
				if err := team.Check(plain(t, "dev", fmt.Sprintf("namespaces: [{name: %q}]", text))); err == nil {
					t.Errorf("%s is taken, and gives %q", text, name)
				}
			}
		}
	}
}

// TestNoNameIsTakenThatBecomesAnother is the same from the other end: whatever is taken never gives such a name.
func TestNoNameIsTakenThatBecomesAnother(t *testing.T) {
	values := []string{"", "-", "-system", "system", "kube-system", "default", "lt", "ault", "ube-system", "ndler-other", "\nkube-system", "../kube-system", "x"}
	taken := 0
	for _, prefix := range []string{"", "a", "apps", "apps-", "k", "kube", "kube-", "kubes", "d", "defau", "default", "default-", "flux-", "flux-system-", "chan", "chandler", "chandler-", "chandlers"} {
		for _, hole := range []string{"<< cluster.labels.x >>", "<<cluster.labels.x>>-y", "<< 'a' == 'b' ? '' : cluster.labels.x >>", "<< cluster.labels.x >><< cluster.labels.x >>"} {
			text := prefix + hole
			if team.Check(plain(t, "dev", fmt.Sprintf("namespaces: [{name: %q}]", text))) != nil {
				continue
			}
			taken++
			for _, x := range values {
				got := evaluated(t, text, expression.Input{Cluster: &expression.Cluster{Labels: map[string]string{"x": x}}})
				if bad := got == "default" || got == "flux-system" || strings.HasPrefix(got, "kube-") || strings.HasPrefix(got, "chandler-"); bad {
					t.Errorf("%s is taken, and gives %q where the label is %q", text, got, x)
				}
			}
		}
	}
	if taken < 20 {
		t.Errorf("only %d names are taken", taken)
	}
}

func evaluated(t *testing.T, text string, in expression.Input) string {
	t.Helper()
	e, err := expression.Compile(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	v, err := e.Eval(in)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return fmt.Sprint(v)
}

// TestNoTeamHasTheAccountOfAnother: Check does not look at other Teams, so nothing that one Team may have may be another's ServiceAccount.
func TestNoTeamHasTheAccountOfAnother(t *testing.T) {
	for _, other := range []string{"a", "other", "system", "default", "kube"} {
		in := &hubv1.Team{}
		in.Name, in.Namespace, in.Spec.SelectAll = "dev", "flux-system", true
		in.Spec.Namespaces = []hubv1.TeamNamespace{{Name: team.AccountNamespace(other)}}
		if team.Check(in) == nil {
			t.Errorf("Team dev may have %s, and so request tokens of Team %s", team.AccountNamespace(other), other)
		}
	}
}
