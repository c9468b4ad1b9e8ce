// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestDocumentsOfOldRevisionsAreForgotten: a change of what the cluster's deliveries refer to now wakes it, also while one of the
// deliveries cannot be read. A change of what they referred to before does not.
func TestDocumentsOfOldRevisionsAreForgotten(t *testing.T) {
	objects := append(addonsOf(testSet, "1", manifestsFrom("before")), delivered("more", manifestsFrom("theirs"))...)
	m := newServedFixture(t, append(objects, documentOf("theirs", "a"))...)
	wakes := func(want ...string) {
		t.Helper()
		var got []string
		for _, name := range []string{"before", "now", "theirs"} {
			if len(m.r.documents.ReadersOf("ConfigMap")(t.Context(), documentOf(name, ""))) > 0 {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("woken for %v, want %v", got, want)
		}
	}
	m.settle()
	wakes("before", "theirs")
	m.next("2", manifestsFrom("now"))
	m.reads("*v1alpha1.AddonSet more")
	m.settle()
	wakes("before", "now", "theirs")
	m.reads("")
	m.settle()
	wakes("now", "theirs")
	m.settle() // by what is remembered
	wakes("now", "theirs")
}

// documentOf returns a ConfigMap of the platform with a manifest that holds a value.
func documentOf(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}, Data: map[string]string{
		"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {a: " + value + "}"}}
}

// write has a user write a value into document "doc".
func (m *fixture) write(value string) {
	m.quietly(func() {
		edit(m, "flux-system", "doc", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data = documentOf("doc", value).Data })
	})
}

// wantDocument fails if the Flux object of add-on "reading" is not of what document "doc" holds.
func (m *fixture) wantDocument() {
	m.t.Helper()
	doc := reread(m, documentOf("doc", ""))
	if values := string(m.release("reading").Spec.Values.Raw); !strings.Contains(values, document.ConfigMap(nil, doc.Data).Version) {
		m.t.Errorf("the cluster has %s, and the document is %v", values, doc.Data)
	}
}

// afterRead does something once, when an object of a kind has been read.
type afterRead struct {
	client.Reader
	of client.Object
	do func()
}

func (a *afterRead) Get(ctx context.Context, k client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := a.Reader.Get(ctx, k, obj, opts...)
	if reflect.TypeOf(obj) == reflect.TypeOf(a.of) && a.do != nil {
		a.do()
		a.do = nil
	}
	return err
}

// TestDocumentChangesWhileItIsRendered: the hub delivers a document as it is now, though it changes while the hub renders a cluster by it.
func TestDocumentChangesWhileItIsRendered(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", manifestsFrom("doc")), documentOf("doc", "before"))...)
	m.settle()
	m.r.Live = &afterRead{m.r.Live, &corev1.ConfigMap{}, func() { m.write("now") }}
	m.write("between")
	m.settle()
	m.wantDocument()
}

// TestDocumentChangesBeforeItIsWritten: the hub writes what it has planned, and not what comes of a document that has changed since: the
// hub would note that as what was planned.
func TestDocumentChangesBeforeItIsWritten(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", manifestsFrom("doc")), documentOf("doc", "before"))...)
	m.settle()
	m.strip(m.object("reading"))
	between := m.onWrite("apply ", func() error {
		m.write("between")
		return nil
	})
	if err := m.reconcile(); !*between {
		t.Fatalf("the object was not made: %v", err)
	}
	m.write("before")
	m.settle()
	m.wantDocument()
}

// TestManifestThatIsThereTwice: an add-on that would bring an object twice fails with both origins, also if one is in a Secret, which only
// the hub can look into. What runs stays, and the add-on goes on when one of the two is gone.
func TestManifestThatIsThereTwice(t *testing.T) {
	plain := map[string]any{"name": "plain", "manifests": map[string]any{
		"targetNamespace": "team1",
		"objects":         []any{map[string]any{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "team"}}},
		"manifestsFrom":   []any{map[string]any{"kind": "Secret", "name": "quotas"}},
	}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "quotas"},
		Data: map[string][]byte{"quotas.yaml": []byte("{apiVersion: v1, kind: ResourceQuota, metadata: {name: other}}")}}
	m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app"), plain), secret)...)
	m.settle()
	m.wantReady("plain")
	put := func(objects string) {
		edit(m, "flux-system", "quotas", secret, func(s *corev1.Secret) { s.Data["quotas.yaml"] = []byte(objects) })
		m.settle()
	}
	put("{apiVersion: v1, kind: ResourceQuota, metadata: {name: team, namespace: team1}, spec: {hard: {pods: sesame}}}")
	a := m.addon("plain")
	const want = `manifests: ResourceQuota team1/team is there twice: as objects[0] of the set, and in key "quotas.yaml" of Secret "quotas"`
	if a.State != hubv1.AddonFailed || !strings.Contains(a.Message, want) || strings.Contains(a.Message, "sesame") {
		t.Errorf("it says %+v", a)
	}
	m.wantReady("app")
	if m.object("plain") == nil || len(m.released) > 0 {
		t.Errorf("it does not stay: orphaned %v", m.released)
	}
	put("{apiVersion: v1, kind: ResourceQuota, metadata: {name: other, namespace: team1}}")
	m.wantReady("plain")
}

