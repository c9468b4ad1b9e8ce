// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// chronicle counts how often each object of an ordeal is made and how often it goes, on the clusters and on the hub. Who looks
// only at what there is in the end does not see what was removed and made again.
type chronicle struct {
	mu         sync.Mutex
	made, gone map[string]int
	lost       error // a watch that ended
}

func startChronicle(t *testing.T, o *ordeal) *chronicle {
	t.Helper()
	c := &chronicle{made: map[string]int{}, gone: map[string]int{}}
	named := func(obj metav1.Object) bool { return strings.HasPrefix(obj.GetName(), o.prefix+"-") }
	for _, cluster := range o.clusters {
		c.watch(t, cluster, &corev1.ConfigMapList{}, named)
	}
	generated := func(obj metav1.Object) bool { return obj.GetLabels()["app.kubernetes.io/managed-by"] == "chandler" }
	for _, list := range []client.ObjectList{&hubv1.AddonDeliveryList{}, fluxObjects("HelmRelease"), fluxObjects("Kustomization"), &corev1.SecretList{}} {
		c.watch(t, o.Cluster, list, generated)
	}
	return c
}

func (c *chronicle) watch(t *testing.T, cluster *localfleet.Cluster, list client.ObjectList, about func(metav1.Object) bool) {
	t.Helper()
	kind := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", list), "*v1."), "List")
	if m, ok := list.(*metav1.PartialObjectMetadataList); ok {
		kind = strings.TrimSuffix(m.Kind, "List")
	}
	watcher, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme})
	check(t, err)
	w, err := watcher.Watch(t.Context(), list)
	check(t, err)
	t.Cleanup(w.Stop)
	ctx := t.Context()
	go func() {
		for e := range w.ResultChan() {
			obj, err := meta.Accessor(e.Object)
			if err == nil && about(obj) {
				c.note(e.Type, fmt.Sprintf("%s %s %s/%s", cluster.Name, kind, obj.GetNamespace(), obj.GetName()))
			}
		}
		if ctx.Err() == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lost = fmt.Errorf("the watch on %s of %s ended", kind, cluster.Name)
		}
	}()
}

func (c *chronicle) note(e watch.EventType, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e {
	case watch.Added:
		c.made[what]++
	case watch.Deleted:
		c.gone[what]++
	}
}

// wantEachOnce wants everything that there was to have been made once, and to have gone once, and begins anew.
func (c *chronicle) wantEachOnce(t *testing.T) {
	t.Helper()
	soon(t, "all that was made is seen to go", func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		errs := []error{c.lost}
		for what, n := range c.made {
			if c.gone[what] < n {
				errs = append(errs, fmt.Errorf("%s is still there", what))
			}
		}
		return errors.Join(errs...)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, n := range c.made {
		if n != 1 || c.gone[what] != 1 {
			t.Errorf("%s was made %d times and went %d times, want once each", what, n, c.gone[what])
		}
	}
	// Three clusters with four ConfigMaps, four Flux objects, two deliveries and a copy each.
	if len(c.made) != 3*(4+4+2+1) {
		t.Errorf("there have been %d objects, want 33: %v", len(c.made), c.made)
	}
	c.made, c.gone = map[string]int{}, map[string]int{}
}
