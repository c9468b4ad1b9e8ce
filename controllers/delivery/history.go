// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
)

// A HelmRelease without a history upgrades a release that it finds, whatever that is (helm-controller,
// DetermineReleaseState: ReleaseStatusUnmanaged). So that an adopted release stays as it is, the new HelmRelease gets
// the history of the hand-written one. It is made suspended, and is resumed when Flux has looked at it and it has the
// history. Flux compares the history with the release on the cluster, by digest. If it does not fit, Flux upgrades as it
// would without one.

// history is what Flux has noted of a release in the status of a HelmRelease.
type history struct {
	StorageNamespace             string             `json:"storageNamespace"`
	History                      helmv2.Snapshots   `json:"history"`
	ObservedPostRenderersDigest  string             `json:"observedPostRenderersDigest,omitempty"`
	ObservedCommonMetadataDigest string             `json:"observedCommonMetadataDigest,omitempty"`
	Conditions                   []metav1.Condition `json:"conditions"`
	// made is when the hub made the object that is to get it.
	made time.Time
}

// maxSnapshots is how many revisions of a release Flux remembers at most, unless its HelmRelease says more.
const maxSnapshots = 5

// historyOf returns what Flux has noted of the release that an add-on goes on with. It returns nil if Flux would do
// something else with the release than leave it or upgrade it: its last action has failed, it is another release, or
// it has another chart, for which Flux would reinstall. Of notes in a form of before, Flux checks no digest.
func historyOf(hr *helmv2.HelmRelease, w *assembly.Wanted) *history {
	s := hr.Status
	released := apimeta.FindStatusCondition(s.Conditions, fluxstate.Released)
	if released == nil || released.Status != metav1.ConditionTrue {
		return nil
	}
	out := &history{StorageNamespace: s.StorageNamespace, ObservedPostRenderersDigest: s.ObservedPostRenderersDigest,
		ObservedCommonMetadataDigest: s.ObservedCommonMetadataDigest, Conditions: []metav1.Condition{*released}}
	for _, of := range s.History {
		fits := of.Name == w.Release.Name && of.Namespace == w.Release.Namespace && of.APIVersion == helmv2.CurrentSnapshotAPIVersion
		if !fits || len(out.History) == maxSnapshots {
			break
		}
		out.History = append(out.History, of)
	}
	if !out.fits(w) {
		return nil
	}
	if tested := apimeta.FindStatusCondition(s.Conditions, helmv2.TestSuccessCondition); tested != nil {
		out.Conditions = append(out.Conditions, *tested)
	}
	return out
}

// fits returns whether Flux would leave or upgrade the release of an add-on that gets a history. If the history were of
// another release or chart, Flux would uninstall that, and the removal guard has not been asked.
func (h *history) fits(w *assembly.Wanted) bool {
	if h == nil || len(h.History) == 0 {
		return false
	}
	latest := h.History.Latest()
	is := hubv1.HelmReleaseIdentity{Name: latest.Name, Namespace: latest.Namespace, StorageNamespace: h.StorageNamespace}
	return is == w.Release && (w.Chart == "" || latest.ChartName == w.Chart)
}

// histories remembers the histories of hand-written HelmReleases until those that take over from them have got them. A
// hub that is restarted in between has forgotten them.
type histories struct {
	mu      sync.Mutex
	entries map[key]map[plan.Key]*history
}

// note remembers what an object of a cluster is to get, or forgets it.
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

// forget forgets what the objects of a cluster are to get that nobody needs any more.
func (h *histories) forget(cluster key, needed func(plan.Key) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.entries[cluster], func(k plan.Key, _ *history) bool { return !needed(k) })
	if len(h.entries[cluster]) == 0 {
		delete(h.entries, cluster)
	}
}

// begin notes when the hub has made the object that is to get a history.
func (h *histories) begin(cluster key, k plan.Key, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if of := h.entries[cluster][k]; of != nil {
		of.made = now
	}
}

// of returns what an object is to get; nil for nothing.
func (h *histories) of(cluster key, k plan.Key) *history {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.entries[cluster][k]
	if of == nil {
		return nil
	}
	own := *of
	return &own
}

// historyNeeded returns whether an object may still get a history: it is held back, or is about to be made, or nobody knows that now.
func (c *cluster) historyNeeded(k plan.Key) bool {
	if o := c.objects[k]; o != nil {
		return o.heldBack
	}
	if d, _ := c.wanted(k); d != nil {
		return true
	}
	return slices.ContainsFunc(c.deliveries, func(d *delivery) bool { return d.Namespace == k.Namespace && d.failed != nil })
}