// unreadable restarts the hub. Its reads of one object, by type and name, fail until it is restarted again.
func (m *fixture) unreadable(what string) {
	m.restart()
	m.reads(what)
}

// reads has the hub's reads of one object fail, by type and name; "" for none.
func (m *fixture) reads(but string) {
	c := interceptor.NewClient(m.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if fmt.Sprintf("%T %s", obj, key.Name) == but {
				return errors.New("cannot be read today")
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	m.r.Client, m.r.Live, m.r.Shared.Client, m.r.Shared.Live = c, c, c, c
}

// unreadableFixture has testSet delivered, whose next revision reads several objects that may not be readable. Another set arrives.
func unreadableFixture(t *testing.T) *fixture {
	adopting, waiting := kustomizationAddon("adopting"), kustomizationAddon("waiting")
	adopting["adopt"] = map[string]any{"name": "old"}
	waiting["dependsOn"] = []any{map[string]any{"addonSet": "absent", "name": "x"}}
	m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), documentOf("values", "a"))...)
	m.settle()
	m.next("2", releaseAddon("app"), manifestsFrom("values"), adopting, waiting)
	m.create(delivered("more", releaseAddon("falco"), releaseAddon("app"))...)
	return m
}

// TestDeliveryThatCannotBeRead: a delivery stays as it is and says so, if the hub cannot read something for that delivery. The cluster's
// other deliveries go on.
func TestDeliveryThatCannotBeRead(t *testing.T) {
	for name, what := range map[string]string{
		"Set":        "*v1alpha1.AddonSet " + testSet,
		"Revision":   "*v1.ControllerRevision {revision}",
		"Document":   "*v1.ConfigMap values",
		"Adopted":    "*v1.Kustomization old",
		"Dependency": "*v1alpha1.AddonSet absent",
	} {
		t.Run(name, func(t *testing.T) {
			m := unreadableFixture(t)
			m.unreadable(strings.ReplaceAll(what, "{revision}", revisionOf(testSet, "2")))
			m.settle()
			if o := m.object("falco"); o == nil || m.says("more", "falco").State != hubv1.AddonReady ||
				m.says("more", "app").State != hubv1.AddonLostTo {
				t.Errorf("the other set's add-ons: %v, %+v", o, m.delivery("more").Status.Addons)
			}
			m.wantReady("app")
			c := status.Find(m.delivery(testSet), hubv1.ReadyCondition)
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != hubv1.ReadFailedReason ||
				!strings.Contains(c.Message, "cannot be read today") {
				t.Errorf("its delivery says %+v", c)
			}
			before := m.writes
			if err := m.reconcile(); err == nil || m.writes != before || len(m.released) > 0 {
				t.Errorf("it is not tried again, or costs %d writes: %v; orphaned: %v", m.writes-before, err, m.released)
			}
			m.restart()
			m.settle()
			if d := m.delivery(testSet); d.Status.ObservedRevision != d.Spec.RevisionName || m.object("reading") == nil {
				t.Errorf("when all can be read again: %+v", d.Status)
			}
		})
	}
}

// TestLeavingDeliveryThatCannotBeRead: nothing leaves, and nothing is orphaned, while the hub cannot read the set that says how.
func TestLeavingDeliveryThatCannotBeRead(t *testing.T) {
	for name, leave := range map[string]func(*fixture){
		"Withdrawn":     func(m *fixture) { m.withdraw(testSet) },
		"DeletedByHand": func(m *fixture) { m.delete(testSet) },
	} {
		t.Run(name, func(t *testing.T) {
			m := unreadableFixture(t)
			leave(m)
			m.unreadable("*v1alpha1.AddonSet " + testSet)
			m.settle()
			if m.object("app") == nil || m.delivery(testSet) == nil || m.object("falco") == nil {
				t.Errorf("uninstalled %v, orphaned %v, delivery %v", m.uninstalled, m.released, m.delivery(testSet))
			}
			m.restart()
			m.settle()
			if m.delivery(testSet) != nil {
				t.Error("the delivery stays when its set can be read again")
			}
		})
	}
}

