// SPDX-License-Identifier: Apache-2.0

package teams

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// controller is the controller with a fake API server, which counts what the controller applies.
type fixture struct {
	*Reconciler
	applied int
}

func newFixture(objects ...client.Object) *fixture {
	m := &fixture{}
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	api := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(objects...).WithStatusSubresource(&hubv1.Team{}, &hubv1.AddonSet{}).
		WithIndex(&apiextensionsv1.CustomResourceDefinition{}, metav1.ObjectNameField, byName).
		WithInterceptorFuncs(interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			m.applied++
			return c.Apply(ctx, obj, opts...)
		}}).Build()
	m.Reconciler = &Reconciler{Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(now),
		Config: &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system", "platform-b"}}}}
	return m
}

func shop(change func(*hubv1.Team)) *hubv1.Team {
	t := &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop"}}
	t.Spec = hubv1.TeamSpec{SelectAll: true, Namespaces: []hubv1.TeamNamespace{{Name: "shop-apps"}}}
	if change != nil {
		change(t)
	}
	return t
}

// reconcile returns the Team after it, nil if it is gone, and its AddonSet.
func (m *fixture) reconcile(t *testing.T, namespace string) (*hubv1.Team, *hubv1.AddonSet) {
	t.Helper()
	team, set := &hubv1.Team{}, &hubv1.AddonSet{}
	key := types.NamespacedName{Namespace: namespace, Name: "shop"}
	must.Do(t, m.Client.Get(t.Context(), key, team))
	must.Get(m.Reconcile(t.Context(), team)).Or(t)
	if err := m.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "team-shop"}, set); apierrors.IsNotFound(err) {
		set = nil
	} else if err != nil {
		t.Fatal(err)
	}
	team = &hubv1.Team{}
	if err := m.Client.Get(t.Context(), key, team); apierrors.IsNotFound(err) {
		return nil, set
	} else if err != nil {
		t.Fatal(err)
	}
	return team, set
}

// The hub keeps the AddonSet of a Team as it should be, and writes nothing more.
func TestKeeps(t *testing.T) {
	m := newFixture(shop(nil))
	_, set := m.reconcile(t, "flux-system")
	if set == nil || set.Labels[hubv1.TeamLabel] != "shop" || !set.Spec.SelectAll || len(set.Spec.Addons) != 1 || set.Spec.Addons[0].Name != "team-shop" {
		t.Fatalf("made %+v", set)
	}
	team, _ := m.reconcile(t, "flux-system")
	if m.applied != 1 {
		t.Errorf("written %d times", m.applied)
	}
	if c := status.Find(team, hubv1.ReadyCondition); c == nil || c.Status != metav1.ConditionFalse || c.Reason != hubv1.ProgressingReason || team.Status.AddonSet != "team-shop" {
		t.Errorf("it says %+v", team.Status)
	}
	set.Spec.SelectAll, set.Spec.ClusterSelector = false, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	must.Do(t, m.Client.Update(t.Context(), set))
	if _, set = m.reconcile(t, "flux-system"); !set.Spec.SelectAll || m.applied != 2 {
		t.Errorf("an edit stays: %+v", set.Spec)
	}
	status.Summarize(set, status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason, Message: "delivered to 2/2 clusters"}, now)
	set.Status.Clusters = &hubv1.ClusterCounts{ReadySummary: "2/2"}
	must.Do(t, m.Client.Status().Update(t.Context(), set))
	if team, _ = m.reconcile(t, "flux-system"); !status.IsTrue(team, hubv1.ReadyCondition) || team.Status.Clusters.ReadySummary != "2/2" {
		t.Errorf("it says %+v", team.Status)
	}
}

// What a Team waits for, its AddonSet waits for, as long as the Team says so.
func TestDependsOn(t *testing.T) {
	m := newFixture(shop(func(t *hubv1.Team) { t.Spec.DependsOn = []hubv1.AddonSetReference{{Name: "policies"}} }))
	team, set := m.reconcile(t, "flux-system")
	if len(set.Spec.DependsOn) != 1 || set.Spec.DependsOn[0].Name != "policies" {
		t.Fatalf("made %+v", set.Spec)
	}
	team.Spec.DependsOn = nil
	must.Do(t, m.Client.Update(t.Context(), team))
	if _, set = m.reconcile(t, "flux-system"); len(set.Spec.DependsOn) != 0 {
		t.Errorf("it still waits: %+v", set.Spec.DependsOn)
	}
	if m.reconcile(t, "flux-system"); m.applied != 2 {
		t.Errorf("written %d times", m.applied)
	}
}

