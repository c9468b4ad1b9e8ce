// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// checkWrite looks at each write of the hub.
func (w *World) checkWrite(write apiserver.Write) {
	if write.New == nil && write.Key.Kind == "ClusterRegistration" {
		w.checkUnregistered(write.Key)
	}
	w.checkRecorded(write)
	if write.New == nil || !write.Changed && write.Verb != "delete" {
		return
	}
	switch {
	case write.Key.Kind == "TenantControlPlane":
		w.checkDrained(write)
	case write.Key.Kind == "Secret":
		w.checkSecret(write)
		w.checkBeside(write)
	case isFlux(write.Key):
		w.checkPaused(write)
		w.checkLogin(write)
		w.checkOrder(write)
		w.checkOrigin(write)
	case write.Key.Group == "chandler.dev":
		w.checkBounds(write)
		w.checkReady(write)
		w.checkHeld(write)
		if write.Key.Kind == "ClusterRegistration" {
			w.checkAsked(write)
			w.checkUnread(write)
		}
	}
}

// checkLogin: a Flux object is made when the kubeconfig copy that it names leads to its cluster, and not to a former one.
func (w *World) checkLogin(write apiserver.Write) {
	name, _ := nested(write.New, "spec", "kubeConfig", "secretRef", "name").(string)
	secret := w.server.Get(apiserver.Key{Kind: "Secret", Namespace: write.Key.Namespace, Name: name})
	if write.Old != nil || secret == nil {
		return
	}
	text, _ := nested(secret, "data", "value").(string)
	raw, _ := base64.StdEncoding.DecodeString(text)
	to, _, err := w.reach(string(raw))
	if of := nested(write.New, "metadata", "annotations", hubv1.ClusterUIDAnnotation); err == nil && of != string(to.uid()) {
		w.violated("kubeconfigs", "%s is made for cluster %v, and its kubeconfig copy leads to %s, which is %s", write.Key, of, to.name, to.uid())
	}
}

// checkUnregistered: a registration that goes leaves no delivery behind, unless its origin has it made again.
func (w *World) checkUnregistered(k apiserver.Key) {
	c := w.cluster(k.Name)
	if c == nil || c.provider == "Hand" || nested(w.server.Get(c.origin()), "metadata", "labels", hubv1.RegisterLabel) == "true" {
		return
	}
	for _, d := range w.deliveries() {
		if d.Spec.RegistrationRef.Name == c.name && !forged(d) {
			w.violated("convergence", "registration %s goes, its origin does not want it, and delivery %s stays", c.name, d.Name)
		}
	}
}

// checkSecret: a kubeconfig lies beside its cluster and in platform namespaces, a Team's token in its hub namespace, and neither elsewhere.
func (w *World) checkSecret(write apiserver.Write) {
	data, _ := nested(write.New, "data").(map[string]any)
	for _, v := range data {
		text, _ := v.(string)
		raw, _ := base64.StdEncoding.DecodeString(text)
		address := serverLine.FindSubmatch(raw)
		if address == nil {
			continue
		}
		if given, ok := w.tokens[tokenIn(string(raw))]; ok {
			if write.Key.Namespace != given.team.hub || given.cluster.address != string(address[1]) {
				w.violated("secrets", "a token of Team %s for %s lies in %s", given.team.name, given.cluster.name, write.Key)
			}
			continue
		}
		for _, c := range w.clusters {
			if ns := write.Key.Namespace; c.address == string(address[1]) && ns != c.namespace && ns != "flux-system" {
				w.violated("secrets", "the kubeconfig of %s lies in namespace %s", c.name, ns)
			}
		}
	}
}

// growing are the kinds of which each cluster has some.
var growing = []string{"SecretList", "ConfigMapList", "HelmReleaseList", "KustomizationList"}

// checkList: what is looked up of these kinds is looked up by an index. Else the work for one cluster grows with the fleet.
func (w *World) checkList(list client.ObjectList, opts []client.ListOption) {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	gvk, err := apiutil.GVKForObject(list, w.scheme)
	must(err)
	if o.FieldSelector == nil && slices.Contains(growing, gvk.Kind) {
		w.violated("lookup", "a controller reads every object of a %s", gvk.Kind)
	}
}

