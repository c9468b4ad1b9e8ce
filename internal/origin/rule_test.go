// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// rules parses rules that are right.
func rules(t *testing.T, text string) []origin.Rule {
	t.Helper()
	return must.Get(origin.ParseRules("rules.yaml", []byte(text))).Or(t)
}

const someRules = `
rules:
- name: vcluster
  match: {kind: Secret, namespaces: [team-*, shared], labels: {app: vcluster}, names: vc-*}
  register: {name: "*", labels: {tier: dev}, key: config}
- name: hosted
  match: {kind: Secret, namespaces: [clusters], names: "*-admin-kubeconfig", owner: {apiGroup: hypershift.openshift.io, kind: HostedCluster}}
  register: {name: "hosted-*", key: kubeconfig}
- name: rest-of-shared
  match: {kind: Secret, namespaces: [shared], labels: {app: vcluster}}
- name: exact
  match: {kind: Secret, namespaces: ["*"], names: prod-kubeconfig}
  register: {name: prod}
- name: tenants
  match: {kind: TenantControlPlane, namespaces: [tenants]}
  register: {labels: {provider: kamaji}}
`

func TestRuling(t *testing.T) {
	policy := origin.Policy{Rules: rules(t, someRules)}
	dev := map[string]string{"tier": "dev"}
	for name, tc := range map[string]struct {
		kind   origin.Kind
		object string
		want   *origin.Ruling
	}{
		"Matches":            {origin.Secret, "{metadata: {name: vc-a, namespace: team-a, labels: {app: vcluster}}}", &origin.Ruling{Rule: "vcluster", Name: "a", Labels: dev, Key: "config"}},
		"AmongOtherLabels":   {origin.Secret, "{metadata: {name: vc-a, namespace: team-a, labels: {app: vcluster, x: z}}}", &origin.Ruling{Rule: "vcluster", Name: "a", Labels: dev, Key: "config"}},
		"TheFirstCounts":     {origin.Secret, "{metadata: {name: vc-a, namespace: shared, labels: {app: vcluster}}}", &origin.Ruling{Rule: "vcluster", Name: "a", Labels: dev, Key: "config"}},
		"ALaterOne":          {origin.Secret, "{metadata: {name: b, namespace: shared, labels: {app: vcluster}}}", &origin.Ruling{Rule: "rest-of-shared", Name: "b"}},
		"OtherNamespace":     {origin.Secret, "{metadata: {name: vc-a, namespace: other, labels: {app: vcluster}}}", nil},
		"NamespaceOfPrefix":  {origin.Secret, "{metadata: {name: vc-a, namespace: team-, labels: {app: vcluster}}}", nil},
		"NamespaceBegins":    {origin.Secret, "{metadata: {name: vc-a, namespace: shared-too, labels: {app: vcluster}}}", nil},
		"OtherLabel":         {origin.Secret, "{metadata: {name: vc-a, namespace: team-a, labels: {app: other}}}", nil},
		"NoLabel":            {origin.Secret, "{metadata: {name: vc-a, namespace: team-a}}", nil},
		"OtherName":          {origin.Secret, "{metadata: {name: a, namespace: team-a, labels: {app: vcluster}}}", nil},
		"NothingForTheStar":  {origin.Secret, "{metadata: {name: vc-, namespace: team-a, labels: {app: vcluster}}}", nil},
		"OtherKind":          {origin.Kamaji, "{metadata: {name: vc-a, namespace: team-a, labels: {app: vcluster}}}", nil},
		"Owner":              {origin.Secret, "{metadata: {name: x-admin-kubeconfig, namespace: clusters, ownerReferences: [{apiVersion: v1, kind: Pod}, {apiVersion: hypershift.openshift.io/v1beta1, kind: HostedCluster}]}}", &origin.Ruling{Rule: "hosted", Name: "hosted-x", Key: "kubeconfig"}},
		"OwnerOfOtherGroup":  {origin.Secret, "{metadata: {name: x-admin-kubeconfig, namespace: clusters, ownerReferences: [{apiVersion: example.org/v1, kind: HostedCluster}]}}", nil},
		"OwnerOfOtherKind":   {origin.Secret, "{metadata: {name: x-admin-kubeconfig, namespace: clusters, ownerReferences: [{apiVersion: hypershift.openshift.io/v1beta1, kind: NodePool}]}}", nil},
		"OwnerNone":          {origin.Secret, "{metadata: {name: x-admin-kubeconfig, namespace: clusters}}", nil},
		"OwnerUnreadable":    {origin.Secret, "{metadata: {name: x-admin-kubeconfig, namespace: clusters, ownerReferences: [{apiVersion: a/b/c, kind: HostedCluster}]}}", nil},
		"Exact":              {origin.Secret, "{metadata: {name: prod-kubeconfig, namespace: x}}", &origin.Ruling{Rule: "exact", Name: "prod"}},
		"NearlyExact":        {origin.Secret, "{metadata: {name: prod-kubeconfig2, namespace: x}}", nil},
		"Tenant":             {origin.Kamaji, "{metadata: {name: t1, namespace: tenants}}", &origin.Ruling{Rule: "tenants", Name: "t1", Labels: map[string]string{"provider": "kamaji"}}},
		"TheHubsOwnCopy":     {origin.Secret, "{metadata: {name: vc-a, namespace: team-a, labels: {app: vcluster, " + hubv1.CopyLabel + ": 'true'}}}", nil},
		"TheCopyOfATeam":     {origin.Secret, "{metadata: {name: vc-a, namespace: team-a, labels: {app: vcluster, " + hubv1.CopyLabel + ": team}}}", nil},
		"LabelledAlso":       {origin.Secret, "{metadata: {name: vc-a, namespace: team-a, labels: {app: vcluster, chandler.dev/register: 'true'}}}", &origin.Ruling{Rule: "vcluster", Name: "a", Labels: dev, Key: "config"}},
		"AsTheSameTextTwice": {origin.Secret, "{metadata: {name: vc-vc-a, namespace: team-a, labels: {app: vcluster}}}", &origin.Ruling{Rule: "vcluster", Name: "vc-a", Labels: dev, Key: "config"}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := object(t, tc.object)
			got := policy.Ruling(tc.kind, obj)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Fatalf("-want +got:\n%s", d)
			}
			if got == nil {
				return
			}
			found := false // from its name
			for _, name := range policy.OriginNames(tc.kind, got.Name) {
				found = found || name == obj.GetName()
			}
			if !found {
				t.Errorf("of what is registered as %q: %v", got.Name, policy.OriginNames(tc.kind, got.Name))
			}
		})
	}
	if got := (origin.Policy{}).Ruling(origin.Secret, object(t, "{metadata: {name: vc-a}}")); got != nil {
		t.Errorf("without rules: %+v", got)
	}
}

