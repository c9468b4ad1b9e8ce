// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

func (w *World) refused(err error) {
	if err != nil {
		w.say("  (refused: %v)", err)
	}
}

// patch is what a user does with kubectl patch or edit.
func (w *World) patch(k apiserver.Key, change string, args ...any) {
	_, err := w.server.Patch("user", k, fmt.Appendf(nil, change, args...), false)
	w.refused(err)
}

// kinds by the words that scripts use.
var kinds = map[string]apiserver.Key{
	"AddonSet": {Group: "chandler.dev", Kind: "AddonSet"}, "AddonDelivery": {Group: "chandler.dev", Kind: "AddonDelivery"},
	"ClusterRegistration": {Group: "chandler.dev", Kind: "ClusterRegistration"}, "Secret": {Kind: "Secret"},
	"ServiceAccount": {Kind: "ServiceAccount"},
	"HelmRelease":    {Group: helmGroup, Kind: "HelmRelease"}, "Kustomization": {Group: kustomizeGroup, Kind: "Kustomization"},
	"HelmChart": {Group: sourceGroup, Kind: "HelmChart"}, "HelmRepository": {Group: sourceGroup, Kind: "HelmRepository"},
	"OCIRepository":      {Group: sourceGroup, Kind: "OCIRepository"},
	"Team":               {Group: "chandler.dev", Kind: "Team"},
	"TenantControlPlane": {Group: "kamaji.clastix.io", Kind: "TenantControlPlane"},
	"ControllerRevision": {Group: "apps", Kind: "ControllerRevision"}, "Namespace": {Kind: "Namespace"},
}

func keyOf(kind, namespace, name string) apiserver.Key {
	k := kinds[kind]
	k.Namespace, k.Name = namespace, name
	return k
}

// terminate begins to delete a namespace.
func (w *World) terminate(name string) {
	w.pastPolicies(func() {
		k := keyOf("Namespace", "", name)
		next := apiserver.Clone(w.server.Get(k))
		next["metadata"].(map[string]any)["finalizers"] = []any{"kubernetes"}
		_, err := w.server.Update("user", "finalizer", k, next, false)
		must(err)
		must(w.server.Delete("user", k, apiserver.Preconditions{}))
	})
}

// removeAll deletes what there is of a kind in a namespace.
func (w *World) removeAll(kind schema.GroupKind, namespace string) {
	for _, o := range w.server.List(kind, namespace) {
		w.remove(apiserver.Key{Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: nested(o, "metadata", "name").(string)})
	}
}

// empty does so as the namespace controller, which no policy denies.
func (w *World) empty(kind schema.GroupKind, namespace string) {
	w.pastPolicies(func() { w.removeAll(kind, namespace) })
}

// finishNamespaces empties the namespaces that are being deleted, and has those go that are empty.
func (w *World) finishNamespaces() {
	for _, ns := range w.server.List(keyOf("Namespace", "", "").GroupKind(), "") {
		name := nested(ns, "metadata", "name").(string)
		if !w.terminates(name) {
			continue
		}
		left := false
		for _, kind := range w.server.Kinds() {
			w.empty(kind, name)
			left = left || len(w.server.List(kind, name)) > 0
		}
		if !left {
			w.dropFinalizer(keyOf("Namespace", "", name), "kubernetes")
		}
	}
}

func (w *World) terminates(namespace string) bool {
	return nested(w.server.Get(keyOf("Namespace", "", namespace)), "metadata", "deletionTimestamp") != nil
}