// ofAttempt are the reasons for which kustomize-controller fails when it has begun.
var ofAttempt = map[string]bool{"ReconciliationFailed": true, "HealthCheckFailed": true, "BuildFailed": true, "PruneFailed": true}

// checkReady: an add-on becomes Ready, of what the hub has written last, when Flux has done that, and not before. It fails when Flux has
// begun with it, or had failed when the hub was started, which cannot know then what was tried.
func (w *World) checkReady(write apiserver.Write) {
	if write.Key.Kind != "AddonDelivery" {
		return
	}
	before, d := &hubv1.AddonDelivery{}, typed(w, write.New, &hubv1.AddonDelivery{})
	if write.Old != nil {
		before = typed(w, write.Old, &hubv1.AddonDelivery{})
	}
	w.checkSilence(d)
	if w.at != nil && !w.at.leads {
		return // what a former process says arrives late, and the one that leads says otherwise as soon as it sees that
	}
	for _, a := range d.Status.Addons {
		was := slices.ContainsFunc(before.Status.Addons, func(b hubv1.AddonStatus) bool {
			return b.State == a.State && b.Object == a.Object && b.AppliedGeneration == a.AppliedGeneration
		})
		if was || a.State != hubv1.AddonReady && a.State != hubv1.AddonFailed {
			continue
		}
		k := keyOf(a.Kind, d.Namespace, a.Object)
		if a.State == hubv1.AddonFailed {
			if a.Kind == "Kustomization" && ofAttempt[a.Reason] && w.flux.begun[k] < a.AppliedGeneration &&
				w.flux.missed[k] < a.AppliedGeneration {
				w.violated("status", "%s says that add-on %s has failed at generation %d, with which Flux has not begun",
					d.Name, a.Name, a.AppliedGeneration)
			}
			continue
		}
		o := w.server.Get(k)
		done, _ := nested(o, "status", "observedGeneration").(int64)
		if o != nil && nested(o, "spec", "suspend") != true && nested(o, "metadata", "deletionTimestamp") == nil &&
			done < a.AppliedGeneration {
			w.violated("status", "%s says that add-on %s is Ready at generation %d of its %s, and Flux has done %d",
				d.Name, a.Name, a.AppliedGeneration, a.Kind, done)
		}
	}
}

// knowsPaused returns whether a registration is paused in the cache of a process.
func (w *World) knowsPaused(h *hub, registration string) bool {
	key, ok := index.Registration(registration)
	reg := &hubv1.ClusterRegistration{}
	return ok && h.cache.Get(context.Background(), key, reg) == nil && reg.Spec.Pause != nil &&
		status.Reason(reg, hubv1.SuspendedCondition) == hubv1.PausedReason
}

// checkPaused: from the moment at which the controllers can know it, nothing is written to a paused cluster's objects but what suspends
// them.
func (w *World) checkPaused(write apiserver.Write) {
	text, _ := nested(write.New, "metadata", "annotations", hubv1.RegistrationAnnotation).(string)
	key, ok := index.Registration(text)
	h := w.at // what a process can know is in its own cache
	if h == nil {
		h = w.hub
	}
	if !ok || h == nil {
		return
	}
	if !w.knowsPaused(h, text) || w.worksOn != nil && w.request == text && !w.paused { // it has read the registration before
		return
	}
	reg := &hubv1.ClusterRegistration{}
	must(h.cache.Get(context.Background(), key, reg))
	if unregisters := status.Reason(reg, hubv1.UnregisteringCondition); reg.DeletionTimestamp != nil && unregisters != "" &&
		!hubv1.Waits(unregisters) {
		return // whoever unregisters a paused cluster wants its add-ons gone
	}
	if hubv1.OrphansAddons(status.Reason(reg, hubv1.UnregisteringCondition)) || reg.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan {
		return
	}
	if w.lets(h, write.New) {
		return
	}
	if d := w.saidToStay(write.New); d != nil && d.Withdrawn() && reg.DeletionTimestamp != nil {
		return // it was orphaned with its registration, which stays now because its origin is back
	}
	if made := nested(write.New, "metadata", "annotations", hubv1.ClusterUIDAnnotation); made != nil && made != string(reg.Status.ClusterUID) {
		return // what Flux remembers of a cluster that was replaced must not meet the new one
	}
	if write.Old == nil || nested(write.New, "spec", "suspend") != true || !onlySuspends(write.Old, write.New) {
		w.violated("pause", "cluster %s is paused, and the hub wrote: %s %s%s", key, write.Verb, write.Key, difference(write.Old, write.New))
	}
}

