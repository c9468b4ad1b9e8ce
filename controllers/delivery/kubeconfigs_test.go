// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/planned"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/render"
)

// kubeconfigOf returns the copy of the cluster's kubeconfig, nil if it does not exist.
func (m *fixture) kubeconfigOf(cluster types.NamespacedName) *corev1.Secret {
	s := &corev1.Secret{}
	if err := m.api.Get(m.t.Context(), types.NamespacedName{Namespace: "flux-system", Name: identity.KubeconfigCopy("hub", cluster)}, s); err != nil {
		m.must(client.IgnoreNotFound(err))
		return nil
	}
	return s
}

// rotate gives the cluster a kubeconfig with another token, as its provider and the registration controller do.
func (m *fixture) rotate(cluster types.NamespacedName, token string) {
	config, err := kubeconfig.Parse(testKubeconfig(token), kubeconfig.Rules{AllowMissingCA: true})
	m.must(err)
	edit(m, cluster.Namespace, cluster.Name, &corev1.Secret{}, func(s *corev1.Secret) { s.Data["value"] = testKubeconfig(token) })
	edit(m, cluster.Namespace, cluster.Name, &hubv1.ClusterRegistration{}, func(reg *hubv1.ClusterRegistration) {
		reg.Status.Credential.Fingerprint, reg.Status.Credential.TargetFingerprint = config.Fingerprint(), config.TargetFingerprint()
	})
}

// A kubeconfig copy that a user deletes stays under its finalizer while Flux needs it, and gets the new credentials after a rotation. When nothing
// needs it any more, it goes.
func TestCopyThatIsBeingDeleted(t *testing.T) {
	for name, foreign := range map[string][]string{"Deleted": nil, "AndHeldBySomebodyElse": {"example.org/theirs"}} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
			m.settle()
			copied := m.kubeconfigOf(testCluster)
			m.quietly(func() {
				copied.Finalizers = append(copied.Finalizers, foreign...)
				m.must(m.api.Update(t.Context(), copied))
				m.must(m.api.Delete(t.Context(), copied))
			})
			m.settle()
			m.rotate(testCluster, "t1")
			m.settle()
			got := m.kubeconfigOf(testCluster)
			if got == nil || !bytes.Contains(got.Data[render.KubeconfigKey], []byte("t1")) {
				t.Fatalf("after the rotation the copy is %v", got)
			}
			if len(m.uninstalled)+len(m.released) > 0 {
				t.Errorf("uninstalled %v, orphaned %v", m.uninstalled, m.released)
			}
			before := m.writes
			m.settle()
			if m.writes != before {
				t.Errorf("%d writes for nothing", m.writes-before)
			}
			m.withdraw(testCluster, testSet)
			m.settle()
			if got := m.kubeconfigOf(testCluster); m.delivery(testCluster, testSet) != nil || len(m.uninstalled) != 1 || got != nil && len(got.Finalizers) != len(foreign) {
				t.Errorf("uninstalled %v; the copy is %v", m.uninstalled, got)
			}
		})
	}
	// Without our finalizer the API server would refuse to have it back: what is held by somebody else alone serves until it is gone, and is
	// made again then.
	t.Run("WithoutOurFinalizer", func(t *testing.T) {
		m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
		m.settle()
		copied := m.kubeconfigOf(testCluster)
		m.quietly(func() {
			copied.Finalizers = []string{"example.org/theirs"}
			m.must(m.api.Update(t.Context(), copied))
			m.must(m.api.Delete(t.Context(), copied))
		})
		m.rotate(testCluster, "t1")
		m.settle()
		if got := m.kubeconfigOf(testCluster); !bytes.Contains(got.Data[render.KubeconfigKey], []byte("t1")) || len(got.Finalizers) != 1 {
			t.Fatalf("after the rotation the copy is %v", got)
		}
		m.quietly(func() {
			copied = m.kubeconfigOf(testCluster)
			copied.Finalizers = nil
			m.must(m.api.Update(t.Context(), copied))
		})
		m.settle()
		if got := m.kubeconfigOf(testCluster); got == nil || got.DeletionTimestamp != nil {
			t.Errorf("it is not made again: %v", got)
		}
	})
}

// TestCopyOfAReplacedCluster: what was made for the cluster before goes, also of a set that has no delivery any more. The last delivery waits for
// it, and takes the copy along.
func TestCopyOfAReplacedCluster(t *testing.T) {
	objects := append(addonsOf(testSet, "1", releaseAddon("app")), addonsOf("extra", "1", releaseAddon("logs"))...)
	m := newFixture(t, append(objects, registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"),
		deliveredTo(testCluster, testSet, "1"), deliveredTo(testCluster, "extra", "1"))...)
	m.settle()
	finalizers := func(obj client.Object, names ...string) {
		m.quietly(func() {
			obj.SetFinalizers(names)
			m.must(m.api.Update(t.Context(), obj))
		})
	}
	d := m.delivery(testCluster, testSet)
	finalizers(d)
	m.quietly(func() { m.must(m.api.Delete(t.Context(), d)) })
	edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(r *hubv1.ClusterRegistration) { r.Status.ClusterUID = "c2" })
	m.withdraw(testCluster, "extra")
	m.must(m.reconcile(testCluster))
	finalizers(m.object(testCluster, "app"), "slow") // Flux has much to do
	m.settle()
	if m.object(testCluster, "logs") != nil || m.delivery(testCluster, "extra") == nil || m.kubeconfigOf(testCluster) == nil {
		t.Fatalf("before the last object is gone: %v", m.objects())
	}
	finalizers(m.object(testCluster, "app"))
	m.settle()
	if m.delivery(testCluster, "extra") != nil || m.kubeconfigOf(testCluster) != nil {
		t.Error("the copy has been left")
	}
}

