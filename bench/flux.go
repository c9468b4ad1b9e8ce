// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// reporter writes what Flux would into the statuses of its objects, where Flux is not there.
type reporter struct{ client dynamic.Interface }

type reported struct {
	kind       schema.GroupVersionResource
	key        types.NamespacedName
	generation int64
}

// work is how long Flux is at work on a change.
const work = time.Second

func (r *reporter) list(ctx context.Context, namespace string, which func(*unstructured.Unstructured) bool) ([]reported, error) {
	var out []reported
	cluster := map[reported]string{}
	for _, kind := range kinds {
		list, err := r.client.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			o := &list.Items[i]
			if !which(o) {
				continue
			}
			out = append(out, reported{kind, types.NamespacedName{Namespace: namespace, Name: o.GetName()}, o.GetGeneration()})
			cluster[out[len(out)-1]] = o.GetLabels()[hubv1.ClusterLabel]
		}
	}
	// By cluster, as Flux does them: all that a cluster gets is made at one time.
	slices.SortFunc(out, func(a, b reported) int { return cmp.Compare(cluster[a], cluster[b]) })
	return out, nil
}

// unready are the objects that have not been reported Ready as they are now.
func (r *reporter) unready(ctx context.Context, namespace string) ([]reported, error) {
	return r.list(ctx, namespace, func(o *unstructured.Unstructured) bool {
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return observed != o.GetGeneration()
	})
}

// ready reports every object of a namespace Ready.
func (r *reporter) ready(ctx context.Context, namespace string) error {
	list, err := r.unready(ctx, namespace)
	if err != nil {
		return err
	}
	return each(8, list, func(o reported) error { return r.report(ctx, o, "True", "ReconciliationSucceeded", "applied") })
}

// noise reports what changes nothing, at a rate, until the context ends: that Flux is at it again, and that it has done it. It returns
// how many statuses it wrote.
func (r *reporter) noise(ctx context.Context, perSecond int) (int, error) {
	list, err := r.list(ctx, sets, func(*unstructured.Unstructured) bool { return true })
	if err != nil {
		return 0, err
	}
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
	return err
}
