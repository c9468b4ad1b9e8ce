// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/status"
)

// unreadable has the hub's reads of one object fail, by type and name, until it is restarted. It is restarted before.
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

// failingFixture has a set delivered whose next revision needs several things that may not be readable, and another set that arrives.
func failingFixture(t *testing.T) *fixture {
	adopting, waiting := kustomizationAddon("adopting"), kustomizationAddon("waiting")
	adopting["adopt"] = map[string]any{"name": "old"}
	waiting["dependsOn"] = []any{map[string]any{"addonSet": "absent", "name": "x"}}
	reading := map[string]any{"name": "reading", "manifests": map[string]any{"manifestsFrom": []any{map[string]any{"kind": "ConfigMap", "name": "values"}}}}
	objects := append(addonsOf(testSet, "1", releaseAddon("app")), addonsOf(testSet, "2", releaseAddon("app"), reading, adopting, waiting)[1:]...)
	m := newFixture(t, append(objects, registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, testSet, "1"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "values"}, Data: map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}"}})...)
	m.settle()
	edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(testSet, "2") })
	m.quietly(func() {
		for _, o := range append(addonsOf("more", "1", releaseAddon("falco"), releaseAddon("app")), deliveredTo(testCluster, "more", "1")) {
			m.must(m.api.Create(t.Context(), o))
		}
	})
	return m
}

// What cannot be read of one delivery is that delivery's own: it stays as it is and says so, and the cluster's others go on.
func TestOneDeliveryCannotBeRead(t *testing.T) {
	for name, what := range map[string]string{
		"Set":        "*v1alpha1.AddonSet " + testSet,
		"Revision":   "*v1.ControllerRevision {revision}",
		"Document":   "*v1.ConfigMap values",
		"Adopted":    "*v1.Kustomization old",
		"Dependency": "*v1alpha1.AddonSet absent",
	} {
		t.Run(name, func(t *testing.T) {
			m := failingFixture(t)
			m.unreadable(strings.ReplaceAll(what, "{revision}", revisionOf(testSet, "2")))
			m.settle()
			if o := m.object(testCluster, "falco"); o == nil || m.says("more", "falco").State != hubv1.AddonReady {
				t.Errorf("the other set's add-on: %v, %+v", o, m.says("more", "falco"))
			}
			if m.object(testCluster, "app") == nil || len(m.uninstalled)+len(m.released) > 0 || m.says("more", "app").State != hubv1.AddonLostTo {
				t.Errorf("what it has: uninstalled %v, orphaned %v; the other set says %+v", m.uninstalled, m.released, m.says("more", "app"))
			}
			d := m.delivery(testCluster, testSet)
			if c := status.Find(d, hubv1.ReadyCondition); c == nil || c.Status != metav1.ConditionFalse || c.Reason != hubv1.ReadFailedReason || !strings.Contains(c.Message, "cannot be read today") {
				t.Errorf("its delivery says %+v", c)
			}
			if m.says(testSet, "app").State != hubv1.AddonReady {
				t.Errorf("its add-on: %+v", m.says(testSet, "app"))
			}
			before := m.writes
			if err := m.reconcile(testCluster); err == nil || m.writes != before {
				t.Errorf("it is not tried again, or costs %d writes: %v", m.writes-before, err)
			}
			m.restart()
			m.settle()
			if d := m.delivery(testCluster, testSet); d.Status.ObservedRevision != d.Spec.RevisionName || m.object(testCluster, "reading") == nil {
				t.Errorf("when all can be read again: %+v", d.Status)
			}
		})
	}
}

// Nothing leaves, and nothing is orphaned, while the set cannot be read that says how.
func TestSetOfALeavingDeliveryCannotBeRead(t *testing.T) {
	for name, leave := range map[string]func(*fixture){
		"Withdrawn":     func(m *fixture) { m.withdraw(testCluster, testSet) },
		"DeletedByHand": func(m *fixture) { m.delete(testCluster, testSet) },
	} {
		t.Run(name, func(t *testing.T) {
			m := failingFixture(t)
			leave(m)
			m.unreadable("*v1alpha1.AddonSet " + testSet)
			m.settle()
			if m.object(testCluster, "app") == nil || m.delivery(testCluster, testSet) == nil || m.object(testCluster, "falco") == nil {
				t.Errorf("uninstalled %v, orphaned %v, delivery %v", m.uninstalled, m.released, m.delivery(testCluster, testSet))
			}
			m.restart()
			m.settle()
			if m.delivery(testCluster, testSet) != nil {
				t.Error("the delivery stays when its set can be read again")
			}
		})
	}
}

// says returns what a delivery to the cluster says of an add-on.
func (m *fixture) says(set, name string) hubv1.AddonStatus {
	return (&observed.Delivery{Before: m.delivery(testCluster, set)}).Was(name)
}
