// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// reporter writes what Flux would into the statuses of its objects, where Flux is not there.
type reporter struct {
	client dynamic.Interface

	mu   sync.Mutex
	last map[reported]bool // what was reported Ready
}

type reported struct {
	kind       schema.GroupVersionResource
	key        types.NamespacedName
	generation int64
}

const (
	// work is how long Flux is at work on a change.
	work = time.Second
	// reporters are how many statuses are on their way at a time: enough that the API server is what they wait for.
	reporters = 32
)

// ready reports every object Ready that it has not reported as it is now.
func (r *reporter) ready(ctx context.Context, objects []reported) error {
	return each(reporters, objects, func(o reported) error {
		if r.known(o) {
			return nil
		}
		return r.report(ctx, o, "True", "ReconciliationSucceeded", "applied")
	})
}

func (r *reporter) known(o reported) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[o]
}

// noise reports what changes nothing, at a rate, until the context ends: that Flux is at it again, and that it has done it. It returns
// how many statuses it wrote.
func (r *reporter) noise(ctx context.Context, list []reported, perSecond int) (int, error) {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return n, nil
		case <-tick.C:
		}
		o := list[(n/2)*7919%len(list)] // all over the fleet
		status, reason, message := "Unknown", "Progressing", fmt.Sprintf("running, for the %dth time", n)
		if n%2 == 1 {
			status, reason, message = "True", "ReconciliationSucceeded", "applied"
		}
		if err := r.report(context.WithoutCancel(ctx), o, status, reason, message); err != nil {
			return n, err
		}
	}
}

func (r *reporter) report(ctx context.Context, o reported, status, reason, message string) error {
	patch := fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"conditions":[{"type":"Ready","status":%q,"reason":%q,"message":%q,"observedGeneration":%d,"lastTransitionTime":%q}]}}`,
		o.generation, status, reason, message, o.generation, time.Now().UTC().Format(time.RFC3339))
	_, err := r.client.Resource(o.kind).Namespace(o.key.Namespace).Patch(ctx, o.key.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[o] = status == "True"
	return err
}