func (w *World) remove(k apiserver.Key) {
	there := w.server.Get(k)
	if there == nil {
		return
	}
	if err := w.admit(apiserver.Attempt{Key: k, Actor: "user", Verb: "DELETE", Old: there}); err != nil {
		w.refused(err)
		return
	}
	if k.Kind == "AddonSet" {
		if s := w.sets[k.Name]; s != nil && s.namespace == k.Namespace {
			s.deleted = true
		}
	}
	if t := w.teams[k.Name]; t != nil && k == t.key() {
		t.deleted, w.rightsOf(t).deleted = true, true
	}
	for _, c := range w.clusters {
		if reg := w.registered(c); k == c.registration() && status.Reason(reg, hubv1.UnregisteringCondition) == hubv1.OriginMissingReason {
			c.unregistered = true
		}
	}
	if isFlux(k) && !(w.terminates(k.Namespace) && nested(there, "spec", "suspend") == true) { // then Flux uninstalls, and not the hub
		w.deleted[nested(w.server.Get(k), "metadata", "uid")] = true
		for _, c := range w.clusters {
			for _, work := range c.workloads {
				if work.owner == k.String() {
					work.unwanted, work.approved = true, true
				}
			}
		}
	}
	w.refused(w.server.Delete("user", k, apiserver.Preconditions{}))
}

// rewrite writes the Secret of a cluster's kubeconfig again, as its controller does.
func (w *World) rewrite(c *cluster) {
	o := w.server.Get(c.secret())
	if o == nil || c.twin != nil {
		return
	}
	next := apiserver.Clone(o)
	next["data"] = c.data()
	_, err := w.server.Update("user", "rotate", c.secret(), next, false)
	w.refused(err)
}

// rebuild makes another cluster of the same name and address.
func (w *World) rebuild(c *cluster) {
	c.life++
	c.workloads = map[string]*workload{}
	for k, o := range w.orphans {
		if o.cluster == c {
			delete(w.orphans, k)
		}
	}
	w.rewrite(c)
}

// restoreSecret makes the Secret of a cluster's kubeconfig again, if it does not exist.
func (w *World) restoreSecret(c *cluster) {
	if c.gone || c.twin != nil || w.server.Get(c.secret()) != nil {
		return
	}
	o := apiserver.Object{"apiVersion": "v1", "data": c.data()}
	if c.provider == "Secret" {
		o["metadata"] = apiserver.Object{"labels": apiserver.Object{hubv1.RegisterLabel: "true", "tier": "prod"}}
	}
	w.make(c.secret(), o)
}

// recreate makes a new cluster of the name and address of one that has been destroyed, and its origin, unless that is still on its way out.
func (w *World) recreate(c *cluster) {
	if !c.gone || w.server.Get(c.origin()) != nil {
		return
	}
	w.rebuild(c)
	c.gone, c.unregistered = false, false
	if w.server.Get(c.secret()) != nil {
		w.refused(w.server.Delete("user", c.secret(), apiserver.Preconditions{}))
	}
	w.makeOrigin(c, map[string]string{"tier": "prod"})
}

func (w *World) plan(f []string, kinds map[string]string) string {
	n, err := strconv.Atoi(f[0])
	if err != nil || kinds[f[1]] == "" {
		return "write a number, and before or after"
	}
	w.fault = fault{in: n, kind: kinds[f[1]]}
	return ""
}

func (w *World) relist() {
	if w.hub != nil {
		for _, i := range w.hub.cache.Informers() {
			i.Relist()
		}
	}
}

// upgrade makes the present state one that an older renderer has left: its revisions are of another epoch.
func (w *World) upgrade() {
	w.stopHub()
	w.pastPolicies(w.age)
	w.startHub()
}

