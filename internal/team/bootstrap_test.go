// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/golden"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/team"
)

// of reads a Team.
func of(t *testing.T, text string) *hubv1.Team {
	t.Helper()
	out := &hubv1.Team{}
	must.Do(t, yaml.UnmarshalStrict([]byte(text), out))
	return out
}

// plain returns a Team of that name in flux-system, with every cluster, and the rest of its spec.
func plain(t *testing.T, name, spec string) *hubv1.Team {
	t.Helper()
	out := of(t, "spec: {selectAll: true, "+spec+"}")
	out.Name, out.Namespace = name, "flux-system"
	return out
}

func bootstrap(t *testing.T, in *hubv1.Team) *hubv1.AddonSetSpec {
	t.Helper()
	return must.Get(team.Bootstrap(in)).Or(t)
}

// compiled compiles a bootstrap as the hub does.
func compiled(t *testing.T, name string, spec *hubv1.AddonSetSpec) *compile.Program {
	t.Helper()
	return must.Get(compile.Compile(spec, compile.Author{Namespace: "flux-system", Set: team.SetName(name), Platform: true})).Or(t)
}

// objects returns the objects of a bootstrap.
func objects(t *testing.T, spec *hubv1.AddonSetSpec) []unstructured.Unstructured {
	t.Helper()
	var body struct{ Objects []map[string]any }
	must.Do(t, json.Unmarshal(spec.Addons[0].Manifests.Raw, &body))
	out := make([]unstructured.Unstructured, len(body.Objects))
	for i := range out {
		out[i].Object = body.Objects[i]
	}
	return out
}

// TestGolden bootstraps every Team under testdata, which the API server would take, and compiles what comes out.
func TestGolden(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("there are no cases", err)
	}
	schema := crdschema.Ours("Team")
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			raw := must.Read(t, filepath.Join(dir, "in.yaml"))
			if err := schema.Refuses(raw); err != nil {
				t.Errorf("the API server would refuse it: %v", err)
			}
			in := of(t, string(raw))
			before := in.DeepCopy()
			spec := bootstrap(t, in)
			if d := cmp.Diff(before, in); d != "" {
				t.Errorf("the Team was changed:\n%s", d)
			}
			compiled(t, in.Name, spec)
			if _, err := match.New(match.Reach{Namespace: in.Namespace, Platform: true}, spec); err != nil {
				t.Error(err)
			}
			got := must.Get(yaml.Marshal(spec)).Or(t)
			golden.Compare(t, filepath.Join(dir, "want.yaml"), string(got))
		})
	}
}

func TestTheOrderOfNamespacesMeansNothing(t *testing.T) {
	a := plain(t, "dev", "namespaces: [{name: apps}, {name: jobs}, {name: web}]")
	b := plain(t, "dev", "namespaces: [{name: web}, {name: apps}, {name: jobs}]")
	if d := cmp.Diff(bootstrap(t, a), bootstrap(t, b)); d != "" {
		t.Errorf("a fleet would be rolled for nothing:\n%s", d)
	}
	if got := b.Spec.Namespaces[0].Name; got != "web" {
		t.Errorf("the Team was sorted: %s comes first", got)
	}
}

// TestWhatStays: of what is brought to a cluster, only the team's namespaces may outlast the team. Its rights go.
func TestWhatStays(t *testing.T) {
	for policy, want := range map[string][]string{"Orphan": {"apps", "jobs"}, "": {"apps", "jobs"}, "Delete": nil} {
		in := plain(t, "dev", "namespaces: [{name: apps, resourceQuota: {hard: {pods: 1}}, networkPolicy: Isolated}, {name: jobs}]")
		in.Spec.DeletionPolicy = hubv1.DeletionPolicy(policy)
		spec := bootstrap(t, in)
		var kept []string
		for _, o := range objects(t, spec) {
			if v, ok := o.GetAnnotations()["helm.sh/resource-policy"]; ok {
				if o.GetKind() != "Namespace" || v != "keep" {
					t.Errorf("%q: %s %s has %q", policy, o.GetKind(), o.GetName(), v)
				}
				kept = append(kept, o.GetName())
			}
		}
		if !slices.Equal(kept, want) {
			t.Errorf("%q keeps %q, want %q", policy, kept, want)
		}
		if a := spec.Addons[0]; a.DeletionPolicy != hubv1.DeletionPolicyDelete || spec.DeletionPolicy == hubv1.DeletionPolicyOrphan || a.Optional {
			t.Errorf("%q: the team's rights may stay: %q, %q, %t", policy, a.DeletionPolicy, spec.DeletionPolicy, a.Optional)
		}
	}
}

