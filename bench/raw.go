// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
)

const (
	rawNamespace = "raw"
	rawWriters   = 32 // with 16 to 32 an API server on two cores takes the most
)

// sampled returns how many objects the bare client writes beside a fleet of so many. A garbage collection of a large API server
// takes a third of its processor time while it lasts, and what is over in a few seconds meets one, or meets none.
func sampled(objects int) int { return max(1000, objects/4) }

// raw is a bare client: it only applies the objects that it is given, with the same informers open as the hub.
type raw struct{ client dynamic.Interface }

// newRaw returns a bare client that nothing slows down.
func newRaw(config *rest.Config) (*raw, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := dynamic.NewForConfig(config)
	return &raw{client: c}, err
}

// watch opens the hub's informers, with the hub's own settings, until the function that it returns is called.
func (r *raw) watch(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (stop func(), err error) {
	options := index.CacheOptions()
	options.Scheme = scheme
	informers, err := cache.New(config, options)
	if err != nil {
		return nil, err
	}
	watched := []client.Object{&hubv1.AddonSet{}, &hubv1.AddonDelivery{}, &hubv1.ClusterRegistration{}}
	for obj := range options.ByObject {
		watched = append(watched, obj)
	}
	for _, obj := range watched {
		if _, err := informers.GetInformer(ctx, obj, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("watch %T: %w", obj, err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = informers.Start(ctx) // what has not started does not come to be below
	}()
	stop = func() { cancel(); <-done }
	if !informers.WaitForCacheSync(ctx) {
		stop()
		return nil, errors.New("the bare client's informers do not come to be")
	}
	return stop, nil
}

type manifest struct {
	kind schema.GroupVersionResource
	obj  *unstructured.Unstructured
}

// capture reads Flux objects that the hub made, at most so many, as the hub would write them into another namespace. The HelmReleases are
// all of the add-on that is changed later, each of another cluster: a change of a few would be over before Flux began to report it.
func (r *raw) capture(ctx context.Context, most int) ([]manifest, error) {
	var out []manifest
	for _, kind := range kinds {
		of := metav1.ListOptions{Limit: int64(most / len(kinds))}
		if kind.Resource == "helmreleases" {
			of.LabelSelector = hubv1.AddonLabel + "=" + changing
		}
		list, err := r.client.Resource(kind).Namespace(sets).List(ctx, of)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, manifest{kind, bareCopy(&list.Items[i])})
		}
	}
	return out, nil
}

// bareCopy returns an object as a bare client writes it into its own namespace.
func bareCopy(u *unstructured.Unstructured) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
	for _, field := range []string{"spec", "data", "type"} {
		if v, ok := u.Object[field]; ok {
			o.Object[field] = v
		}
	}
	o.SetName(u.GetName())
	o.SetNamespace(rawNamespace)
	o.SetLabels(u.GetLabels())
	o.SetAnnotations(u.GetAnnotations())
	return o
}

// apply applies every manifest, and returns how many that were in a second.
func (r *raw) apply(ctx context.Context, manifests []manifest) (float64, error) {
	begin := time.Now()
	err := each(rawWriters, manifests, func(m manifest) error { return r.put(ctx, m) })
	return float64(len(manifests)) / time.Since(begin).Seconds(), err
}

// put applies an object.
func (r *raw) put(ctx context.Context, m manifest) error {
	_, err := r.client.Resource(m.kind).Namespace(rawNamespace).Apply(ctx, m.obj.GetName(), m.obj,
		metav1.ApplyOptions{FieldManager: "bench", Force: true})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", m.kind.Resource, m.obj.GetName(), err)
	}
	return nil
}

// changed returns one manifest of each cluster, with another value.
func (r *raw) changed(manifests []manifest, color string) ([]manifest, error) {
	var changed []manifest
	for _, m := range manifests {
		if m.obj.GetLabels()[hubv1.AddonLabel] != changing {
			continue
		}
		o := m.obj.DeepCopy()
		if err := unstructured.SetNestedField(o.Object, color, "spec", "values", "color"); err != nil {
			return nil, err
		}
		changed = append(changed, manifest{m.kind, o})
	}
	return changed, nil
}

// remove deletes what was applied, and waits until there are as few objects as before.
func (r *raw) remove(ctx context.Context, o *observer, before int) error {
	for _, kind := range kinds {
		if err := r.client.Resource(kind).Namespace(rawNamespace).DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{}); err != nil {
			return err
		}
	}
	return o.until(ctx, "what the bare client made is gone", func() bool { return o.count() <= before })
}
