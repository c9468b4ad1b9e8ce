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

// reporter writes the statuses that Flux would write, if Flux does not run.
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
	// work is how long Flux takes for a change.
	work = time.Second
	// reporters is how many statuses are written at a time: enough to make the API server the bottleneck.
	reporters = 32
)

// ready reports every object Ready whose present generation it has not reported yet.
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

// noise writes statuses that change nothing, at a given rate, until the context ends: that Flux is reconciling an
// object again, and that it has finished. It returns how many statuses it wrote.
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
	patch := fmt.Appendf(nil,
		`{"status":{"observedGeneration":%d,"conditions":[{"type":"Ready","status":%q,"reason":%q,"message":%q,`+
			`"observedGeneration":%d,"lastTransitionTime":%q}]}}`,
		o.generation, status, reason, message, o.generation, time.Now().UTC().Format(time.RFC3339))
	_, err := r.client.Resource(o.kind).Namespace(o.key.Namespace).Patch(ctx, o.key.Name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[o] = status == "True"
	return err
}
