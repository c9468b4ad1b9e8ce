// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// setWatch sees when the rollout of each set is complete.
type setWatch struct {
	mu   sync.Mutex
	sets map[string]completion
}

type completion struct {
	generation int64
	at         time.Time
}

// watchSets watches until the context ends.
func watchSets(ctx context.Context, c dynamic.Interface) (*setWatch, error) {
	w := &setWatch{sets: map[string]completion{}}
	kind := hubv1.GroupVersion.WithResource("addonsets")
	informer := dynamicinformer.NewFilteredDynamicInformer(c, kind, sets, 0, cache.Indexers{}, nil).Informer()
	see := cache.ResourceEventHandlerFuncs{AddFunc: w.see, UpdateFunc: func(_, after any) { w.see(after) }}
	if _, err := informer.AddEventHandler(see); err != nil {
		return nil, err
	}
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watch the sets: %w", context.Cause(ctx))
	}
	return w, nil
}

func (w *setWatch) see(obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	set := &hubv1.AddonSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, set); err != nil {
		return
	}
	for _, c := range set.Status.Conditions {
		if c.Type == hubv1.RolloutCompleteCondition && c.Status == metav1.ConditionTrue && c.ObservedGeneration == set.Generation {
			w.note(set.Name, set.Generation)
		}
	}
}

// note keeps the first time for each generation.
func (w *setWatch) note(name string, generation int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sets[name].generation < generation {
		w.sets[name] = completion{generation, time.Now()}
	}
}

// of returns when the rollouts of these generations were complete, of those that are.
func (w *setWatch) of(generations map[string]int64) map[string]time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	done := map[string]time.Time{}
	for name, generation := range generations {
		if is := w.sets[name]; is.generation >= generation {
			done[name] = is.at
		}
	}
	return done
}
