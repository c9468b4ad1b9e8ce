// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// leave unregisters a fifth of the fleet at once, and measures what a cluster costs then. It has to cost the same in every fleet: a live
// list of all Flux objects for each cluster would cost the product of both.
func (r *run) leave(ctx context.Context) error {
	fleet := names("c", r.p.Clusters)
	leaving := fleet[len(fleet)-max(1, len(fleet)/5):] // those that hang are the first
	before, err := r.askedSoFar(ctx)
	if err != nil {
		return err
	}
	spent, err := r.hub.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := each(16, leaving, func(name string) error { return r.unregister(ctx, name) }); err != nil {
		return err
	}
	if err := r.unregistered(ctx, leaving[0]); err != nil {
		return err
	}
	n := float64(len(leaving))
	r.result.LeaveSeconds = time.Since(began).Seconds()
	now, err := r.hub.cpu()
	if err != nil {
		return err
	}
	r.result.LeaveCPU = float64((now - spent).Microseconds()) / 1000 / n
	asked, err := r.askedSince(ctx, before, len(leaving))
	if err != nil {
		return err
	}
	after, err := r.askedSoFar(ctx)
	if err != nil {
		return err
	}
	r.result.LeaveRequests, r.result.LeaveLists = all(asked)/n, listed(before, after)/n
	return nil
}

// unregister takes the label off a cluster.
func (f *fleet) unregister(ctx context.Context, name string) error {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusters, Name: name}}
	return f.management.Client.Patch(ctx, s, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:"false"}}}`, hubv1.RegisterLabel)))
}

// unregistered waits until no registration is left whose name is one, or comes after it, among those of the fleet's beginning.
func (f *fleet) unregistered(ctx context.Context, first string) error {
	for {
		list := &hubv1.ClusterRegistrationList{}
		if err := f.management.Client.List(ctx, list); err != nil {
			return err
		}
		left := 0
		for i := range list.Items {
			if name := list.Items[i].Name; strings.HasPrefix(name, "c0") && name >= first {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d clusters are not unregistered: %w", left, context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}

// listed returns how many lists there were in between, without those of registrations, which the bench reads.
func listed(before, after map[request]float64) (n float64) {
	for kind, of := range after {
		if kind.verb == "LIST" && kind.resource != registrations.Resource {
			n += of - before[kind]
		}
	}
	return n
}
