// SPDX-License-Identifier: Apache-2.0

package doctorreader

import (
	"fmt"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/cli/installation"
	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/manifests"
)

// everywhere lists something in all namespaces. If the caller may not do that, it lists one namespace, and the facts say so.
func (e *examiner) everywhere(check doctor.Check, what, namespace string, empty client.ObjectList, take func(client.ObjectList) bool,
	opts ...client.ListOption) bool {
	err := e.pages(empty, take, opts...)
	if !apierrors.IsForbidden(err) {
		return e.read(check, what, err)
	}
	e.facts.Skip(check, what+" of all namespaces but "+namespace+": you may not read them", "ask for the right to list them")
	opts = append([]client.ListOption{client.InNamespace(namespace)}, opts...)
	return e.read(check, what+" in namespace "+namespace, e.pages(empty, take, opts...))
}

// hub looks for Deployments and ConfigMaps of hubs, and for the Lease.
func (e *examiner) hub() error {
	f, at := e.facts, e.facts.HubNamespace
	lease := e.lease()
	if now := e.clock.last(); !now.IsZero() {
		f.Now = now // a Lease is renewed all the time
	}
	published := &metav1.PartialObjectMetadataList{}
	published.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	e.everywhere(doctor.CheckHub, "ConfigMaps "+hubconfig.ConfigMapName, at, published, func(l client.ObjectList) bool {
		for _, m := range l.(*metav1.PartialObjectMetadataList).Items {
			f.Hub.Published = append(f.Hub.Published, m.Namespace)
		}
		return true
	}, client.MatchingFields{"metadata.name": hubconfig.ConfigMapName})
	take := func(l client.ObjectList) bool {
		for _, d := range l.(*appsv1.DeploymentList).Items {
			f.Hub.Workloads = e.workload(f.Hub.Workloads, &d, doctor.CheckHub, []string{"chandler-hub", "hub"})
		}
		return true
	}
	deployments := e.everywhere(doctor.CheckHub, "Deployments of hubs", at, &appsv1.DeploymentList{}, take,
		client.MatchingLabels{"app.kubernetes.io/name": "chandler"})
	if deployments { // one that an overlay has renamed
		e.read(doctor.CheckHub, "Deployments in namespace "+at, e.pages(&appsv1.DeploymentList{}, take, client.InNamespace(at)))
	}
	f.Hub.Read = lease && deployments
	return nil
}

// lease reads the Lease of the hubs. It returns false if that could not be looked at.
func (e *examiner) lease() bool {
	lease, err := installation.Lease(e.ctx, e.client)
	e.facts.Hub.Lease = lease
	return e.read(doctor.CheckHub, "Leases of namespace "+hubconfig.LeaseNamespace, err)
}

// workload adds a Deployment that runs one of some programs, with its pods.
func (e *examiner) workload(to []doctor.Workload, d *appsv1.Deployment, check doctor.Check, programs []string) []doctor.Workload {
	if slices.ContainsFunc(to, func(w doctor.Workload) bool { return w.Namespace == d.Namespace && w.Name == d.Name }) {
		return to
	}
	spec := &d.Spec.Template.Spec
	for i := range spec.Containers {
		c := &spec.Containers[i]
		name, tag, _ := manifests.ParseImage(c.Image)
		if !slices.Contains(programs, name) && (check != doctor.CheckHub || d.Labels["app.kubernetes.io/name"] != "chandler") {
			continue
		}
		w := doctor.Workload{Namespace: d.Namespace, Name: d.Name, Component: name, Version: tag, Args: c.Args, Replicas: 1,
			Ready: d.Status.ReadyReplicas, ServiceAccount: spec.ServiceAccountName}
		if d.Spec.Replicas != nil {
			w.Replicas = *d.Spec.Replicas
		}
		w.Pods = e.podsOf(d, check)
		return append(to, w)
	}
	return to
}

