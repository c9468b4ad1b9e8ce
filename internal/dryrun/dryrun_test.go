// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/dryrun"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// objects reads a text with objects.
func objects(t *testing.T, text string) (out []*unstructured.Unstructured) {
	t.Helper()
	for _, doc := range strings.Split(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		must.Do(t, yaml.Unmarshal([]byte(doc), &u.Object))
		if u.Object != nil {
			out = append(out, u)
		}
	}
	return out
}

const there = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: changed, namespace: shop, labels: {kept: "1", dropped: "1"}}, data: {a: old, b: same}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: same, namespace: shop}, data: {a: same}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: goes, namespace: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: stays, namespace: shop, annotations: {helm.sh/resource-policy: keep}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: once, namespace: shop}, data: {a: theirs}}
---
{apiVersion: v1, kind: Secret, metadata: {name: secret, namespace: shop}, stringData: {password: hunter2}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: immutable, namespace: shop}, immutable: true, data: {a: old}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: forced, namespace: shop}, immutable: true, data: {a: old}}
`

const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-latest}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: ["*"], resources: [configmaps]}]}
  validations: [{expression: "object.metadata.name != 'forbidden'", message: "no such name in our house"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-latest}
spec: {policyName: no-latest, validationActions: [Deny]}
`

const wanted = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: changed, namespace: shop, labels: {kept: "1"}}, data: {a: new, b: same}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: same}, data: {a: same}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: created, namespace: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: once, namespace: shop, annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}}, data: {a: ours}}
---
{apiVersion: v1, kind: Secret, metadata: {name: secret, namespace: shop}, stringData: {password: hunter3}}
---
{apiVersion: v1, kind: Secret, metadata: {name: wrong, namespace: shop}, data: {password: hunter4}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: immutable, namespace: shop}, immutable: true, data: {a: new}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: forced, namespace: shop, annotations: {kustomize.toolkit.fluxcd.io/force: enabled}}, immutable: true, data: {a: new}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: forbidden, namespace: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nowhere}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: coming}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: coming}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: made-by-flux}}
---
{apiVersion: example.org/v1, kind: Unknown, metadata: {name: a, namespace: shop}}
---
{apiVersion: example.org/v1, kind: Widget, metadata: {name: a, namespace: shop}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.org}, spec: {group: example.org, names: {kind: Widget, plural: widgets}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: hook, namespace: shop, annotations: {helm.sh/hook: pre-upgrade}}}
`

// TestAPIServer has a real API server try what changes. One serves all of its tests; the extension of the last one outlives that test.
func TestAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the parts that `make tools` builds")
	}
	c := must.Get(localfleet.StartCluster(t.Context(), localfleet.ClusterOptions{Name: "workload", Dir: t.TempDir()})).Or(t)
	t.Cleanup(func() { _ = c.Stop() })
	s := &apiServer{admin: c.Client}
	raw, err := c.Kubeconfig("kubernetes-admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	if s.config, err = kubeconfig.Parse(raw, account.Lenient()); err != nil {
		t.Fatal(err)
	}
	system := &corev1.Namespace{}
	must.Do(t, c.Client.Get(t.Context(), types.NamespacedName{Name: "kube-system"}, system))
	s.uid = string(system.UID)
	if _, err := dryrun.Connect(t.Context(), s.config, "", "another"); err == nil || !strings.Contains(err.Error(), "another cluster answers") {
		t.Errorf("another cluster is asked: %v", err)
	}
	t.Run("Run", s.run)
	t.Run("Rights", s.rights)
	t.Run("Extension", s.extension)
}

// apiServer is one that runs, with the admin's client, and its cluster's UID.
type apiServer struct {
	admin  client.Client
	config *kubeconfig.Config
	uid    string
}

// connect returns a client that has everything tried as a user.
func (s *apiServer) connect(t *testing.T, user string) client.Client {
	t.Helper()
	return must.Get(dryrun.Connect(t.Context(), s.config, user, s.uid)).Or(t)
}

// run: what becomes of each object, and why.
func (s *apiServer) run(t *testing.T) {
	admin, c, ctx := s.admin, s.connect(t, ""), t.Context()
	for _, u := range append(objects(t, there), objects(t, policy)...) {
		if err := admin.Patch(ctx, u, client.Apply, client.FieldOwner(dryrun.KustomizeManager)); err != nil { //nolint:staticcheck // as Flux does
			t.Fatal(err)
		}
	}
	parts := []dryrun.Part{{Client: c, Set: "flux-system/base", Addon: "web", Manager: dryrun.KustomizeManager, Namespace: "shop", Makes: "made-by-flux",
		Wanted: objects(t, wanted), Old: objects(t, there)}}
	var got []diff.TriedObject
	unchanged := 0
	for range 50 { // a policy counts a little later
		if got, unchanged = dryrun.Run(ctx, parts, dryrun.Limits{}); of(got, "ConfigMap shop/forbidden").Outcome == diff.TriedRefused {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	want := []string{
		"Changed ConfigMap shop/changed: [data.a old→new] [metadata.labels.dropped \"1\"→]",
		"Changed Secret shop/secret: [data.password hidden]",
		"Created ConfigMap shop/created:",
		"Created CustomResourceDefinition widgets.example.org:",
		"Created Namespace coming:",
		"Kept ConfigMap shop/stays: helm.sh/resource-policy: keep",
		"Left ConfigMap shop/once: kustomize.toolkit.fluxcd.io/ssa: IfNotPresent",
		"Left Job shop/hook: a hook of Helm: pre-upgrade",
		"NotYet ConfigMap coming/a: it cannot be tried before namespace coming is there, which comes with the change",
		"NotYet ConfigMap made-by-flux/a: it cannot be tried before namespace made-by-flux is there, which comes with the change",
		"NotYet Widget shop/a: it cannot be tried before its CustomResourceDefinition is there, which comes with the change",
		"Recreated ConfigMap shop/forced: Flux deletes it and makes it anew: ConfigMap \"forced\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
		"Refused ConfigMap nowhere/a: namespaces \"nowhere\" not found",
		"Refused ConfigMap shop/forbidden: configmaps \"forbidden\" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'no-latest' denied request: no such name in our house",
		"Refused ConfigMap shop/immutable: ConfigMap \"immutable\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
		"Refused Secret shop/wrong: error 500 (the words of the API server are not shown: they may have what a Secret holds)",
		"Refused Unknown shop/a: the cluster has no Unknown.example.org in version v1",
		"Removed ConfigMap shop/goes:",
		"Removed Namespace shop:",
	}
	if d := cmp.Diff(want, lines(got)); d != "" || unchanged != 1 {
		t.Errorf("%d unchanged; -want +got\n%s", unchanged, d)
	}
	if err := admin.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "created"}, objects(t, wanted)[2]); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the dry run has made an object: %v", err)
	}
	few, _ := dryrun.Run(ctx, parts, dryrun.Limits{Objects: 1})
	if n := len(few); n < 20 || of(few, "ConfigMap shop/created").Outcome != diff.TriedUnknown {
		t.Errorf("with a limit of one there are %d:\n%s", n, strings.Join(lines(few), "\n"))
	}
	late, _ := dryrun.Run(ctx, parts, dryrun.Limits{Time: time.Nanosecond})
	if got := of(late, "ConfigMap shop/created"); got.Outcome != diff.TriedUnknown || got.Reason != "the time was over" {
		t.Errorf("when the time is over: %+v", got)
	}
}

// rights: Flux's own rights count.
func (s *apiServer) rights(t *testing.T) {
	c := s.connect(t, "system:serviceaccount:team:deployer")
	got, _ := dryrun.Run(t.Context(), []dryrun.Part{{Client: c, Manager: dryrun.HelmManager, Namespace: "default",
		Wanted: objects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), Old: objects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}")}}, dryrun.Limits{})
	for name, want := range map[string]diff.Outcome{"ConfigMap default/a": diff.TriedRefused, "ConfigMap default/b": diff.TriedUnknown} {
		if one := of(got, name); one.Outcome != want || !strings.Contains(one.Reason, `User "system:serviceaccount:team:deployer" cannot`) {
			t.Errorf("%s: %+v", name, one)
		}
	}
}

func called(o *diff.TriedObject) string {
	return strings.Replace(fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name), " /", " ", 1)
}

func of(all []diff.TriedObject, name string) diff.TriedObject {
	at := slices.IndexFunc(all, func(o diff.TriedObject) bool { return called(&o) == name })
	if at < 0 {
		return diff.TriedObject{}
	}
	return all[at]
}

func lines(all []diff.TriedObject) (out []string) {
	for i := range all {
		o := &all[i]
		text := fmt.Sprintf("%s %s: %s", o.Outcome, called(o), o.Reason)
		for _, f := range o.Fields {
			if f.Hidden {
				text += fmt.Sprintf(" [%s hidden]", f.Path)
			} else {
				text += fmt.Sprintf(" [%s %s→%s]", f.Path, f.Old, f.New)
			}
		}
		text = strings.NewReplacer(`"old"`, "old", `"new"`, "new").Replace(text)
		out = append(out, strings.ReplaceAll(strings.TrimSpace(text), ":  [", ": ["))
	}
	slices.Sort(out)
	return out
}