// What a Team may not do, and what it keeps then.
func TestRefuses(t *testing.T) {
	foreign := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "team-shop"}}
	ours := foreign.DeepCopy()
	ours.Labels = map[string]string{hubv1.TeamLabel: "shop"}
	older := shop(func(o *hubv1.Team) {
		o.Name, o.Spec.HubNamespaces = "older", []string{"shop"}
		o.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	})
	namesake := older.DeepCopy()
	namesake.Namespace, namesake.Name = "platform-b", "shop"
	younger := shop(func(o *hubv1.Team) { o.CreationTimestamp = metav1.NewTime(now) })
	beside := older.DeepCopy()
	beside.Spec.HubNamespaces = nil
	cluster := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "c1"}}
	for name, tc := range map[string]struct {
		team   *hubv1.Team
		more   []client.Object
		reason string
		set    bool
	}{
		"NoPlatformNamespace": {shop(func(o *hubv1.Team) { o.Namespace = "mallory" }), nil, hubv1.NamespaceNotAllowedReason, false},
		"Invalid":             {shop(func(o *hubv1.Team) { o.Spec.Namespaces[0].Name = "kube-system" }), nil, hubv1.InvalidSpecReason, false},
		"InvalidNow":          {shop(func(o *hubv1.Team) { o.Spec.Namespaces[0].Name = "kube-system" }), []client.Object{ours}, hubv1.InvalidSpecReason, true},
		"SomebodysSet":        {shop(nil), []client.Object{foreign}, hubv1.NotOwnedReason, true},
		"NamespaceTaken":      {younger, []client.Object{older}, hubv1.NamespaceTakenReason, true},
		"NamespaceShared":     {younger, []client.Object{beside, cluster}, hubv1.NamespaceTakenReason, false},
		"NamespaceSharedNow":  {younger, []client.Object{beside, cluster, ours}, hubv1.NamespaceTakenReason, true},
		"Namesake":            {younger, []client.Object{namesake}, hubv1.NotOwnedReason, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(append(tc.more, tc.team)...)
			team, set := m.reconcile(t, tc.team.Namespace)
			if c := status.Find(team, hubv1.ReadyCondition); c == nil || c.Reason != tc.reason || c.Message == "" {
				t.Errorf("it says %+v", c)
			}
			if (set != nil) != tc.set || name != "NamespaceTaken" && m.applied > 0 {
				t.Errorf("set %v, %d writes", set != nil, m.applied)
			}
		})
	}
}

// A Team with deletionPolicy Delete whose namespace an older Team has by now leaves that on the clusters, and what else it has goes with it.
func TestYields(t *testing.T) {
	younger := shop(func(o *hubv1.Team) {
		o.CreationTimestamp, o.Spec.DeletionPolicy = metav1.NewTime(now), hubv1.DeletionPolicyDelete
		o.Spec.Namespaces = append(o.Spec.Namespaces, hubv1.TeamNamespace{Name: "shop-data"})
	})
	older := shop(func(o *hubv1.Team) {
		o.Name, o.CreationTimestamp = "older", metav1.NewTime(now.Add(-time.Hour))
		o.Spec.Namespaces[0].Name = "elsewhere"
	})
	m := newFixture(younger, older, &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "c1"}})
	kept := func() (names []string) {
		_, set := m.reconcile(t, "flux-system")
		var manifests struct {
			Objects []metav1.PartialObjectMetadata
		}
		must.Do(t, json.Unmarshal(set.Spec.Addons[0].Manifests.Raw, &manifests))
		for _, o := range manifests.Objects {
			if o.Annotations["helm.sh/resource-policy"] == "keep" {
				names = append(names, o.Kind+" "+o.Name)
			}
		}
		return names
	}
	if is := kept(); len(is) > 0 {
		t.Fatalf("its own namespaces go with it, and it keeps %v", is)
	}
	must.Do(t, m.Client.Get(t.Context(), client.ObjectKeyFromObject(older), older))
	older.Spec.Namespaces[0].Name = "shop-apps"
	must.Do(t, m.Client.Update(t.Context(), older))
	if is := kept(); !slices.Equal(is, []string{"Namespace shop-apps"}) {
		t.Errorf("%v stay on the clusters, want the namespace that is the older Team's", is)
	}
	writes := m.applied
	if kept(); m.applied != writes {
		t.Error("it is written again")
	}
}