// keepHistory remembers the history of a hand-written HelmRelease that is handed over, for the object that takes over
// from it. Only one that lies beside that counts: who can write the status of the one, can write that of the other.
// Otherwise the owner of a namespace could have Flux leave his own values in place of those of the platform.
func (r *Reconciler) keepHistory(ctx context.Context, c *cluster, s plan.Step) error {
	_, w := c.wanted(s.To)
	if w == nil || s.Key.Kind != fluxspec.HelmReleaseKind || s.Key.Namespace != s.To.Namespace {
		return nil
	}
	hr := &helmv2.HelmRelease{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.Key.Namespace, Name: s.Key.Name}, hr); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("read %s, whose release another object goes on with: %w", s.Key, err))
	}
	r.histories.note(c.key, s.To, historyOf(hr, w))
	return nil
}

// adopting is the SuspendedAnnotation of an object that is to get a history.
const adopting = "Adoption"

// holdBack has Flux leave a new object alone for now, and notes on it the release that it is to go on with: if the
// object goes before Flux has worked on it, that is left. It returns false for an object that Flux would reinstall if
// its chart has another name than before, because nobody knows the name.
func holdBack(o *unstructured.Unstructured, w *assembly.Wanted) bool {
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "upgrade", "chartNameChangeStrategy")
	want := desired(w)
	has, err := json.Marshal(want.Has())
	spec, ok := o.Object["spec"].(map[string]any)
	if err != nil || !ok || w.Chart == "" && strategy == string(helmv2.ChartNameChangeStrategyReinstall) {
		return false
	}
	a := o.GetAnnotations()
	a[hubv1.SuspendedAnnotation], a[hubv1.InheritedAnnotation] = adopting, string(has)
	o.SetAnnotations(a)
	spec["suspend"] = true
	return true
}

// holdsBack returns whether an object of a delivery is about to be resumed, with or without a history.
func (c *cluster) holdsBack(d *delivery) bool {
	for k, o := range c.objects {
		if k.Namespace == d.Namespace && o.delivery == d.Name && o.heldBack && !o.Deleting && c.suspended() == nil {
			return true
		}
	}
	return false
}

// fluxLooks is how long Flux may take to look at a new object that is suspended.
const fluxLooks = 10 * time.Second

// goOn resumes an object that was held back, when it has the history. If Flux worked on it while that is written, Flux
// would wait in vain for its own status to reach its cache (helm-controller, waitForHistoryCacheSync). It is resumed only as it was
// seen: what somebody has deleted meanwhile Flux has let go, and would uninstall then.
func (r *Reconciler) goOn(ctx context.Context, c *cluster, s plan.Step) outcome {
	o := c.objects[s.Key]
	hr := &helmv2.HelmRelease{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.Key.Namespace, Name: s.Key.Name}, hr); err != nil || hr.UID != o.uid {
		return outcome{err: client.IgnoreNotFound(err), applied: o.Applied}
	}
	if hr.DeletionTimestamp != nil {
		c.lookAgain(soon) // the cache does not show that yet
		return outcome{applied: o.Applied}
	}
	has := len(hr.Status.History) > 0
	if of := r.histories.of(c.key, s.Key); of != nil && !has {
		late := r.Clock.Since(of.made) >= fluxLooks
		if hr.Status.ObservedGeneration < hr.Generation && !late {
			c.lookAgain(time.Second) // an event wakes us before, when Flux has looked
			return outcome{applied: o.Applied}
		}
		err := r.writeHistory(ctx, hr, of)
		if err != nil && !late {
			c.lookAgain(time.Second)
			return outcome{applied: o.Applied}
		}
		if has = err == nil; !has { // it is no more than a help
			c.log(ctx, s).Error(err, "Flux upgrades a release that could have stayed as it is")
		}
	}
	annotations := map[string]any{hubv1.SuspendedAnnotation: nil}
	if has {
		annotations[hubv1.InheritedAnnotation] = nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.uid, "resourceVersion": hr.ResourceVersion, "annotations": annotations},
		"spec":     map[string]any{"suspend": nil},
	})
	if err != nil {
		return outcome{err: err, applied: o.Applied}
	}
	err = r.Client.Patch(ctx, hr, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(hubv1.FieldManager))
	if apierrors.IsConflict(err) {
		c.lookAgain(soon)
		return outcome{applied: o.Applied}
	}
	if err != nil {
		return outcome{err: client.IgnoreNotFound(fmt.Errorf("resume %s: %w", s.Key, err)), applied: o.Applied}
	}
	r.histories.note(c.key, s.Key, nil)
	if o.Generation > o.Applied { // somebody had edited it before
		return outcome{applied: o.Applied}
	}
	r.ledger.note(s.Key, hr)
	return outcome{applied: hr.Generation}
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
