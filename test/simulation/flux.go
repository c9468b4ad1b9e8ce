// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// This file, helm.go and kustomize.go are the model of helm-controller 1.6 and kustomize-controller 1.9. What it does, and why, is in
// their sources as named in the comments; what it leaves out is in docs/simulation.md.

const (
	helmGroup      = "helm.toolkit.fluxcd.io"
	kustomizeGroup = "kustomize.toolkit.fluxcd.io"
	sourceGroup    = "source.toolkit.fluxcd.io"
	fluxFinalizer  = "finalizers.fluxcd.io"
)

// flux is the state of the controllers' queues.
type flux struct {
	due      map[apiserver.Key]time.Time
	failures map[apiserver.Key]int
	// begun are the generations that kustomize-controller has begun with last.
	begun map[apiserver.Key]int64
	// missed are the generations that it had not begun with when the hub was started, and of which its Ready speaks: the hub cannot know.
	missed map[apiserver.Key]int64
	// waiting are the objects whose cluster holds Flux's requests.
	waiting map[apiserver.Key]waited
	// uids tells which object has a UID.
	uids map[any]apiserver.Key
}

func isFlux(k apiserver.Key) bool { return k.Kind == "HelmRelease" || k.Kind == "Kustomization" }

// noticed is called after every write.
func (f *flux) noticed(w *World, write apiserver.Write) {
	switch {
	case !write.Changed:
	case isFlux(write.Key):
		if write.New == nil {
			delete(f.uids, nested(write.Old, "metadata", "uid"))
			delete(f.due, write.Key)
			delete(f.failures, write.Key)
			delete(f.begun, write.Key)
			delete(f.waiting, write.Key)
			return
		}
		if write.Old == nil || generationOf(write.Old) != generationOf(write.New) {
			f.uids[nested(write.New, "metadata", "uid")] = write.Key
			f.due[write.Key] = w.clock.Now()
			delete(f.failures, write.Key)
		}
	case write.Key.Kind == "Secret" || write.Key.Kind == "ConfigMap":
		o := write.New
		if o == nil {
			o = write.Old
		}
		if apiserver.Label(o, fluxmeta.LabelKeyWatch) != fluxmeta.LabelValueWatchEnabled {
			return
		}
		for k := range f.due {
			if k.Namespace == write.Key.Namespace && secretOf(w.server.Get(k)) == write.Key.Name {
				f.due[k] = w.clock.Now()
			}
		}
	}
}

func generationOf(o apiserver.Object) int64 {
	g, _ := nested(o, "metadata", "generation").(int64)
	return g
}

func secretOf(o apiserver.Object) string {
	s, _ := nested(o, "spec", "kubeConfig", "secretRef", "name").(string)
	return s
}

func nested(o any, path ...string) any {
	for _, f := range path {
		m, ok := o.(map[string]any)
		if !ok {
			return nil
		}
		o = m[f]
	}
	return o
}

// ready returns what the controllers would work on now.
func (f *flux) ready(now time.Time) []apiserver.Key {
	var out []apiserver.Key
	for k, at := range f.due {
		if !at.After(now) {
			out = append(out, k)
		}
	}
	if len(out) > 1 {
		slices.SortFunc(out, func(a, b apiserver.Key) int { return cmp.Compare(a.String(), b.String()) })
	}
	return out
}

