// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/golden"
	"github.com/chandler-hub/chandler/internal/must"
)

var edge = types.NamespacedName{Namespace: "fleet", Name: "edge1"}

func text(t *testing.T, objects ...any) string {
	t.Helper()
	var b strings.Builder
	for _, o := range objects {
		raw := must.Get(yaml.Marshal(o)).Or(t)
		b.WriteString("---\n" + string(raw))
	}
	return b.String()
}

// What is made on a cluster, with the owner that has the rest removed, and with a lesser role.
func TestObjects(t *testing.T) {
	for file, a := range map[string]account.Account{
		"admin.yaml": account.Of("chandler", "hub-uid", edge, account.AdminRole),
		"view.yaml":  account.Of("chandler", "", edge, "view"),
	} {
		var all []any
		for _, o := range a.Objects("owner-uid") {
			all = append(all, o.Object)
		}
		golden.Compare(t, filepath.Join("testdata", file), text(t, all...))
	}
	golden.Compare(t, filepath.Join("testdata", "secret.yaml"), text(t, account.Of("chandler", "", edge, "view").Secret(map[string]string{"tier": "prod"}, "720h", "c1")))
}

// Two hubs, and two registrations, have accounts of their own on one cluster.
func TestAccountsDiffer(t *testing.T) {
	seen := map[types.NamespacedName]bool{}
	for _, hub := range []string{"east", "west"} {
		for _, name := range []types.NamespacedName{edge, {Namespace: "fleet-edge1", Name: "x"}, {Namespace: "fleet", Name: "edge1-x"}, {Namespace: "fleet", Name: strings.Repeat("a", 200)}} {
			key := account.Of(hub, "", name, "view").Key()
			if seen[key] || len(key.Namespace) > 63 {
				t.Errorf("%s of %s: %s", name, hub, key)
			}
			seen[key] = true
		}
	}
}

