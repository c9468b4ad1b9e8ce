// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// kinds are Flux's.
var kinds = []schema.GroupVersionResource{
	helmv2.GroupVersion.WithResource("helmreleases"), kustomizev1.GroupVersion.WithResource("kustomizations"),
}

// observer sees every Flux object come and go: when the last one of a cluster was made, and when any was changed.
type observer struct {
	label    string // of an object, with its cluster
	mu       sync.Mutex
	objects  map[types.UID]made
	clusters map[string]*seen
	latest   time.Time // of the last that was made, or whose spec was changed
	changed  int       // how often a spec was changed
	follower workqueue.TypedDelayingInterface[reported]
	works    time.Duration // how long the follower lets Flux work on a change
	wake     chan struct{}
}

// made is a Flux object.
type made struct {
	reported
	cluster string
}

type seen struct {
	count int
	last  time.Time
}

// observe watches objects of some kinds, which name their cluster in a label, until the context ends. It returns when it
// knows what is there.
func observe(ctx context.Context, config *rest.Config, kinds []schema.GroupVersionResource, label string) (*observer, error) {
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	o := &observer{label: label, objects: map[types.UID]made{}, clusters: map[string]*seen{}, wake: make(chan struct{}, 1)}
	factory := metadatainformer.NewSharedInformerFactory(c, 0)
	for _, kind := range kinds {
		_, err := factory.ForResource(kind).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { o.add(kind, obj) }, UpdateFunc: func(before, after any) { o.update(kind, before, after) }, DeleteFunc: o.remove,
		})
		if err != nil {
			return nil, err
		}
	}
	factory.Start(ctx.Done())
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return nil, fmt.Errorf("watch %s: %w", kind, ctx.Err())
		}
	}
	return o, nil
}

func (o *observer) add(kind schema.GroupVersionResource, obj any) {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	cluster := m.Labels[o.label]
	o.objects[m.UID] = made{reported{kind, types.NamespacedName{Namespace: m.Namespace, Name: m.Name}, m.Generation}, cluster}
	s := o.clusters[cluster]
	if s == nil {
		s = &seen{}
		o.clusters[cluster] = s
	}
	s.count++
	s.last = time.Now()
	o.latest = s.last
	o.signal()
}

func (o *observer) update(kind schema.GroupVersionResource, before, after any) {
	b, ok1 := before.(*metav1.PartialObjectMetadata)
	a, ok2 := after.(*metav1.PartialObjectMetadata)
	if !ok1 || !ok2 || a.Generation == b.Generation {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.latest = time.Now()
	now := made{reported{kind, types.NamespacedName{Namespace: a.Namespace, Name: a.Name}, a.Generation}, a.Labels[o.label]}
	o.objects[a.UID] = now
	if a.Namespace == sets {
		o.changed++
	}
	if o.follower != nil {
		o.follower.AddAfter(now.reported, o.works)
	}
	o.signal()
}

// follow calls a function for every change of a spec from now on, after the time that Flux works on it, until the function that it
// returns is called, which waits for those under way.
func (o *observer) follow(works time.Duration, do func(reported)) (stop func()) {
	queue := workqueue.NewTypedDelayingQueue[reported]()
	var workers sync.WaitGroup
	for range reporters {
		workers.Go(func() {
			for {
				item, over := queue.Get()
				if over {
					return
				}
				do(item)
				queue.Done(item)
			}
		})
	}
	o.mu.Lock()
	o.follower, o.works = queue, works
	o.mu.Unlock()
	return func() {
		o.mu.Lock()
		o.follower = nil
		o.mu.Unlock()
		queue.ShutDown()
		workers.Wait()
	}
}

func (o *observer) remove(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.clusters[o.objects[m.UID].cluster]; s != nil {
		s.count--
	}
	delete(o.objects, m.UID)
	o.signal()
}

func (o *observer) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// in returns the objects of a namespace, by cluster as Flux does them: all that a cluster gets is made at one time.
func (o *observer) in(namespace string) []reported {
	o.mu.Lock()
	defer o.mu.Unlock()
	var there []made
	for _, m := range o.objects {
		if m.key.Namespace == namespace {
			there = append(there, m)
		}
	}
	slices.SortFunc(there, func(a, b made) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.kind.Resource, b.kind.Resource), cmp.Compare(a.key.Name, b.key.Name))
	})
	out := make([]reported, len(there))
	for i, m := range there {
		out[i] = m.reported
	}
	return out
}

func (o *observer) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.objects)
}

// changes is how often the spec of an object of the hub's was changed.
func (o *observer) changes() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

func (o *observer) last() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest
}

// complete returns when a cluster got its nth object; false while it has fewer.
func (o *observer) complete(cluster string, n int) (time.Time, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.clusters[cluster]
	if s == nil || s.count < n {
		return time.Time{}, false
	}
	return s.last, true
}

// until waits for something to be true, and looks again whenever an object has come, changed or gone.
func (o *observer) until(ctx context.Context, what string, done func() bool) error {
	look := time.NewTicker(100 * time.Millisecond) // what other than an event may have done
	defer look.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (%d Flux objects)", what, context.Cause(ctx), o.count())
		case <-o.wake:
		case <-look.C:
		}
	}
	return nil
}