// A Team that is not valid any more stays as it is. Of what it has on the clusters, another Team's namespace stays there all the same, whatever the Team
// says of it now.
func TestYieldsThoughNotValid(t *testing.T) {
	m := newFixture(shop(func(o *hubv1.Team) {
		o.CreationTimestamp, o.Spec.DeletionPolicy = metav1.NewTime(now), hubv1.DeletionPolicyDelete
	}))
	team, set := m.reconcile(t, "flux-system")
	if set == nil || strings.Contains(string(set.Spec.Addons[0].Manifests.Raw), "helm.sh/resource-policy") {
		t.Fatalf("made %+v", set)
	}
	team.Spec.Namespaces[0].Name = "kube-system"
	must.Do(t, m.Client.Update(t.Context(), team))
	if err := m.Client.Create(t.Context(), shop(func(o *hubv1.Team) {
		o.Name, o.CreationTimestamp = "older", metav1.NewTime(now.Add(-time.Hour))
	})); err != nil {
		t.Fatal(err)
	}
	team, set = m.reconcile(t, "flux-system")
	raw := string(set.Spec.Addons[0].Manifests.Raw)
	if c := status.Find(team, hubv1.ReadyCondition); c.Reason != hubv1.InvalidSpecReason || strings.Contains(raw, "kube-system") {
		t.Errorf("it says %+v, and has %s", c, raw)
	}
	if !strings.Contains(raw, "helm.sh/resource-policy") {
		t.Errorf("the older Team's namespace goes with it: %s", raw)
	}
}

// A Team goes when its AddonSet has gone, and takes no other along.
func TestLeaves(t *testing.T) {
	deleted := func(o *hubv1.Team) {
		o.Finalizers, o.DeletionTimestamp = []string{hubv1.Finalizer}, &metav1.Time{Time: now}
	}
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "team-shop", UID: "s", Finalizers: []string{hubv1.Finalizer},
		Labels: map[string]string{hubv1.TeamLabel: "shop"}}}
	status.Summarize(set, status.Summary{Phase: status.Working, Reason: hubv1.TerminatingReason, Message: "being withdrawn from 1 cluster"}, now)
	m := newFixture(shop(deleted), set)
	if team, set := m.reconcile(t, "flux-system"); team == nil || set.DeletionTimestamp == nil {
		t.Fatalf("Team %v, set %v", team, set)
	}
	team, left := m.reconcile(t, "flux-system")
	if c := status.Find(team, hubv1.ReadyCondition); c.Reason != hubv1.TerminatingReason || !strings.Contains(c.Message, "being withdrawn from 1 cluster") {
		t.Errorf("it says %+v", c)
	}
	left.Finalizers = nil
	must.Do(t, m.Client.Update(t.Context(), left))
	if team, _ := m.reconcile(t, "flux-system"); team != nil {
		t.Error("the Team stays")
	}
	foreign := set.DeepCopy()
	foreign.Labels, foreign.ResourceVersion = nil, ""
	m = newFixture(shop(deleted), foreign)
	if team, set := m.reconcile(t, "flux-system"); team != nil || set == nil || set.DeletionTimestamp != nil {
		t.Errorf("Team %v, set %+v", team, set)
	}
}

// Teams that are deleted because their CRD is leave what they have on the clusters: nobody has asked for a removal. When the CRD and the Team are back, it
// goes on with its AddonSet.
func TestForsaken(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "teams." + hubv1.GroupVersion.Group,
		Finalizers: []string{"customresourcecleanup.apiextensions.k8s.io"}, DeletionTimestamp: &metav1.Time{Time: now}}}
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "team-shop", Finalizers: []string{hubv1.Finalizer},
		Labels: map[string]string{hubv1.TeamLabel: "shop"}}}
	m := newFixture(crd, set, shop(func(o *hubv1.Team) {
		o.Finalizers, o.DeletionTimestamp = []string{hubv1.Finalizer}, &metav1.Time{Time: now}
	}))
	if team, set := m.reconcile(t, "flux-system"); team != nil || set == nil || set.DeletionTimestamp != nil {
		t.Fatalf("the Team stays: %t; its AddonSet is %+v", team != nil, set)
	}
	must.Do(t, m.Client.Create(t.Context(), shop(nil)))
	if team, set := m.reconcile(t, "flux-system"); set == nil || team.Status.AddonSet != set.Name {
		t.Errorf("the Team has %+v", team.Status)
	}
}