// What is on the cluster is taken for the account's only if it was made for it, and a binding is never bent.
func TestCompare(t *testing.T) {
	a := account.Of("chandler", "hub-1", edge, account.AdminRole)
	for name, tc := range map[string]struct {
		change  func(o *unstructured.Unstructured)
		missing bool
		want    account.State
		err     string
	}{
		"NotThere":        {missing: true, want: account.Missing},
		"AsMade":          {want: account.AsIs},
		"MoreAnnotations": {change: func(o *unstructured.Unstructured) { annotate(o, "a", "b") }, want: account.AsIs},
		"OtherSubjects": {change: func(o *unstructured.Unstructured) { _ = unstructured.SetNestedSlice(o.Object, nil, "subjects") },
			want: account.Differs},
		"OtherRole": {change: func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "view", "roleRef", "name")
		},
			err: "--role view"},
		"Somebodys":         {change: func(o *unstructured.Unstructured) { o.SetLabels(nil) }, err: "was not made for"},
		"OfAnotherName":     {change: func(o *unstructured.Unstructured) { annotate(o, "chandler.dev/registration", "fleet/edge2") }, err: "was not made for"},
		"OfAnotherHub":      {change: func(o *unstructured.Unstructured) { annotate(o, "chandler.dev/hub-uid", "hub-2") }, err: "--hub-id"},
		"OfSomeHub":         {change: func(o *unstructured.Unstructured) { annotate(o, "chandler.dev/hub-uid", "") }, want: account.AsIs},
		"IsBeingDeleted":    {change: func(o *unstructured.Unstructured) { now := metav1.Now(); o.SetDeletionTimestamp(&now) }, err: "is being deleted"},
		"OfAnotherHubsRole": {change: func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) }, want: account.AsIs},
	} {
		t.Run(name, func(t *testing.T) {
			objects := a.Objects("u")
			want := objects[len(objects)-1]
			there := want.DeepCopy()
			if tc.change != nil {
				tc.change(there)
			}
			if tc.missing {
				there = nil
			}
			got, err := a.Compare(want, there)
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// The namespace has gone and somebody has made one of its name, while the binding still waits for garbage collection.
func TestBindingOfAnotherNamespace(t *testing.T) {
	a := account.Of("chandler", "", edge, account.AdminRole)
	there := a.Objects("gone")
	there[0].SetUID("another")
	if err := a.Check(there); err == nil {
		t.Error("somebody's namespace is taken for that of the account")
	}
	there[0].SetUID("gone")
	if err := a.Check(there); err != nil {
		t.Error(err)
	}
}

func annotate(o *unstructured.Unstructured, key, value string) {
	annotations := o.GetAnnotations()
	annotations[key] = value
	o.SetAnnotations(annotations)
}

// A tenant of the cluster who may make namespaces makes the account's before the hub does, with the labels of one, and keeps a
// token of the ServiceAccount in it. He must not get the hub's rights by that.
func TestNamespaceOfAStranger(t *testing.T) {
	a := account.Of("chandler", "", edge, account.AdminRole)
	all := a.Objects("u")
	for name, tc := range map[string]struct {
		there []int
		ok    bool
	}{"Nothing": {nil, true}, "NamespaceAlone": {[]int{0}, false}, "AllButTheBinding": {[]int{0, 1, 2, 3}, false}, "All": {[]int{0, 1, 2, 3, 4}, true}, "BindingIsLeft": {[]int{4}, false}} {
		there := make([]*unstructured.Unstructured, len(all))
		all[0].SetUID("u")
		for _, i := range tc.there {
			there[i] = all[i]
		}
		if err := a.Check(there); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Secret is written into only if it registers this cluster.
func TestFits(t *testing.T) {
	a := account.Of("chandler", "", edge, account.AdminRole)
	for name, tc := range map[string]struct {
		change func(*corev1.Secret)
		want   string
	}{
		"AsMade":         {func(*corev1.Secret) {}, ""},
		"FromGit":        {func(s *corev1.Secret) { delete(s.Annotations, "chandler.dev/cluster-uid") }, ""},
		"Somebodys":      {func(s *corev1.Secret) { s.Annotations = nil }, "has not made it"},
		"OfAnotherHub":   {func(s *corev1.Secret) { s.Annotations["chandler.dev/account"] = "a/b" }, "a/b"},
		"AnotherCluster": {func(s *corev1.Secret) { s.Annotations["chandler.dev/cluster-uid"] = "c2" }, "another cluster"},
		"Leaving":        {func(s *corev1.Secret) { s.Labels["chandler.dev/register"] = "false" }, "chandler unregister"},
		"BeingDeleted":   {func(s *corev1.Secret) { now := metav1.Now(); s.DeletionTimestamp = &now }, "is being deleted"},
	} {
		s := a.Secret(nil, "720h", "c1")
		tc.change(s)
		if err := a.Fits(s, "c1"); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlan(t *testing.T) {
	p := account.Plan{Registration: "fleet/edge1", Server: "https://192.0.2.7:6443", Version: "v1.36.3", Warnings: []string{"the clock is wrong"},
		Cluster: []account.Step{{State: account.AsIs, Object: "Namespace x"}, {State: account.Missing, Object: "ClusterRoleBinding x", Note: "to ClusterRole cluster-admin"}},
		Hub:     []account.Step{{State: account.Differs, Object: "Secret fleet/edge1", Note: "labels and annotations"}}}
	var b bytes.Buffer
	must.Do(t, p.Print(&b))
	golden.Compare(t, filepath.Join("testdata", "plan.txt"), b.String())
	if p.Nothing() || !(account.Plan{Hub: []account.Step{{State: account.AsIs}}}).Nothing() {
		t.Error("a plan that changes something is none, or the other way round")
	}
}

// What a kubeconfig would be refused for is known before anything is made.
func TestKubeconfig(t *testing.T) {
	for name, tc := range map[string]struct {
		target       account.Target
		refused, err string
	}{
		"Loopback":   {account.Target{Server: "https://127.0.0.1:6443", Insecure: true}, "--allow-target-cidrs", ""},
		"NoCA":       {account.Target{Server: "https://192.0.2.7:6443"}, "--allow-missing-ca", ""},
		"HubItself":  {account.Target{Server: "https://kubernetes.default.svc:443"}, "", "hub's own"},
		"NoURL":      {account.Target{Server: "edge1"}, "", "server"},
		"Unroutable": {account.Target{Server: "https://0.0.0.0:6443"}, "", "0.0.0.0"},
	} {
		_, refused, err := tc.target.Kubeconfig("x")
		if !strings.Contains(refused, tc.refused) || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q, %v", name, refused, err)
		}
	}
}

func TestVersionAndClock(t *testing.T) {
	for version, ok := range map[string]bool{"v1.36.3": true, "v1.22.0-gke.1": true, "v1.36.3\x1b[2J": false, "v1.36.3\nWHERE": false, "v1.21.14": false, "": false, "hello": false} {
		if err := account.CheckVersion(version); (err == nil) != ok {
			t.Errorf("%q: %v", version, err)
		}
	}
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for ahead, want := range map[time.Duration]string{0: "", 59 * time.Second: "", -time.Hour: "1h0m0s behind", 2 * time.Minute: "2m0s ahead"} {
		if got := account.Skew(now.Add(ahead), now); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q", ahead, got)
		}
	}
	if got := account.Skew(time.Time{}, now); got != "" {
		t.Errorf("a server that does not say: %q", got)
	}
}
