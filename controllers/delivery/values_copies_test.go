// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// readsBeside is an add-on with values from documents in the namespace of the registration.
func readsBeside(name string, refs ...map[string]any) map[string]any {
	from := make([]any, len(refs))
	for i := range refs {
		from[i] = refs[i]
	}
	return map[string]any{"name": name, "helmRelease": map[string]any{
		"chart": map[string]any{"spec": map[string]any{"chart": name,
			"sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}},
		"valuesFrom": from,
	}}
}

// ofKey is a reference to a key of Secret "values" in the namespace of the registration.
func ofKey(key string) map[string]any {
	return map[string]any{"kind": "Secret", "name": "values", "valuesKey": key, "targetPath": key, "from": "Cluster"}
}

// besideSecret is a Secret in the namespace of the registration that its owner shares with the set's namespace.
func besideSecret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: name,
		Annotations: map[string]string{hubv1.ShareAnnotation: "flux-system"}}, Data: data}
}

// valuesFixture is a fixture with add-ons that read Secret "values" in the namespace of the registration.
func valuesFixture(t *testing.T, addons ...map[string]any) *fixture {
	m := newServedFixture(t, append(addonsOf(testSet, "1", addons...),
		besideSecret("values", map[string][]byte{"one": []byte("1"), "two": []byte("2"), "unused": []byte("secret")}),
		besideSecret("second", map[string][]byte{"values.yaml": []byte("a: 1")}),
		besideSecret("renamed", map[string][]byte{"one": []byte("1")}))...)
	m.settle()
	return m
}

// copies returns the copies of values, each as name=value of its keys.
func (m *fixture) copies() map[string]string {
	list := &corev1.SecretList{}
	m.must(m.api.List(m.t.Context(), list, client.MatchingLabels{hubv1.CopyLabel: identity.ValuesCopy}))
	out := map[string]string{}
	for i := range list.Items {
		s := &list.Items[i]
		var text []string
		for _, k := range slices.Sorted(maps.Keys(s.Data)) {
			text = append(text, k+"="+string(s.Data[k]))
		}
		out[s.Namespace+"/"+s.Name] = strings.Join(text, " ")
	}
	return out
}

// wantsCopy wants the one copy that there is to have these keys, or no copy.
func (m *fixture) wantsCopy(want string) {
	m.t.Helper()
	as := "flux-system/" + identity.Copy("hub", testCluster, identity.Delivery(testSet, testCluster), "Secret", "values")
	got := m.copies()
	if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[as] != want) {
		m.t.Errorf("copies %v, want %q as %s", got, want, as)
	}
}

// changesBeside changes the original.
func (m *fixture) changesBeside(do func(*corev1.Secret)) {
	m.quietly(func() { edit(m, testCluster.Namespace, "values", &corev1.Secret{}, do) })
	m.settle()
}

func unshare(s *corev1.Secret) { s.Annotations[hubv1.ShareAnnotation] = "another" }

// readsAll wants every key that the live HelmRelease of an add-on reads to be in a copy.
func (m *fixture) readsAll(addon string) {
	m.t.Helper()
	hr := m.release(addon)
	for _, from := range hr.Spec.ValuesFrom {
		s := &corev1.Secret{}
		err := m.api.Get(m.t.Context(), client.ObjectKey{Namespace: hr.Namespace, Name: from.Name}, s)
		if _, has := s.Data[from.GetValuesKey()]; !has {
			m.t.Errorf("live HelmRelease %s reads key %q of %s, which is not there (%v); copies %v",
				hr.Name, from.GetValuesKey(), from.Name, err, m.copies())
		}
	}
}

// TestValuesCopyFollowsItsOriginal: the copy has the keys that an add-on uses, and no others. What is rotated comes, and nothing stays that
// is no longer used.
func TestValuesCopyFollowsItsOriginal(t *testing.T) {
	m := valuesFixture(t, readsBeside("web", ofKey("one"), ofKey("two")))
	m.wantsCopy("one=1 two=2")
	if from := m.release("web").Spec.ValuesFrom; len(from) != 2 || from[0].Name != valuesCopy() {
		t.Errorf("valuesFrom %+v", from)
	}
	m.changesBeside(func(s *corev1.Secret) { s.Data["two"] = []byte("rotated") })
	m.wantsCopy("one=1 two=rotated")
	m.wantNoWrites()
	woken := m.r.documents.ReadersOf("Secret")(t.Context(), besideSecret("values", nil))
	if len(woken) != 1 || woken[0].NamespacedName != testCluster {
		t.Errorf("a change of the original wakes %v", woken)
	}
	m.next("2", readsBeside("web", ofKey("one")))
	m.settle()
	m.wantsCopy("one=1")
	m.next("3", readsBeside("web"))
	m.settle()
	m.wantsCopy("")
}

// valuesCopy is the name of the copy of Secret "values".
func valuesCopy() string {
	return identity.Copy("hub", testCluster, identity.Delivery(testSet, testCluster), "Secret", "values")
}