// TestRights: each namespace of the team has one binding, of the role to the ServiceAccount, and nothing else grants anything.
func TestRights(t *testing.T) {
	in := plain(t, "dev", "namespaces: [{name: apps}, {name: jobs}]")
	binding := func(role string) map[string]string {
		in.Spec.ClusterRole = role
		found := map[string]string{}
		for _, o := range objects(t, bootstrap(t, in)) {
			switch o.GetKind() {
			case "RoleBinding":
				ref, _, _ := unstructured.NestedStringMap(o.Object, "roleRef")
				want := map[string]string{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
				if role == "" {
					want["name"] = "admin"
				}
				subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
				if d := cmp.Diff(want, ref) + cmp.Diff([]any{map[string]any{"kind": "ServiceAccount", "namespace": "chandler-dev", "name": "dev"}}, subjects); d != "" {
					t.Error(d)
				}
				found[o.GetNamespace()] = o.GetName()
			case "Namespace", "ServiceAccount", "ResourceQuota":
			default:
				t.Errorf("there is a %s %s", o.GetKind(), o.GetName())
			}
		}
		return found
	}
	admin, edit := binding(""), binding("edit")
	if len(admin) != 2 || admin["apps"] == "" || admin["jobs"] == "" {
		t.Errorf("bindings are in %v", admin)
	}
	if admin["apps"] == edit["apps"] {
		t.Errorf("%s would have to change its role, which Kubernetes refuses", admin["apps"])
	}
	long := "platform:" + strings.Repeat("a", 240)
	if name := binding(long)["apps"]; len(name) > 253 {
		t.Errorf("a binding's name has %d characters", len(name))
	}
}

// TestTheAccountIsNobodys: no namespace in which the team has rights is that of a ServiceAccount, and nothing runs there.
func TestTheAccountIsNobodys(t *testing.T) {
	in := plain(t, "dev", "namespaces: [{name: apps, podSecurity: privileged}]")
	var accounts, quotas int
	for _, o := range objects(t, bootstrap(t, in)) {
		if o.GetLabels()[hubv1.TeamLabel] != "dev" {
			t.Errorf("%s %s has labels %v", o.GetKind(), o.GetName(), o.GetLabels())
		}
		switch {
		case o.GetKind() == "ServiceAccount":
			accounts++
			if mount, found, _ := unstructured.NestedBool(o.Object, "automountServiceAccountToken"); mount || !found || o.GetName() != "dev" || o.GetNamespace() != team.AccountNamespace("dev") {
				t.Errorf("the ServiceAccount is %v", o.Object)
			}
		case o.GetName() == team.AccountNamespace("dev") && o.GetKind() == "Namespace":
			if o.GetLabels()["pod-security.kubernetes.io/enforce"] != "restricted" {
				t.Errorf("the account's namespace has labels %v", o.GetLabels())
			}
		case o.GetNamespace() == team.AccountNamespace("dev"):
			quotas++
			if pods, _, _ := unstructured.NestedString(o.Object, "spec", "hard", "pods"); o.GetKind() != "ResourceQuota" || pods != "0" {
				t.Errorf("there is %v", o.Object)
			}
		}
	}
	if accounts != 1 || quotas != 1 {
		t.Errorf("there are %d ServiceAccounts and %d quotas", accounts, quotas)
	}
}

func TestBootstrapOfWhatIsRefused(t *testing.T) {
	if spec, err := team.Bootstrap(plain(t, "dev", "namespaces: [{name: kube-system}]")); err == nil || spec != nil {
		t.Errorf("%v, %v", spec, err)
	}
}

// TestTheLongestName is the one that the compiler still takes.
func TestTheLongestName(t *testing.T) {
	name := strings.Repeat("a", 43)
	in := plain(t, name, "namespaces: [{name: apps}]")
	compiled(t, name, bootstrap(t, in))
	if got := team.AccountNamespace(name); len(got) > 63 {
		t.Errorf("%s has %d characters", got, len(got))
	}
	in.Name += "a"
	if err := team.Check(in); err == nil {
		t.Error("a name of 44 characters is taken")
	}
}

// TestIsolation: who comes in is decided by names, which Kubernetes writes, and not by labels, which a team may come to write.
func TestIsolation(t *testing.T) {
	in := plain(t, "dev", "namespaces: [{name: web, networkPolicy: Isolated}, {name: 'apps-<< cluster.name >>'}, {name: open, networkPolicy: None}]")
	policies := map[string]networkingv1.NetworkPolicySpec{}
	for _, o := range objects(t, bootstrap(t, in)) {
		if o.GetKind() == "NetworkPolicy" {
			p := &networkingv1.NetworkPolicy{}
			must.Do(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, p, true))
			policies[p.Namespace] = p.Spec
		}
	}
	p, ok := policies["web"]
	if !ok || len(policies) != 1 {
		t.Fatalf("there are policies %v", policies)
	}
	if len(p.PodSelector.MatchLabels)+len(p.PodSelector.MatchExpressions) > 0 || len(p.PolicyTypes) != 2 || len(p.Ingress) != 1 || len(p.Egress) != 2 {
		t.Errorf("the policy is %v", p)
	}
	peers := map[string][]networkingv1.NetworkPolicyPeer{"from": p.Ingress[0].From, "to": p.Egress[0].To}
	for what, got := range peers {
		want := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: "In", Values: []string{"apps-<< cluster.name >>", "open", "web"}},
		}}}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s:\n%s", what, d)
		}
	}
	if len(p.Ingress[0].Ports)+len(p.Egress[0].Ports) > 0 || len(p.Egress[1].Ports) != 2 {
		t.Errorf("the ports are %v, %v, %v", p.Ingress[0].Ports, p.Egress[0].Ports, p.Egress[1].Ports)
	}
}