// installed returns the schemas of a HelmRelease's CRD whose spec is like that.
func installed(t *testing.T, spec string) *crdschema.Library {
	t.Helper()
	l, err := crdschema.Parse([]byte(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
		metadata: {name: helmreleases.helm.toolkit.fluxcd.io},
		spec: {group: helm.toolkit.fluxcd.io, scope: Namespaced, names: {kind: HelmRelease, plural: helmreleases},
		versions: [{name: v2, served: true, storage: true,
		schema: {openAPIV3Schema: {type: object, properties: {spec: ` + spec + `}}}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSchemasChange: the hub asks again what the CRDs refuse on a cluster when they change. What runs stays, whatever they say.
func TestSchemasChange(t *testing.T) {
	odd := releaseAddon("odd", map[string]any{"driftDetection": map[string]any{"mode": "<< 'brand' + 'new' >>"}})
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"), odd)...)
	var schemas *crdschema.Library
	m.r.Programs = &programs.Cache{Schemas: func() *crdschema.Library { return schemas }}
	m.settle()
	if a := m.addon("odd"); m.object("odd") != nil || !strings.Contains(a.Message, "driftDetection.mode") {
		t.Fatalf("by the CRD that is built in: %+v", a)
	}
	schemas = installed(t, "{type: object, x-kubernetes-preserve-unknown-fields: true}")
	m.settle()
	m.wantReady("odd")
	schemas = installed(t, "{type: object}") // of which nothing that is delivered is a field
	m.settle()
	if m.object("app") == nil || m.object("odd") == nil || len(m.uninstalled)+len(m.released) > 0 {
		t.Errorf("by one that takes nothing: there are %v; uninstalled %v, orphaned %v", m.objects(), m.uninstalled, m.released)
	}
	m.wantNoWrites()
}

// learn has the cluster tell how many nodes it has.
func (m *fixture) learn(nodes int32) {
	m.editRegistration(func(reg *hubv1.ClusterRegistration) { reg.Status.Nodes = &nodes })
}

// sized is an add-on whose values rest on the number of nodes.
func sized(name string) map[string]any {
	return releaseAddon(name, map[string]any{"values": map[string]any{"replicas": "<< cluster.nodes > 3 ? 3 : 1 >>"}})
}

// TestFactIsUnknown: an add-on whose values rest on an unknown fact of the cluster waits, and says for what. What depends on the add-on
// waits, what does not goes on, and so does another set. When the fact is known, all of it goes on by itself.
func TestFactIsUnknown(t *testing.T) {
	objects := append(addonsOf(testSet, "1", releaseAddon("app"), sized("sized"), dependsOn(releaseAddon("after"), "sized")),
		delivered("more", releaseAddon("falco"))...)
	m := newServedFixture(t, objects...)
	m.settle()
	if m.object("sized") != nil || m.object("after") != nil {
		t.Error("it is made all the same")
	}
	a := m.addon("sized")
	if a.State != hubv1.AddonWaitingForCluster || a.Reason != hubv1.FactUnknownReason ||
		!strings.Contains(a.Message, "cluster.nodes is not known: ") {
		t.Errorf("it says %+v", a)
	}
	if b := m.addon("after"); !strings.Contains(b.Message, `waits for add-on "sized"`) {
		t.Errorf("what depends on it says %+v", b)
	}
	m.wantReady("app")
	if a := m.says("more", "falco"); a.State != hubv1.AddonReady {
		t.Errorf("the other set's says %+v", a)
	}
	d := m.delivery(testSet)
	c := status.Find(d, hubv1.ReadyCondition)
	if c.Status == metav1.ConditionTrue || status.IsTrue(d, hubv1.StalledCondition) || !strings.Contains(c.Message, "cluster.nodes") {
		t.Errorf("the delivery says %+v", d.Status.Conditions)
	}
	if d.Status.ObservedRevision == d.Spec.RevisionName {
		t.Error("the revision counts as written")
	}
	m.wantNoWrites()
	m.learn(5)
	m.settle()
	m.wantReady("sized")
	m.wantReady("after")
}

// TestFactIsUnknownAgain: what runs stays as it is while a fact is not known that was known before, or that an edit asks for.
func TestFactIsUnknownAgain(t *testing.T) {
	for name, edited := range map[string]bool{"Forgotten": false, "Edited": true} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", sized("sized"))...)
			m.learn(5)
			m.settle()
			generation := m.object("sized").GetGeneration()
			m.editRegistration(func(reg *hubv1.ClusterRegistration) { reg.Status.Nodes = nil })
			if edited {
				m.next("2", releaseAddon("sized", map[string]any{"values": map[string]any{"replicas": 7,
					"uid": "<< cluster.uid + string(cluster.nodes) >>"}}))
			}
			m.settle()
			o, a := m.object("sized"), m.addon("sized")
			if o == nil || o.GetGeneration() != generation || len(m.uninstalled)+len(m.released) > 0 {
				t.Errorf("it does not stay as it is: %v, uninstalled %v, orphaned %v", o, m.uninstalled, m.released)
			}
			if a.State != hubv1.AddonWaitingForCluster || a.Reason != hubv1.FactUnknownReason {
				t.Errorf("it says %+v", a)
			}
			m.learn(5)
			m.settle()
			m.wantReady("sized")
			if d := m.delivery(testSet); d.Status.ObservedRevision != d.Spec.RevisionName {
				t.Errorf("when it is known, it has revision %s", d.Status.ObservedRevision)
			}
		})
	}
}