func (f *flux) next() (at time.Time, ok bool) {
	for _, t := range f.due {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// work reconciles one object. It returns what it did, for the story.
func (f *flux) work(w *World, k apiserver.Key) {
	o := w.server.Get(k)
	if o == nil {
		delete(f.due, k)
		return
	}
	if f.overtaken(w, k, o) {
		return
	}
	var failed bool
	if k.Kind == "HelmRelease" {
		hr := &helmv2.HelmRelease{}
		must(w.server.Into(o, hr))
		if f.waits(w, k, hr) {
			return
		}
		failed = f.helm(w, k, hr)
	} else {
		ks := &kustomizev1.Kustomization{}
		must(w.server.Into(o, ks))
		if f.begins(k, ks) { // and says so
			w.report(k, ks, metav1.ConditionUnknown, "Progressing", "Reconciliation in progress")
		}
		if f.waits(w, k, ks) {
			return
		}
		failed = f.kustomize(w, k, ks)
	}
	if w.server.Get(k) == nil {
		return
	}
	if failed {
		f.failures[k]++
		f.due[k] = w.clock.Now().Add(min(30*time.Second<<min(f.failures[k]-1, 5), 15*time.Minute))
		return
	}
	delete(f.failures, k)
	f.due[k] = w.clock.Now().Add(10 * time.Minute)
	conditions, _ := nested(w.server.Get(k), "status", "conditions").([]any)
	if len(conditions) > 0 && nested(conditions[0], "status") == "Unknown" { // it takes its time
		f.due[k] = w.clock.Now().Add(time.Minute)
	}
}

// forgotten notes what a hub that starts has not seen.
func (f *flux) forgotten(w *World) {
	f.missed = map[apiserver.Key]int64{}
	for _, o := range w.server.List(kinds["Kustomization"].GroupKind(), "") {
		namespace, _ := nested(o, "metadata", "namespace").(string)
		name, _ := nested(o, "metadata", "name").(string)
		conditions, _ := nested(o, "status", "conditions").([]any)
		says := len(conditions) > 0 && nested(conditions[0], "observedGeneration") == generationOf(o)
		if k := keyOf("Kustomization", namespace, name); says && f.begun[k] < generationOf(o) {
			f.missed[k] = generationOf(o)
		}
	}
}

// waits has an object wait for those that it depends on, and returns whether it does. Flux looks again in half a minute
// (checkDependencies of either controller; --requeue-dependency).
func (f *flux) waits(w *World, k apiserver.Key, obj runtime.Object) bool {
	o := w.server.Get(k)
	if nested(o, "spec", "suspend") == true || nested(o, "metadata", "deletionTimestamp") != nil {
		return false
	}
	before, _ := nested(o, "spec", "dependsOn").([]any)
	for _, ref := range before {
		of := k
		of.Name, _ = nested(ref, "name").(string)
		if namespace, ok := nested(ref, "namespace").(string); ok {
			of.Namespace = namespace
		}
		there := w.server.Get(of)
		observed, _ := nested(there, "status", "observedGeneration").(int64)
		conditions, _ := nested(there, "status", "conditions").([]any)
		message := fmt.Sprintf("dependency '%s/%s' is not ready", of.Namespace, of.Name)
		switch {
		case there == nil:
			message = fmt.Sprintf("unable to get '%s/%s' dependency: not found", of.Namespace, of.Name)
		case observed == generationOf(there) && len(conditions) > 0 && nested(conditions[0], "status") == "True":
			continue
		}
		w.addFinalizer(k)
		w.report(k, obj, metav1.ConditionFalse, fluxmeta.DependencyNotReadyReason, message)
		f.due[k] = w.clock.Now().Add(halfAMinute)
		return true
	}
	return false
}

const halfAMinute = 30 * time.Second

// begins returns whether kustomize-controller begins with another generation of an object that it may work on.
func (f *flux) begins(k apiserver.Key, o *kustomizev1.Kustomization) bool {
	if o.Spec.Suspend || o.DeletionTimestamp != nil || f.begun[k] == o.Generation {
		return false
	}
	f.begun[k] = o.Generation
	return true
}

// overtaken plays, for some changes, that the controller was at work on the spec before. It ends that first, and its Ready says the
// generation that was written meanwhile (fluxcd/pkg/runtime/patch, patchStatusConditions).
func (f *flux) overtaken(w *World, k apiserver.Key, o apiserver.Object) bool {
	generation, conditions := generationOf(o), nested(o, "status", "conditions")
	list, _ := conditions.([]any)
	if len(list) != 1 || nested(list[0], "status") != "True" && (k.Kind != "Kustomization" || nested(list[0], "status") != "False") ||
		nested(list[0], "observedGeneration") == generation ||
		nested(o, "spec", "suspend") == true || nested(o, "metadata", "deletionTimestamp") != nil {
		return false
	}
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, k, generation)
	if h.Sum32()%4 != 0 {
		return false
	}
	after := apiserver.Clone(o)
	after["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["observedGeneration"] = generation
	_, err := w.server.Update("flux", "status", k, apiserver.Object{"status": after["status"]}, true)
	must(err)
	f.due[k] = w.clock.Now().Add(5 * time.Second)
	return true
}

// addFinalizer and dropFinalizer are patches of metadata.
func (w *World) addFinalizer(k apiserver.Key) {
	o := apiserver.Clone(w.server.Get(k))
	m := o["metadata"].(map[string]any)
	list, _ := m["finalizers"].([]any)
	if !slices.Contains(list, any(fluxFinalizer)) {
		m["finalizers"] = append(slices.Clone(list), fluxFinalizer)
		_, err := w.server.Update("flux", "finalizer", k, o, false)
		must(err)
	}
}

func (w *World) dropFinalizer(k apiserver.Key, finalizer string) {
	there := w.server.Get(k)
	if there == nil {
		return
	}
	o := apiserver.Clone(there)
	m := o["metadata"].(map[string]any)
	list, _ := m["finalizers"].([]any)
	list = slices.DeleteFunc(slices.Clone(list), func(f any) bool { return f == finalizer })
	if len(list) == 0 {
		delete(m, "finalizers")
	} else {
		m["finalizers"] = list
	}
	_, err := w.server.Update("flux", "finalizer", k, o, false)
	must(err)
}

// report writes the status: Ready, and what else the kind records.
func (w *World) report(k apiserver.Key, obj runtime.Object, ready metav1.ConditionStatus, reason, message string) {
	o := w.server.Get(k)
	if o == nil {
		return
	}
	st, err := runtime.DefaultUnstructuredConverter.ToUnstructured(statusOf(obj))
	must(err)
	c := map[string]any{
		"type": "Ready", "status": string(ready), "reason": reason, "message": message, "observedGeneration": generationOf(o),
		"lastTransitionTime": w.clock.Now().UTC().Format(time.RFC3339),
	}
	if old, _ := nested(o, "status", "conditions").([]any); len(old) == 1 && nested(old[0], "status") == string(ready) {
		c["lastTransitionTime"] = nested(old[0], "lastTransitionTime")
	}
	st["conditions"] = []any{c}
	if ready == metav1.ConditionTrue {
		st["observedGeneration"] = generationOf(o)
	}
	_, err = w.server.Update("flux", "status", k, apiserver.Object{"status": st}, true)
	must(err)
}

func statusOf(obj runtime.Object) any {
	if hr, ok := obj.(*helmv2.HelmRelease); ok {
		return &hr.Status
	}
	return &obj.(*kustomizev1.Kustomization).Status
}

var errNoSecret = fmt.Errorf("Secret not found")

// target returns the cluster of a Flux object, which acts in some namespaces there.
func (w *World) target(k apiserver.Key, ref *fluxmeta.KubeConfigReference, namespaces ...string) (*cluster, error) {
	if ref == nil || ref.SecretRef == nil {
		return nil, fmt.Errorf("no kubeConfig")
	}
	secret := w.server.Get(apiserver.Key{Kind: "Secret", Namespace: k.Namespace, Name: ref.SecretRef.Name})
	if secret == nil {
		return nil, errNoSecret
	}
	text, _ := nested(secret, "data", cmp.Or(ref.SecretRef.Key, "value")).(string)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 {
		return nil, fmt.Errorf("Secret has no key")
	}
	c, who, err := w.reach(string(raw))
	if err == nil && c.holds {
		return nil, errHolds
	}
	if delete(w.flux.waiting, k); err == nil {
		w.checkActor(k, c, who, namespaces...)
	}
	if err != nil {
		return nil, fmt.Errorf(`Kubernetes cluster unreachable: Get "https://%s/version": %w`, k.Name, err) // as Helm and client-go say it
	}
	return c, nil
}

func setOf(o metav1.Object) string {
	return o.GetNamespace() + "/" + o.GetLabels()[hubv1.AddonSetLabel]
}

func releaseName(storage, name string) string { return "helm:" + storage + "/" + name }
