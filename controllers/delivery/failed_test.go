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
	"github.com/chandler-hub/chandler/internal/status"
)

// unreadable has the hub's reads of one object fail, by type and name, until it is restarted. It is restarted before.
func (m *room) unreadable(what string) {
	m.restart()
	m.reads(what)
}

// reads has the hub's reads of one object fail, by type and name; "" for none.
func (m *room) reads(but string) {
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

// failingRoom has a set delivered whose next revision needs several things that may not be readable, and another set that arrives.
func failingRoom(t *testing.T) *room {
	adopting, waiting := kustomizationAddon("adopting"), kustomizationAddon("waiting")
	adopting["adopt"] = map[string]any{"name": "old"}
	waiting["dependsOn"] = []any{map[string]any{"addonSet": "absent", "name": "x"}}
	reading := map[string]any{"name": "reading", "manifests": map[string]any{"manifestsFrom": []any{map[string]any{"kind": "ConfigMap", "name": "values"}}}}
	objects := append(addonsOf(roomSet, "1", releaseAddon("app")), addonsOf(roomSet, "2", releaseAddon("app"), reading, adopting, waiting)[1:]...)
	m := newRoom(t, append(objects, registered(roomCluster, "c1"), kubeconfigSecret(roomCluster, "t0"), deliveredTo(roomCluster, roomSet, "1"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "values"}, Data: map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}"}})...)
	m.settle()
	edit(m, "flux-system", m.delivery(roomCluster, roomSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(roomSet, "2") })
	m.quietly(func() {
		for _, o := range append(addonsOf("more", "1", releaseAddon("falco"), releaseAddon("app")), deliveredTo(roomCluster, "more", "1")) {
			m.must(m.api.Create(t.Context(), o))
		}
	})
	return m
}

// What cannot be read of one delivery is that delivery's own: it stays as it is and says so, and the cluster's others go on.
func TestOneDeliveryCannotBeRead(t *testing.T) {
	for name, what := range map[string]string{
		"Set":        "*v1alpha1.AddonSet " + roomSet,
		"Revision":   "*v1.ControllerRevision {revision}",
		"Document":   "*v1.ConfigMap values",
		"Adopted":    "*v1.Kustomization old",
		"Dependency": "*v1alpha1.AddonSet absent",
	} {
		t.Run(name, func(t *testing.T) {
			m := failingRoom(t)
			m.unreadable(strings.ReplaceAll(what, "{revision}", revisionOf(roomSet, "2")))
			m.settle()
			if o := m.object(roomCluster, "falco"); o == nil || m.says("more", "falco").State != hubv1.AddonReady {
				t.Errorf("the other set's add-on: %v, %+v", o, m.says("more", "falco"))
			}
			if m.object(roomCluster, "app") == nil || len(m.uninstalled)+len(m.released) > 0 || m.says("more", "app").State != hubv1.AddonLostTo {
				t.Errorf("what it has: uninstalled %v, let go %v; the other set says %+v", m.uninstalled, m.released, m.says("more", "app"))
			}
			d := m.delivery(roomCluster, roomSet)
			if c := status.Find(d, hubv1.ReadyCondition); c == nil || c.Status != metav1.ConditionFalse || c.Reason != hubv1.ReadFailedReason || !strings.Contains(c.Message, "cannot be read today") {
				t.Errorf("its delivery says %+v", c)
			}
			if m.says(roomSet, "app").State != hubv1.AddonReady {
				t.Errorf("its add-on: %+v", m.says(roomSet, "app"))
			}
			before := m.writes
			if err := m.reconcile(roomCluster); err == nil || m.writes != before {
				t.Errorf("it is not tried again, or costs %d writes: %v", m.writes-before, err)
			}
			m.restart()
			m.settle()
			if d := m.delivery(roomCluster, roomSet); d.Status.ObservedRevision != d.Spec.RevisionName || m.object(roomCluster, "reading") == nil {
				t.Errorf("when all can be read again: %+v", d.Status)
			}
		})
	}
}

// Nothing leaves, and nothing is let go, while the set cannot be read that says how.
func TestSetOfALeavingDeliveryCannotBeRead(t *testing.T) {
	for name, leave := range map[string]func(*room){
		"Withdrawn":     func(m *room) { m.withdraw(roomCluster, roomSet) },
		"DeletedByHand": func(m *room) { m.delete(roomCluster, roomSet) },
	} {
		t.Run(name, func(t *testing.T) {
			m := failingRoom(t)
			leave(m)
			m.unreadable("*v1alpha1.AddonSet " + roomSet)
			m.settle()
			if m.object(roomCluster, "app") == nil || m.delivery(roomCluster, roomSet) == nil || m.object(roomCluster, "falco") == nil {
				t.Errorf("uninstalled %v, let go %v, delivery %v", m.uninstalled, m.released, m.delivery(roomCluster, roomSet))
			}
			m.restart()
			m.settle()
			if m.delivery(roomCluster, roomSet) != nil {
				t.Error("the delivery stays when its set can be read again")
			}
		})
	}
}

// says returns what a delivery to the cluster says of an add-on.
func (m *room) says(set, name string) hubv1.AddonStatus {
	return was(&delivery{before: m.delivery(roomCluster, set)}, name)
}
