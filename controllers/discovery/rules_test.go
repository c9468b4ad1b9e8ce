// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
)

// byRule is discovery on a hub with a rule for the Secrets of vCluster in team-*.
type byRule struct {
	t        *testing.T
	api      client.Client
	clock    *clock.FakePassiveClock
	recorder *events.FakeRecorder
	r        *Reconciler
}

func newByRule(t *testing.T, objects ...client.Object) *byRule {
	t.Helper()
	rules, err := origin.ParseRules("rules.yaml", []byte(`rules:
- name: vcluster
  match: {kind: Secret, namespaces: [team-*], labels: {app: vcluster}, names: vc-*}
  register: {name: "*", labels: {tier: dev}, key: config}`))
	if err != nil {
		t.Fatal(err)
	}
	b := &byRule{t: t, clock: clock.NewFakePassiveClock(time.Now()), recorder: events.NewFakeRecorder(100)}
	b.api = indexed().WithStatusSubresource(&hubv1.ClusterRegistration{}).
		WithIndex(&corev1.Secret{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).WithObjects(objects...).Build()
	config := &hubconfig.Config{Shared: hubconfig.Shared{Origins: origin.Policy{SecretNamespaces: []string{"team-a", "other"}, Rules: rules}}, DeselectionDelay: 5 * time.Minute}
	b.r = &Reconciler{Client: b.api, Live: b.api, Config: config, Clock: b.clock, Recorder: b.recorder, Origins: originreader.New(b.api, b.api, config.Origins), Tenure: &tenure.Tenure{}}
	return b
}

// vcluster returns the Secret that a vCluster writes, with more labels.
func vcluster(namespace, name string, more ...string) *corev1.Secret {
	labels := map[string]string{"app": "vcluster", "vcluster-name": name, "tier": "prod"}
	for i := 0; i+1 < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "vc-" + name, Labels: labels}}
}

func (b *byRule) reconcile(s *corev1.Secret) {
	b.t.Helper()
	if _, err := b.r.Reconcile(b.t.Context(), Request{Kind: origin.Secret, NamespacedName: client.ObjectKeyFromObject(s)}); err != nil {
		b.t.Fatal(err)
	}
}

// registered returns the registrations, as namespace/name.
func (b *byRule) registered() []string {
	b.t.Helper()
	list := &hubv1.ClusterRegistrationList{}
	if err := b.api.List(b.t.Context(), list); err != nil {
		b.t.Fatal(err)
	}
	out := []string{}
	for i := range list.Items {
		out = append(out, list.Items[i].Namespace+"/"+list.Items[i].Name)
	}
	slices.Sort(out)
	return out
}

// What a rule matches is registered where Secrets may register clusters and the rule says, and nowhere else.
func TestByRule(t *testing.T) {
	secrets := []*corev1.Secret{
		vcluster("team-a", "one"), vcluster("team-a", "two"), vcluster("team-a", "three"),
		vcluster("other", "elsewhere"),  // allowed, and not of the rule
		vcluster("team-b", "forbidden"), // of the rule, and not allowed
		vcluster("team-a", "out", hubv1.RegisterLabel, "false"),
		vcluster("team-a", "copy", hubv1.CopyLabel, "true"),
		{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "certificates", Labels: map[string]string{"app": "vcluster"}}},
	}
	objects := make([]client.Object, len(secrets))
	for i := range secrets {
		objects[i] = secrets[i]
	}
	b := newByRule(t, objects...)
	for _, s := range secrets {
		b.reconcile(s)
	}
	if d := cmp.Diff([]string{"team-a/one", "team-a/three", "team-a/two"}, b.registered()); d != "" {
		t.Fatalf("registered: -want +got:\n%s", d)
	}
	reg := &hubv1.ClusterRegistration{}
	must.Do(t, b.api.Get(t.Context(), types.NamespacedName{Namespace: "team-a", Name: "one"}, reg))
	if d := cmp.Diff(map[string]string{"app": "vcluster", "vcluster-name": "one", "tier": "dev", hubv1.NameLabel: "one", hubv1.ProviderLabel: "Secret"}, reg.Labels); d != "" {
		t.Errorf("its labels, of which the rule's count first: -want +got:\n%s", d)
	}
	if ref := reg.Spec.OriginRef; ref == nil || ref.Name != "vc-one" || ref.Kind != "Secret" {
		t.Errorf("it comes from %+v", ref)
	}
	close(b.recorder.Events)
	var told []string
	for e := range b.recorder.Events {
		told = append(told, e)
	}
	for _, want := range []string{`registered as ClusterRegistration "one", by rule "vcluster"`, `Secrets in namespace "team-b" may not register clusters`} {
		if !slices.ContainsFunc(told, func(e string) bool { return strings.Contains(e, want) }) {
			t.Errorf("there is no event %q in %q", want, told)
		}
	}
}