// TestValuesThatAreNotShared: the hub copies nothing that its owner does not share, and removes the copy of what is shared no longer. What
// is delivered stays. If the original is deleted, the copy stays as well: a tool that replaces it may delete it first.
func TestValuesThatAreNotShared(t *testing.T) {
	m := valuesFixture(t, readsBeside("web", ofKey("one")))
	says := func(want string) {
		t.Helper()
		if a := m.addon("web"); !strings.Contains(a.Message, want) || m.object("web") == nil || len(m.uninstalled) > 0 {
			t.Errorf("it says %+v, want %q; its object is %v", a, want, m.object("web"))
		}
	}
	m.changesBeside(unshare)
	m.wantsCopy("")
	says(`no Secret "values" in namespace "fleet", where the cluster is registered, is shared with namespace "flux-system"`)
	m.changesBeside(func(s *corev1.Secret) { s.Annotations[hubv1.ShareAnnotation] = "another,flux-system" })
	m.wantsCopy("one=1")
	m.deleteObject(besideSecret("values", nil))
	m.settle()
	m.wantsCopy("one=1")
	says("is shared with namespace")
}

// TestValuesCopyGoesWithItsDelivery: the copy goes when the last object that reads it has gone, and not before.
func TestValuesCopyGoesWithItsDelivery(t *testing.T) {
	m := valuesFixture(t, readsBeside("web", ofKey("one")))
	m.busy = true
	m.withdraw(testSet)
	m.settle()
	if m.object("web") == nil {
		t.Fatal("the fixture's Flux was not busy")
	}
	m.wantsCopy("one=1")
	m.busy = false
	m.settle()
	m.wantsCopy("")
}

// TestValuesCopyGoesBesideAnotherSet: another set goes on with the add-on that read the copy, and does not read it. The copy goes, although
// the delivery that it was made for is gone, and the other set has objects there.
func TestValuesCopyGoesBesideAnotherSet(t *testing.T) {
	m := valuesFixture(t, readsBeside("app", ofKey("one")))
	m.wantsCopy("one=1")
	for _, o := range delivered("extra", releaseAddon("app"), releaseAddon("logs")) {
		m.create(o)
	}
	m.settle()
	m.withdraw(testSet)
	m.settle()
	m.wantsCopy("")
	if m.delivery(testSet) != nil || m.object("logs") == nil || len(m.uninstalled) > 0 {
		t.Errorf("uninstalled %v; there are %v", m.uninstalled, m.objects())
	}
}

// TestValuesCopyIsWrittenFirst: the hub writes no add-on before what the add-on reads.
func TestValuesCopyIsWrittenFirst(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", readsBeside("web", ofKey("one"))),
		besideSecret("values", map[string][]byte{"one": []byte("1")}))...)
	broken := true
	m.failing = func(what string) (error, bool) {
		if broken && len(m.copies()) == 0 && strings.HasPrefix(what, "apply") && m.kubeconfig() != nil {
			return errors.New("the API server is overloaded"), false
		}
		return nil, false
	}
	m.settle()
	if o := m.object("web"); o != nil {
		t.Errorf("%s was written before what it reads", o.GetName())
	}
	broken = false
	m.settle()
	m.wantsCopy("one=1")
	m.wantReady("web")
}

// waits has revision 2 keep web waiting for an add-on that reads what does not exist.
func (m *fixture) waits(web map[string]any) {
	m.t.Helper()
	m.next("2", readsBeside("base", map[string]any{"kind": "Secret", "name": "none", "from": "Cluster"}), dependsOn(web, "base"))
	m.settle()
	if from := m.release("web").Spec.ValuesFrom; len(from) != 1 || from[0].ValuesKey != "one" {
		m.t.Fatalf("web did not wait, and reads %v", from)
	}
}

// doesNotRender is an add-on that reads a label which the cluster does not have.
func doesNotRender(name string, refs ...map[string]any) map[string]any {
	a := readsBeside(name, refs...)
	a["helmRelease"].(map[string]any)["values"] = map[string]any{"x": "<< cluster.labels.nope >>"}
	return a
}

// applyOnce is an add-on of manifests that Flux applies once.
func applyOnce(more map[string]any) map[string]any {
	more["strategy"] = "ApplyOnce"
	return map[string]any{"name": "once", "manifests": more}
}