// TestCopyGoesOnce: the kubeconfig copy goes with the last object that Flux works on. It is not made again for one that has gone and that the
// cache still has.
func TestCopyGoesOnce(t *testing.T) {
	for name, change := range map[string]func(m *fixture, c *cluster){
		"CacheIsStale": func(m *fixture, _ *cluster) {
			m.quietly(func() { m.must(m.api.Delete(t.Context(), m.object(testCluster, "app"))) })
			m.flux()
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
			m.settle()
			m.withdraw(testCluster, testSet)
			seen, err := m.r.reader().Gather(t.Context(), testCluster)
			m.must(err)
			c := newCluster(planned.Begin(seen))
			change(m, c)
			m.quietly(func() {
				copied := m.kubeconfigOf(testCluster)
				copied.Finalizers = nil
				m.must(m.api.Update(t.Context(), copied))
				m.must(m.api.Delete(t.Context(), copied))
			})
			m.must(m.r.keeper().Kubeconfigs(t.Context(), c.Cluster))
			if m.kubeconfigOf(testCluster) != nil {
				t.Error("the copy is made again")
			}
		})
	}
}

// TestCopyChanges: the controller looks at a kubeconfig copy that a user edits or deletes, and at no other Secret.
func TestCopyChanges(t *testing.T) {
	secret := func(change func(*metav1.PartialObjectMetadata)) client.Object {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{hubv1.CopyLabel: "true"}, Annotations: map[string]string{hubv1.FingerprintAnnotation: "a"},
		}}
		if change != nil {
			change(o)
		}
		return o
	}
	for name, tc := range map[string]struct {
		change func(*metav1.PartialObjectMetadata)
		want   bool
	}{
		"Same":    {nil, false},
		"Edited":  {func(o *metav1.PartialObjectMetadata) { o.Annotations = nil }, true},
		"Deleted": {func(o *metav1.PartialObjectMetadata) { o.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, true},
		"NoCopy": {func(o *metav1.PartialObjectMetadata) {
			o.Labels, o.DeletionTimestamp = nil, &metav1.Time{Time: time.Now()}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := copyChanges().Update(event.UpdateEvent{ObjectOld: secret(nil), ObjectNew: secret(tc.change)}); got != tc.want {
				t.Errorf("it is looked at: %t", got)
			}
		})
	}
}

// A kubeconfig copy goes as well if its cluster has no registration and no delivery any more, unless a Flux object uses it.
func TestCopyThatNobodyNeeds(t *testing.T) {
	for name, objectStays := range map[string]bool{"NothingIsLeft": false, "AFluxObjectIsLeft": true} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
			m.settle()
			gone := []client.Object{m.delivery(testCluster, testSet)}
			reg := &hubv1.ClusterRegistration{}
			m.must(m.api.Get(t.Context(), testCluster, reg))
			if gone = append(gone, reg); !objectStays {
				gone = append(gone, m.objects()...)
			}
			m.quietly(func() {
				for _, o := range gone {
					o.SetFinalizers(nil)
					m.must(m.api.Update(t.Context(), o))
					m.must(client.IgnoreNotFound(m.api.Delete(t.Context(), o)))
				}
			})
			m.must(m.reconcile(testCluster))
			if got := m.kubeconfigOf(testCluster); (got != nil) != objectStays {
				t.Errorf("the copy is there: %t", got != nil)
			}
		})
	}
}

// TestCopiesThatNobodyNeeds: a copy of the kubeconfig goes from a namespace in which no delivery is left, also if there is one in another
// namespace. A Team's stays beside others: the tokens controller, which has made it, decides.
func TestCopiesThatNobodyNeeds(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
	m.settle()
	for namespace, kind := range map[string]string{testCluster.Namespace: "true", teamNamespace: identity.TeamCopy} {
		left := m.kubeconfigOf(testCluster)
		left.Namespace, left.UID, left.ResourceVersion, left.Labels[hubv1.CopyLabel] = namespace, "", "", kind
		m.quietly(func() { m.must(m.api.Create(t.Context(), left)) })
	}
	m.settle(testCluster)
	if got := m.secrets(); !slices.Equal(got, []string{"flux-system", teamNamespace}) {
		t.Errorf("there are copies in %v", got)
	}
}