func (e *examiner) podsOf(d *appsv1.Deployment, check doctor.Check) (out []doctor.Pod) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil
	}
	list := &corev1.PodList{}
	err = e.client.List(e.ctx, list, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector},
		client.Limit(live.PageSize))
	if !e.read(check, "pods in namespace "+d.Namespace+", and so their restarts", err) {
		return nil
	}
	for i := range list.Items {
		p := doctor.Pod{Name: list.Items[i].Name}
		for _, s := range list.Items[i].Status.ContainerStatuses {
			p.Restarts += s.RestartCount
			if t := s.LastTerminationState.Terminated; t != nil {
				p.Ended, p.EndedAt = t.Reason, t.FinishedAt.Time
			}
			if s.State.Waiting != nil {
				p.Waiting = s.State.Waiting.Reason
			}
		}
		out = append(out, p)
	}
	return out
}

// flux looks for the controllers of Flux, and counts what they work on.
func (e *examiner) flux() error {
	f := e.facts
	take := func(l client.ObjectList) bool {
		for _, d := range l.(*appsv1.DeploymentList).Items {
			f.Flux.Workloads = e.workload(f.Flux.Workloads, &d, doctor.CheckFlux, doctor.Components())
		}
		return true
	}
	f.Flux.Read = e.everywhere(doctor.CheckFlux, "Deployments of Flux", f.FluxNamespace, &appsv1.DeploymentList{}, take,
		client.MatchingLabels{"app.kubernetes.io/part-of": "flux"})
	if f.Flux.Read {
		err := e.pages(&appsv1.DeploymentList{}, take, client.InNamespace(f.FluxNamespace))
		e.read(doctor.CheckFlux, "Deployments in namespace "+f.FluxNamespace, err)
	}
	slices.SortFunc(f.Flux.Workloads, func(a, b doctor.Workload) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	e.count("HelmRelease", "helm-controller", &helmv2.HelmReleaseList{}, helmv2.GroupVersion.WithKind("HelmReleaseList"))
	e.count("Kustomization", "kustomize-controller", &kustomizev1.KustomizationList{}, kustomizev1.GroupVersion.WithKind("KustomizationList"))
	return nil
}

// sample is how many objects show what interval is usual.
const sample = 100

// count counts the objects of a kind by what the API server says are left, and reads a sample.
func (e *examiner) count(kind, component string, list client.ObjectList, of schema.GroupVersionKind) {
	if !e.read(doctor.CheckCapacity, kind+"s", e.client.List(e.ctx, list, client.Limit(sample))) {
		return
	}
	k := doctor.Kind{Kind: kind, Component: component, Count: int64(meta.LenList(list))}
	var intervals []time.Duration
	switch l := list.(type) {
	case *helmv2.HelmReleaseList:
		for i := range l.Items {
			intervals = append(intervals, l.Items[i].Spec.Interval.Duration)
			if l.Items[i].Status.ObservedGeneration == l.Items[i].Generation {
				k.Observed++
			}
		}
	case *kustomizev1.KustomizationList:
		for i := range l.Items {
			intervals = append(intervals, l.Items[i].Spec.Interval.Duration)
			if l.Items[i].Status.ObservedGeneration == l.Items[i].Generation {
				k.Observed++
			}
		}
	}
	slices.Sort(intervals)
	if len(intervals) > 0 {
		k.Interval = intervals[len(intervals)/2]
	}
	if left := list.GetRemainingItemCount(); left != nil {
		k.Count += *left
	} else if list.GetContinue() != "" {
		names := &metav1.PartialObjectMetadataList{}
		names.SetGroupVersionKind(of)
		k.Count = 0
		err := e.pages(names, func(l client.ObjectList) bool { k.Count += int64(meta.LenList(l)); return true })
		if !e.read(doctor.CheckCapacity, fmt.Sprintf("how many %ss there are", kind), err) {
			return
		}
	}
	e.facts.Flux.Kinds = append(e.facts.Flux.Kinds, k)
}