// age gives what the hub has written an older epoch, as if it had been written then.
func (w *World) age() {
	for _, r := range w.rolls {
		clear(r.approved)
		clear(r.expedited)
	}
	now, before := fmt.Sprintf("-e%d", render.Epoch), fmt.Sprintf("-e%d", render.Epoch-1)
	older := func(v any) string {
		s, _ := v.(string)
		if strings.HasSuffix(s, now) {
			return strings.TrimSuffix(s, now) + before
		}
		return s
	}
	for _, o := range w.server.List(kinds["ControllerRevision"].GroupKind(), "") {
		name, ns := nested(o, "metadata", "name").(string), nested(o, "metadata", "namespace").(string)
		if to := older(name); to != name && w.server.Get(keyOf("ControllerRevision", ns, to)) == nil {
			next := apiserver.Clone(o)
			next["metadata"].(map[string]any)["name"] = to
			_, err := w.server.Create("flux", keyOf("ControllerRevision", ns, to), next)
			w.refused(err)
			w.refused(w.server.Delete("flux", keyOf("ControllerRevision", ns, name), apiserver.Preconditions{}))
		}
	}
	for _, kind := range []string{"AddonDelivery", "AddonSet"} {
		for _, o := range w.server.List(kinds[kind].GroupKind(), "") {
			k := keyOf(kind, nested(o, "metadata", "namespace").(string), nested(o, "metadata", "name").(string))
			next := apiserver.Clone(o)
			if spec, ok := next["spec"].(map[string]any); ok && spec["revisionName"] != nil {
				spec["revisionName"] = older(spec["revisionName"])
				next, _ = w.server.Update("chandler", "older", k, next, false)
				next = apiserver.Clone(next)
			}
			if notes, ok := nested(next, "metadata", "annotations").(map[string]any); ok && kind == "AddonSet" { // their author has seen older names
				for _, order := range []string{hubv1.ApproveAnnotation, hubv1.ExpediteAnnotation, hubv1.RetryAnnotation, hubv1.UndoAnnotation} {
					if text, ok := notes[order].(string); ok {
						notes[order] = strings.ReplaceAll(text, now, before)
					}
				}
				next, _ = w.server.Update("user", "older", k, next, false)
				next = apiserver.Clone(next)
			}
			if st, ok := next["status"].(map[string]any); ok {
				for _, f := range []string{"revision", "observedRevision", "readyRevision"} {
					if st[f] != nil {
						st[f] = older(st[f])
					}
				}
				if roll, ok := st["rollout"].(map[string]any); ok {
					for _, f := range []string{"revision", "completedRevision", "retried"} {
						if text, ok := roll[f].(string); ok {
							roll[f] = strings.ReplaceAll(text, now, before)
						}
					}
				}
				_, err := w.server.Update("flux", "older", k, next, true)
				w.refused(err)
			}
		}
	}
}

func (w *World) takeBackup() {
	w.backup, w.authored = map[apiserver.Key]apiserver.Object{}, map[string]set{}
	for name, s := range w.sets {
		copied := *s
		copied.addons = slices.Clone(s.addons)
		w.authored[name] = copied
	}
	for kind, k := range kinds {
		for _, o := range w.server.List(k.GroupKind(), "") {
			ns, _ := nested(o, "metadata", "namespace").(string)
			w.backup[keyOf(kind, ns, nested(o, "metadata", "name").(string))] = o
		}
	}
}

// restore brings an object back as Velero does: without its status and UID, unless it exists.
func (w *World) restore(k apiserver.Key) {
	o := w.backup[k]
	if o == nil || w.server.Get(k) != nil {
		return
	}
	next := apiserver.Clone(o)
	delete(next, "status")
	var err error
	w.breakingGlass(func() { _, err = w.server.Create("user", k, next) }) // docs/policies.md: a tool that restores backups is in the group
	w.refused(err)
	if s := w.sets[k.Name]; k.Kind == "AddonSet" && err == nil && s != nil {
		*s = w.authored[k.Name] // what is wanted is what was wanted then
		s.addons, s.deleted = slices.Clone(s.addons), false
		w.server.Adopt("user", k) // what its author leaves out from now on goes, as of a set that nobody had to restore
	}
}

// forge makes a delivery of a stranger's for a cluster, who is held by no policy.
func (w *World) forge(c *cluster, namespace, set string) {
	if !w.brokeGlass {
		w.denies("forge " + c.name + ": only the hub may create AddonDeliveries")
		return
	}
	w.pastPolicies(func() { w.forged(c, namespace, set) })
}

func (w *World) forged(c *cluster, namespace, set string) {
	w.make(keyOf("AddonDelivery", namespace, "forged-"+c.name), apiserver.Object{
		"apiVersion": "chandler.dev/v1alpha1",
		"spec": apiserver.Object{
			"registrationRef": apiserver.Object{"namespace": c.namespace, "name": c.name}, "addonSetRef": apiserver.Object{"name": set},
			"revisionName": set + "-0123456789-e2",
		},
	})
}
