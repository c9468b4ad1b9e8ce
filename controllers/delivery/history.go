// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
)

// A HelmRelease without a history upgrades a release that it finds, whatever that is (helm-controller,
// DetermineReleaseState: ReleaseStatusUnmanaged). So that an adopted release stays as it is, the new HelmRelease gets
// the history of the hand-written one. It is made suspended, gets the history when Flux has looked at it, and is then
// written as it should be. Flux compares the history with the release on the cluster, by digest. If it does not fit,
// Flux upgrades as it would without one.

// history is what Flux has noted of a release in the status of a HelmRelease.
type history struct {
	History                      helmv2.Snapshots   `json:"history"`
	ObservedPostRenderersDigest  string             `json:"observedPostRenderersDigest,omitempty"`
	ObservedCommonMetadataDigest string             `json:"observedCommonMetadataDigest,omitempty"`
	Conditions                   []metav1.Condition `json:"conditions"`
}

// historyOf returns what Flux has noted of a release; nil if its last action has failed, or it was of another release.
func historyOf(hr *helmv2.HelmRelease, release hubv1.HelmReleaseIdentity) *history {
	latest, s := hr.Status.History.Latest(), hr.Status
	released := apimeta.FindStatusCondition(s.Conditions, fluxstate.Released)
	if latest == nil || released == nil || released.Status != metav1.ConditionTrue || latest.Name != release.Name ||
		latest.Namespace != release.Namespace || s.StorageNamespace != release.StorageNamespace {
		return nil
	}
	out := &history{s.History, s.ObservedPostRenderersDigest, s.ObservedCommonMetadataDigest, []metav1.Condition{*released}}
	if tested := apimeta.FindStatusCondition(s.Conditions, helmv2.TestSuccessCondition); tested != nil {
		out.Conditions = append(out.Conditions, *tested)
	}
	return out
}

// histories remembers the histories of hand-written HelmReleases until those that take over from them have got them. A
// hub that is restarted in between has forgotten them.
type histories struct {
	mu      sync.Mutex
	entries map[key]map[plan.Key]*history
}

// note remembers, or forgets, what an object of a cluster is to get.
func (h *histories) note(cluster key, k plan.Key, of *history) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if of == nil {
		if delete(h.entries[cluster], k); len(h.entries[cluster]) == 0 {
			delete(h.entries, cluster)
		}
		return
	}
	if h.entries == nil {
		h.entries = map[key]map[plan.Key]*history{}
	}
	if h.entries[cluster] == nil {
		h.entries[cluster] = map[plan.Key]*history{}
	}
	h.entries[cluster][k] = of
}

// forget forgets a cluster.
func (h *histories) forget(cluster key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.entries, cluster)
}

// of returns what an object is to get; nil for nothing.
func (h *histories) of(cluster key, k plan.Key) *history {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.entries[cluster][k]
}

// adoptHistory remembers the history of a hand-written HelmRelease for the object that takes over from it. Only those count
// that lie beside it: who can write the status of one, can write that of the other. Otherwise the owner of a namespace
// could have Flux leave his own values in place of those of the platform.
func (r *Reconciler) adoptHistory(c *cluster, hr *helmv2.HelmRelease, by *render.Object) {
	if hr.Namespace != by.Namespace {
		return
	}
	k := plan.Key{Kind: by.Kind, Namespace: by.Namespace, Name: by.Name}
	r.histories.note(c.key, k, historyOf(hr, releaseOf(hr)))
}

// holdBack makes an object that Flux leaves alone, and that is written again as it should be.
func holdBack(o *unstructured.Unstructured) {
	a := o.GetAnnotations()
	delete(a, hubv1.HashAnnotation)
	o.SetAnnotations(a)
	spec := o.Object["spec"].(map[string]any)
	spec["suspend"] = true
}

// fluxLooks is how long Flux may take to look at a new object that is suspended.
const fluxLooks = 10 * time.Second

// hand gives an object the history that it is to go on with, and returns whether Flux has to leave the object alone for
// now: it does not exist, or Flux has not looked at it. If Flux worked on it meanwhile, it would wait in vain for its own
// status to reach its cache (helm-controller, waitForHistoryCacheSync).
func (r *Reconciler) hand(ctx context.Context, c *cluster, k plan.Key, there *object) (wait bool, err error) {
	of := r.histories.of(c.key, k)
	if of == nil {
		return false, nil
	}
	if there == nil || there.Finished {
		c.lookAgain(soon)
		return true, nil
	}
	hr := &helmv2.HelmRelease{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: k.Name}, hr); err != nil {
		return true, fmt.Errorf("read %s, which goes on with a release: %w", k, err)
	}
	if len(hr.Status.History) == 0 && hr.Spec.Suspend && hr.UID == there.uid {
		if hr.Status.ObservedGeneration < hr.Generation && r.Clock.Since(hr.CreationTimestamp.Time) < fluxLooks {
			c.lookAgain(soon)
			return true, nil
		}
		if err := r.writeHistory(ctx, hr, of); err != nil {
			return true, err
		}
	}
	r.histories.note(c.key, k, nil)
	return false, nil
}

// writeHistory writes a history into a status. It leaves alone what Flux has written meanwhile.
func (r *Reconciler) writeHistory(ctx context.Context, hr *helmv2.HelmRelease, of *history) error {
	h := *of
	h.Conditions = nil
	for _, condition := range of.Conditions {
		condition.ObservedGeneration = hr.Generation
		h.Conditions = append(h.Conditions, condition)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": hr.ResourceVersion}, "status": h})
	if err != nil {
		return err
	}
	err = r.Client.Status().Patch(ctx, hr, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(hubv1.FieldManager))
	if err != nil {
		return fmt.Errorf("note the history of release %s in HelmRelease %s/%s: %w", of.History.Latest().Name, hr.Namespace, hr.Name, err)
	}
	return nil
}
