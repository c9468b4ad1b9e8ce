// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Flux and the controllers that keep lists of orphans, as the fixture plays them, and the objects that a fixture begins with.

// flux finalizes what is deleted, and makes Ready what is not suspended: as reference/flux-semantics.md has it.
func (m *fixture) flux() {
	m.t.Helper()
	m.quietly(func() {
		for _, obj := range m.objects() {
			suspended := false
			switch o := obj.(type) {
			case *helmv2.HelmRelease:
				suspended = o.Spec.Suspend
			case *kustomizev1.Kustomization:
				suspended = o.Spec.Suspend
			}
			if m.busy && (obj.GetDeletionTimestamp() == nil || !suspended) {
				continue
			}
			if obj.GetDeletionTimestamp() != nil {
				if !slices.Contains(obj.GetFinalizers(), fluxFinalizer) {
					continue
				}
				if suspended {
					m.released = append(m.released, obj.GetName())
				} else {
					m.uninstalled = append(m.uninstalled, obj.GetName())
				}
				if hr, ok := obj.(*helmv2.HelmRelease); ok && !suspended {
					hr.Status.History = nil
					apimeta.SetStatusCondition(&hr.Status.Conditions,
						metav1.Condition{Type: helmv2.ReleasedCondition, Status: metav1.ConditionFalse, Reason: helmv2.UninstallSucceededReason})
				}
				controllerutil.RemoveFinalizer(obj, fluxFinalizer)
				m.must(m.api.Update(m.t.Context(), obj))
				continue
			}
			controllerutil.AddFinalizer(obj, fluxFinalizer)
			obj.SetGeneration(1)
			if hr, ok := obj.(*helmv2.HelmRelease); ok {
				hr.Status.ObservedGeneration = 1
			}
			if !suspended {
				ready := metav1.Condition{Type: hubv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded", ObservedGeneration: 1}
				switch o := obj.(type) {
				case *helmv2.HelmRelease:
					apimeta.SetStatusCondition(&o.Status.Conditions, ready)
					if latest := o.Status.History.Latest(); latest == nil || latest.Digest == "" {
						o.Status.History = helmv2.Snapshots{{Name: o.Spec.ReleaseName, ChartName: m.chartOf(o), ChartVersion: "1.0.0"}}
					}
				case *kustomizev1.Kustomization:
					if !apimeta.IsStatusConditionFalse(o.Status.Conditions, hubv1.ReadyCondition) {
						apimeta.SetStatusCondition(&o.Status.Conditions, ready)
						o.Status.LastAppliedRevision, o.Status.ObservedGeneration = "main@sha1:1", 1
						o.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "default_a__ConfigMap"}}}
					}
				}
			}
			m.must(m.api.Update(m.t.Context(), obj))
		}
	})
}

// chartOf returns the name of the chart that Flux finds for a HelmRelease.
func (m *fixture) chartOf(o *helmv2.HelmRelease) string {
	ref, chart := o.Spec.ChartRef, &sourcev1.HelmChart{}
	if source := (&sourcev1.OCIRepository{}); ref.Kind != sourcev1.HelmChartKind {
		err := m.api.Get(m.t.Context(), types.NamespacedName{Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name}, source)
		if err == nil && source.Spec.Reference.Digest == m.r.Config.Chart.Digest {
			return m.r.Config.Chart.Name
		}
		return "chart-of-" + ref.Name
	}
	m.must(m.api.Get(m.t.Context(), types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, chart))
	return path.Base(chart.Spec.Chart)
}

// bookkeeping keeps the lists of orphans of registrations and sets, as their controllers do.
func (m *fixture) bookkeeping() {
	m.quietly(func() {
		ctx := m.t.Context()
		all, regs, sets := &hubv1.AddonDeliveryList{}, &hubv1.ClusterRegistrationList{}, &hubv1.AddonSetList{}
		m.must(errors.Join(m.api.List(ctx, all), m.api.List(ctx, regs), m.api.List(ctx, sets)))
		for i := range regs.Items {
			reg := &regs.Items[i]
			mine := slices.DeleteFunc(slices.Clone(all.Items), func(d hubv1.AddonDelivery) bool {
				return d.Spec.RegistrationRef.Key() != client.ObjectKeyFromObject(reg)
			})
			reg.Status.Orphans, _ = teardown.Orphans(reg.Status.Orphans, mine, nil)
			m.must(m.api.Status().Update(ctx, reg))
		}
		for i := range sets.Items {
			set := &sets.Items[i]
			mine := slices.DeleteFunc(slices.Clone(all.Items),
				func(d hubv1.AddonDelivery) bool { return d.SetKey() != client.ObjectKeyFromObject(set) })
			set.Status.Orphans, _ = teardown.Orphans(set.Status.Orphans, mine, nil)
			m.must(m.api.Status().Update(ctx, set))
		}
	})
}

func registered(cluster types.NamespacedName, uid string) *hubv1.ClusterRegistration {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name,
		UID: types.UID("uid-" + cluster.Name), Labels: map[string]string{"env": "prod"}}}
	reg.Spec.KubeConfig = &hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: cluster.Name}}
	reg.Status.ClusterUID = types.UID(uid)
	config, err := kubeconfig.Parse(testKubeconfig("t0"), kubeconfig.Rules{AllowMissingCA: true})
	if err != nil {
		panic(err)
	}
	reg.Status.Credential = &hubv1.CredentialStatus{SecretName: cluster.Name, Key: "value", Fingerprint: config.Fingerprint(),
		TargetFingerprint: config.TargetFingerprint(), AuthorityFingerprint: config.AuthorityFingerprint()}
	apimeta.SetStatusCondition(&reg.Status.Conditions,
		metav1.Condition{Type: hubv1.ReachableCondition, Status: metav1.ConditionTrue, Reason: "Answers",
			LastTransitionTime: metav1.NewTime(moment.Add(-time.Hour))})
	return reg
}