// TestJudgeByRule: a rule stands in for the label, and for nothing else.
func TestJudgeByRule(t *testing.T) {
	by := &origin.Ruling{Rule: "vcluster", Name: "a", Labels: map[string]string{"tier": "dev"}, Key: "config"}
	secret := func(extra, more string) string {
		return "{metadata: {name: vc-a, namespace: team-a, labels: {app: vcluster" + extra + "}" + more + "}}"
	}
	allowed, forbidden := map[string]string{hubv1.RegisterSecretsLabel: "true"}, map[string]string{}
	deleted := ", deletionTimestamp: '2026-11-21T12:00:00Z'"
	for name, tc := range map[string]struct {
		object  string
		labels  map[string]string
		cluster bool
		want    origin.Verdict
	}{
		"Registers":      {object: secret("", ""), labels: allowed, want: origin.Verdict{Origin: teardown.OriginWanted, By: by}},
		"LabelToo":       {object: secret(", chandler.dev/register: 'true'", ""), labels: allowed, want: origin.Verdict{Origin: teardown.OriginWanted, By: by}},
		"FalseWins":      {object: secret(", chandler.dev/register: 'false'", ""), labels: allowed, want: origin.Verdict{Origin: teardown.OriginUnwanted, AtOnce: true, By: by}},
		"AnotherWord":    {object: secret(", chandler.dev/register: 'no'", ""), labels: allowed, want: origin.Verdict{Origin: teardown.OriginUnwanted, Refused: `label chandler.dev/register is "no"; write "true" or "false"`, By: by}},
		"NotInNamespace": {object: secret("", ""), labels: forbidden, want: origin.Verdict{Origin: teardown.OriginUnwanted, Reason: hubv1.NamespaceNotAllowedReason, By: by, Refused: `Secrets in namespace "team-a" may not register clusters; label chandler.dev/register-secrets: "true" on the Namespace allows it, or --secret-namespaces`}},
		"OfACluster":     {object: secret(", cluster.x-k8s.io/cluster-name: c1", ""), labels: allowed, cluster: true, want: origin.Verdict{Origin: teardown.OriginUnwanted, By: by, Refused: `it belongs to Cluster "c1" of Cluster API; label that instead`}},
		"Deleted":        {object: secret("", deleted), labels: allowed, want: origin.Verdict{Origin: teardown.OriginGone, Copied: true, By: by}},
		"DeletedThere":   {object: secret("", deleted), labels: forbidden, want: origin.Verdict{Origin: teardown.OriginGone, By: by}},
		"NoName":         {object: "{metadata: {name: vc-.a, namespace: team-a, labels: {app: vcluster}}}", labels: allowed, want: origin.Verdict{Origin: teardown.OriginUnwanted, By: &origin.Ruling{Rule: "vcluster", Name: ".a", Labels: by.Labels, Key: "config"}, Refused: `rule "vcluster" would register it as ".a", which is no name: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`}},
		"NoMatch":        {object: "{metadata: {name: a, namespace: team-a, labels: {app: vcluster}}}", labels: allowed, want: origin.Verdict{Origin: teardown.OriginUnwanted}},
	} {
		t.Run(name, func(t *testing.T) {
			p := origin.Policy{Rules: rules(t, someRules)}
			got := p.Judge(origin.Secret, object(t, tc.object), origin.Around{NamespaceLabels: tc.labels, ClusterExists: func(string) bool { return tc.cluster }})
			must.Equal(t, tc.want, got)
		})
	}
	// It registers a TenantControlPlane wherever the rule says: that is the cluster itself.
	p := origin.Policy{Rules: rules(t, someRules)}
	if got := p.Judge(origin.Kamaji, object(t, "{metadata: {name: t1, namespace: tenants}}"), origin.Around{}); got.Origin != teardown.OriginWanted {
		t.Errorf("of a tenant: %+v", got)
	}
}

func TestRuledLabelsAndKey(t *testing.T) {
	r := &origin.Ruling{Labels: map[string]string{"tier": "dev"}}
	if d := cmp.Diff(map[string]string{"tier": "dev", "app": "vcluster"}, r.Over(map[string]string{"tier": "prod", "app": "vcluster"})); d != "" {
		t.Errorf("the rule's count before the origin's: -want +got:\n%s", d)
	}
	if d := cmp.Diff(map[string]string{"a": "b"}, (*origin.Ruling)(nil).Over(map[string]string{"a": "b"})); d != "" {
		t.Errorf("no rule: -want +got:\n%s", d)
	}
	for want, tc := range map[string]struct {
		by  *origin.Ruling
		key string
	}{"config": {&origin.Ruling{Key: "config"}, ""}, "own": {&origin.Ruling{Key: "config"}, "own"}, "": {nil, ""}} {
		if got := (origin.Verdict{By: tc.by}).Keyed(origin.Source{Key: tc.key}).Key; got != want {
			t.Errorf("the key is %q, want %q", got, want)
		}
	}
}