// TestValuesCopyKeepsWhatIsRead: a copy has the keys that live objects read, though the set's present revision does not read them, or not
// yet.
func TestValuesCopyKeepsWhatIsRead(t *testing.T) {
	once := func(key string) map[string]any {
		return applyOnce(map[string]any{"manifestsFrom": []any{map[string]any{"kind": "Secret", "name": "values", "key": key,
			"from": "Cluster"}}})
	}
	second := map[string]any{"kind": "Secret", "name": "second", "from": "Cluster"}
	for name, tc := range map[string]struct {
		addons []map[string]any
		change func(*fixture)
	}{
		"AnotherAddonReadsTheSameSecretAndThisFails": {
			[]map[string]any{readsBeside("web", ofKey("one"), second), readsBeside("b", ofKey("two"))},
			func(m *fixture) { m.deleteObject(besideSecret("second", nil)); m.settle(); m.readsAll("b") },
		},
		"AddonWaits": {
			[]map[string]any{readsBeside("web", ofKey("one"))},
			func(m *fixture) { m.waits(readsBeside("web", ofKey("two"))) },
		},
		"AddonWaitsAndItsOriginalIsRenamedAndRotated": {
			[]map[string]any{readsBeside("web", ofKey("one"))},
			func(m *fixture) {
				renamed := ofKey("one")
				renamed["name"] = "renamed"
				m.waits(readsBeside("web", renamed))
				m.changesBeside(func(s *corev1.Secret) { s.Data["one"] = []byte("rotated") })
				if got := m.copies()["flux-system/"+valuesCopy()]; got != "one=rotated" {
					m.t.Errorf("the live release reads %q of a copy whose original was rotated", got)
				}
			},
		},
		"DeliveryVanished": {
			[]map[string]any{readsBeside("web", ofKey("one"))},
			func(m *fixture) {
				m.vanish()
				m.must(m.reconcile())
				m.must(m.reconcile())
				if m.kubeconfig() == nil {
					m.t.Error("the kubeconfig is gone")
				}
			},
		},
		"AppliedOnce": { // such manifests are never written again
			[]map[string]any{once("one"), readsBeside("web")},
			func(m *fixture) { m.next("2", once("two"), readsBeside("web")); m.settle(); m.readsAll("once") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := valuesFixture(t, tc.addons...)
			m.readsAll("web")
			tc.change(m)
			m.readsAll("web")
		})
	}
}

// TestValuesCopyGoes: a copy goes when its original is not shared any more, or when no live object reads it, whatever becomes of the rest
// of the set.
func TestValuesCopyGoes(t *testing.T) {
	web := readsBeside("web", ofKey("one"))
	once := func(text string) map[string]any {
		return applyOnce(map[string]any{"objects": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "c"}, "data": map[string]any{"k": text}}}})
	}
	for name, change := range map[string]func(*fixture){
		"UnsharedWhileThePresentRevisionDoesNotReadIt": func(m *fixture) { m.waits(readsBeside("web")); m.changesBeside(unshare) },
		"UnsharedWhileTheAddonDoesNotRender": func(m *fixture) {
			m.next("2", doesNotRender("web", ofKey("one")), once("1"))
			m.settle()
			m.changesBeside(unshare)
		},
		"UnsharedWhileTheRevisionIsGone": func(m *fixture) {
			m.editDelivery(testSet, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = "none-e1" })
			m.settle()
			m.changesBeside(unshare)
		},
		"UnsharedTogetherWithVariables": func(m *fixture) {
			facts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "facts",
				Annotations: map[string]string{hubv1.ShareAnnotation: "flux-system"}}, Data: map[string]string{"a": "b"}}
			m.create(append(setOf(testSet, "2", map[string]any{"selectAll": true, "addons": []map[string]any{web},
				"variablesFrom": []any{map[string]any{"configMap": "facts", "from": "Cluster"}}})[1:], facts)...)
			m.roll(testSet, "2")
			m.settle()
			m.readsAll("web")
			edit(m, testCluster.Namespace, "facts", facts, func(c *corev1.ConfigMap) { c.Annotations = nil })
			m.changesBeside(func(s *corev1.Secret) { s.Annotations = nil })
		},
		"NotReadAndAnotherAddonFails":     func(m *fixture) { m.next("2", doesNotRender("bad"), readsBeside("web"), once("1")) },
		"NotReadBesideWhatWasAppliedOnce": func(m *fixture) { m.next("2", once("2"), readsBeside("web")) },
		"ItsNamespaceBecomesATeams": func(m *fixture) {
			of := teamOf("x")
			of.Namespace, of.Spec.HubNamespaces = "other", []string{"flux-system"}
			m.create(of)
			m.restart()
			m.r.Config.PlatformNamespaces = []string{"other"}
		},
		"ItsRegistrationIsADuplicate": func(m *fixture) {
			m.editRegistration(func(r *hubv1.ClusterRegistration) {
				r.Status.DuplicateOf = &hubv1.RegistrationReference{Namespace: "fleet", Name: "other"}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := valuesFixture(t, web, once("1"))
			m.wantsCopy("one=1")
			change(m)
			m.settle()
			m.wantsCopy("")
		})
	}
}

// TestValuesCopyLeavesAUsersSecretAlone: a user has a Secret with a copy's name. The hub does not touch it, and the delivery names it.
func TestValuesCopyLeavesAUsersSecretAlone(t *testing.T) {
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: valuesCopy()},
		Data: map[string][]byte{"mine": []byte("m")}}
	m := newServedFixture(t, append(addonsOf(testSet, "1", readsBeside("web", ofKey("one"))), theirs,
		besideSecret("values", map[string][]byte{"one": []byte("1"), "two": []byte("2")}))...)
	m.settle()
	if s := reread(m, theirs); len(s.Data) != 1 || len(s.Labels) > 0 || !strings.Contains(m.firstAddon().Message, theirs.Name) {
		t.Errorf("the user's Secret is now %v %v, and the delivery says %+v", s.Data, s.Labels, m.firstAddon())
	}
}