func testKubeconfig(token string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://192.0.2.7:6443"}}]
users: [{name: u, user: {token: %s}}]
`, token)
}

func kubeconfigSecret(cluster types.NamespacedName, token string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name},
		Data: map[string][]byte{"value": testKubeconfig(token)}}
}

// kubeconfigBeside is the Secret of testCluster's kubeconfig in another namespace.
func kubeconfigBeside(namespace string) *corev1.Secret {
	s := kubeconfigSecret(testCluster, "t0")
	s.Namespace = namespace
	return s
}

// addonsOf returns a set of these add-ons and its revision.
func addonsOf(set, generation string, addons ...map[string]any) []client.Object {
	return setOf(set, generation, map[string]any{"selectAll": true, "addons": addons})
}

// setOf returns a set of this spec and its revision.
func setOf(set, generation string, spec map[string]any) []client.Object {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	s := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: set, UID: types.UID("uid-" + set)}}
	if err := json.Unmarshal(raw, &s.Spec); err != nil {
		panic(err)
	}
	content, hash, err := compile.Snapshot(&s.Spec, nil)
	if err != nil {
		panic(err)
	}
	revisions[set+"/"+generation] = identity.Revision(set, hash, render.Epoch)
	return []client.Object{s, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "flux-system", Name: revisionOf(set, generation), UID: types.UID("uid-" + set + generation),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, hubv1.GroupVersion.WithKind("AddonSet"))},
		},
		Data: runtime.RawExtension{Raw: content},
	}}
}

// revisions are the names of the revisions that setOf made, by set and generation.
var revisions = map[string]string{}

func revisionOf(set, generation string) string { return revisions[set+"/"+generation] }

func deliveredTo(cluster types.NamespacedName, set, generation string) *hubv1.AddonDelivery {
	d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{
		Namespace: "flux-system", Name: identity.Delivery(set, cluster), UID: types.UID("uid-" + set + "-" + cluster.Name),
		Finalizers: []string{hubv1.Finalizer},
		Labels:     map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", cluster), hubv1.AddonSetLabel: set},
	}}
	d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: cluster.Namespace, Name: cluster.Name}
	d.Spec.AddonSetRef = hubv1.DeliveredSetReference{Name: set, UID: types.UID("uid-" + set)}
	d.Spec.RevisionName = revisionOf(set, generation)
	return d
}

// delivered returns a platform set of these add-ons, its revision and its delivery to testCluster.
func delivered(set string, addons ...map[string]any) []client.Object {
	return append(addonsOf(set, "1", addons...), deliveredTo(testCluster, set, "1"))
}

// tenantSet returns a tenant's set, its revision and its delivery, in the namespace of the registration.
func tenantSet(set string, addons ...map[string]any) []client.Object {
	return inNamespace(testCluster.Namespace, delivered(set, addons...))
}

func inNamespace(namespace string, objects []client.Object) []client.Object {
	for _, o := range objects {
		o.SetNamespace(namespace)
	}
	return objects
}

func releaseAddon(name string, more ...map[string]any) map[string]any {
	body := map[string]any{"chartRef": map[string]any{"kind": "OCIRepository", "name": "chart"}}
	out := map[string]any{"name": name, "helmRelease": body}
	for _, m := range more {
		for k, v := range m {
			if k == "deletionPolicy" || k == "movedFrom" {
				out[k] = v
			} else {
				body[k] = v
			}
		}
	}
	return out
}

func kustomizationAddon(name string, more ...map[string]any) map[string]any {
	body := map[string]any{"path": "./app", "sourceRef": map[string]any{"kind": "GitRepository", "name": "git"}}
	for _, m := range more {
		for k, v := range m {
			body[k] = v
		}
	}
	return map[string]any{"name": name, "kustomization": body}
}

// dependsOn has an add-on depend on others of its set.
func dependsOn(addon map[string]any, on ...string) map[string]any {
	var d []any
	for _, n := range on {
		d = append(d, map[string]any{"name": n})
	}
	addon["dependsOn"] = d
	return addon
}

// chartAddon is an add-on of a chart from a Helm repository, as release app in namespace apps.
func chartAddon(chart string, more map[string]any) map[string]any {
	body := map[string]any{
		"chart": map[string]any{"spec": map[string]any{"chart": chart,
			"sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}},
		"targetNamespace": "apps",
	}
	for k, v := range more {
		body[k] = v
	}
	return map[string]any{"name": "app", "helmRelease": body}
}

// manifestsAddon is an add-on of plain manifests.
func manifestsAddon() map[string]any {
	return map[string]any{"name": "app", "manifests": map[string]any{"targetNamespace": "apps", "objects": []any{
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}},
	}}}
}

// manifestsFrom is add-on "reading", whose manifests are in a ConfigMap.
func manifestsFrom(configMap string) map[string]any {
	return map[string]any{"name": "reading", "manifests": map[string]any{
		"manifestsFrom": []any{map[string]any{"kind": "ConfigMap", "name": configMap}}}}
}

// readyCondition is what Flux says of an object.
func readyCondition(is metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
	return metav1.Condition{Type: hubv1.ReadyCondition, Status: is, Reason: reason, Message: message, ObservedGeneration: generation}
}