// What a rule matches no more stays for the delay, and not at all with the label "false".
func TestByRuleLeaves(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Secret)
		atOnce bool
	}{
		"LabelTaken": {func(s *corev1.Secret) { delete(s.Labels, "app") }, false},
		"False":      {func(s *corev1.Secret) { s.Labels[hubv1.RegisterLabel] = "false" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			secret := vcluster("team-a", "one")
			b := newByRule(t, secret)
			b.reconcile(secret)
			key := types.NamespacedName{Namespace: "team-a", Name: "one"}
			reg := &hubv1.ClusterRegistration{}
			must.Do(t, b.api.Get(t.Context(), key, reg))
			// The registration controller has seen that nothing asks, and counts from there.
			reg.Status.OriginUID, reg.Status.OriginSeenBy = "u", reg.UID
			status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.LabelRemovedReason, "", b.clock.Now())
			must.Do(t, b.api.Status().Update(t.Context(), reg))
			there := func() bool {
				t.Helper()
				err := b.api.Get(t.Context(), key, reg)
				if err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
				return err == nil && reg.DeletionTimestamp == nil
			}
			must.Do(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
			tc.change(secret)
			must.Do(t, b.api.Update(t.Context(), secret))
			b.clock.SetTime(b.clock.Now().Add(b.r.Config.DeselectionDelay - time.Second))
			b.reconcile(secret)
			if there() == tc.atOnce {
				t.Fatalf("before the delay is over it is there: %t", there())
			}
			b.clock.SetTime(b.clock.Now().Add(2 * time.Second))
			b.reconcile(secret)
			if there() {
				t.Error("it is there after the delay")
			}
		})
	}
}

// A registration by hand of the name that a rule gives keeps the Secret from being registered, until it goes: that wakes the Secret.
func TestByRuleOfATakenName(t *testing.T) {
	byHand := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "one"},
		Spec: hubv1.ClusterRegistrationSpec{KubeConfig: &hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: "mine"}}}}
	secret := vcluster("team-a", "one")
	b := newByRule(t, byHand, secret)
	b.reconcile(secret)
	if d := cmp.Diff([]string{"team-a/one"}, b.registered()); d != "" {
		t.Fatalf("registered: -want +got:\n%s", d)
	}
	waits := Request{Kind: origin.Secret, NamespacedName: client.ObjectKeyFromObject(secret)}
	if woken := b.r.namesakes(t.Context(), byHand); !slices.Contains(woken, waits) {
		t.Errorf("that it goes wakes %v", woken)
	}
	if woken := b.r.namesakes(t.Context(), &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "vc-one"}}); len(woken) > 0 {
		t.Errorf("that another one goes wakes %v", woken)
	}
	must.Do(t, b.api.Delete(t.Context(), byHand))
	b.reconcile(secret)
	reg := &hubv1.ClusterRegistration{}
	if err := b.api.Get(t.Context(), client.ObjectKeyFromObject(byHand), reg); err != nil || reg.Spec.OriginRef == nil {
		t.Errorf("it is registered as %+v: %v", reg.Spec, err)
	}
}

// A change of a Namespace, and of a Secret that a rule matches or has matched, is looked at.
func TestByRuleWakes(t *testing.T) {
	one, certificates := vcluster("team-a", "one"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "certificates"}}
	b := newByRule(t, one, certificates)
	found := must.Get(b.r.Origins.Concerned(t.Context(), origin.Secret, "team-a")).Or(t)
	if d := cmp.Diff([]types.NamespacedName{client.ObjectKeyFromObject(one)}, found); d != "" {
		t.Errorf("of a Namespace: -want +got:\n%s", d)
	}
	is, was := b.r.interesting(origin.Secret), one.DeepCopy()
	delete(was.Labels, "app")
	for name, tc := range map[string]struct{ before, after client.Object }{"Comes": {was, one}, "Goes": {one, was}, "Stays": {one, one}} {
		if !is.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}) {
			t.Errorf("%s: it is left out", name)
		}
	}
	if is.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: was}) || is.Create(event.CreateEvent{Object: certificates}) {
		t.Error("what no rule matches wakes discovery")
	}
}