// lets returns whether the set of a Flux object orphans what leaves, paused or not, as far as a process can know; or
// did, and the delivery has said by then that it does.
func (w *World) lets(h *hub, o apiserver.Object) bool {
	namespace, name, _ := strings.Cut(setNameOf(o), "/")
	s, seen := w.sets[name], &hubv1.AddonSet{}
	if s == nil || !s.orphaned {
		return false
	}
	known := h.cache.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, seen) == nil
	if s.orphan || known && seen.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan {
		return true
	}
	return w.saidToStay(o) != nil
}

// saidToStay returns the delivery of a Flux object if it says that what that brought stays on the cluster.
func (w *World) saidToStay(o apiserver.Object) *hubv1.AddonDelivery {
	namespace, delivery := nested(o, "metadata", "namespace"), nested(o, "metadata", "annotations", hubv1.DeliveryAnnotation)
	for _, d := range w.deliveries() {
		if d.Namespace == namespace && d.Name == delivery && slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
			return a.State == hubv1.AddonOrphaned && a.Object == nested(o, "metadata", "name")
		}) {
			return d
		}
	}
	return nil
}

// asIfResumed returns an object without what suspends it, and without what each write changes: the reason for
// suspending it may change, and of what Flux has applied, the generation since which it has not applied anything else.
func asIfResumed(o apiserver.Object) apiserver.Object {
	o = apiserver.Clone(o)
	for _, path := range [][]string{
		{"spec", "suspend"}, {"metadata", "annotations", hubv1.SuspendedAnnotation}, {"metadata", "generation"},
		{"metadata", "resourceVersion"}, {"metadata", "managedFields"},
	} {
		unstructured.RemoveNestedField(o, path...)
	}
	if mark, ok := nested(o, "metadata", "annotations", hubv1.AppliedAsAnnotation).(string); ok {
		_, applied, _ := strings.Cut(mark, " ")
		_ = unstructured.SetNestedField(o, applied, "metadata", "annotations", hubv1.AppliedAsAnnotation)
	}
	return o
}

// onlySuspends returns whether a write changes nothing but what suspends an object. It may leave out a note of what Flux had applied if
// Flux has succeeded since.
func onlySuspends(before, after apiserver.Object) bool {
	was, is := asIfResumed(before), asIfResumed(after)
	note := []string{"metadata", "annotations", hubv1.AppliedAsAnnotation}
	mark, _ := nested(before, note...).(string)
	since, _, _ := strings.Cut(mark, " ")
	if n, err := strconv.ParseInt(since, 10, 64); err == nil && n < succeeded(before) && nested(is, note...) == nil {
		unstructured.RemoveNestedField(was, note...)
	}
	return reflect.DeepEqual(was, is)
}

// succeeded returns the generation that a Flux object is Ready at, 0 if it is not Ready.
func succeeded(o apiserver.Object) int64 {
	conditions, _ := nested(o, "status", "conditions").([]any)
	for _, c := range conditions {
		if nested(c, "type") == "Ready" && nested(c, "status") == "True" {
			n, _ := nested(c, "observedGeneration").(int64)
			return n
		}
	}
	return 0
}

func setNameOf(o apiserver.Object) string {
	ns, _ := nested(o, "metadata", "namespace").(string)
	return ns + "/" + apiserver.Label(o, hubv1.AddonSetLabel)
}

// checkBounds: a status is bounded.
func (w *World) checkBounds(write apiserver.Write) {
	conditions, _ := nested(write.New, "status", "conditions").([]any)
	for _, c := range conditions {
		if m, _ := nested(c, "message").(string); len(m) > 32768 {
			w.violated("bounded", "a message in the status of %s has %d characters", write.Key, len(m))
		}
	}
}
