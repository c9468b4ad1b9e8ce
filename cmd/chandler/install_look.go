// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/config"
	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/manifests"
	"github.com/chandler-hub/chandler/internal/onehub"
)

// lookAround finds out what there is of a hub on a management cluster. It changes nothing.
func lookAround(ctx context.Context, c client.Client, namespace string) (manifests.There, error) {
	there := manifests.There{}
	deployments := &appsv1.DeploymentList{}
	if err := c.List(ctx, deployments, client.MatchingLabels{"app.kubernetes.io/name": manifests.Name}); err != nil {
		return there, fmt.Errorf("list the Deployments of hubs, in all namespaces: %w", err)
	}
	may := rightsOf(ctx, c)
	for i := range deployments.Items {
		d := &deployments.Items[i]
		switch {
		case d.Namespace == namespace && d.Name == manifests.Name:
			there.Deployment = d
		case d.Spec.Replicas == nil || *d.Spec.Replicas > 0:
			// Whoever may write a Deployment in his namespace may give it the label of a hub.
			is, err := may(onehub.Review(d.Namespace, cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")))
			if err != nil {
				return there, fmt.Errorf("ask whether Deployment %s/%s may do a hub's work: %w", d.Namespace, d.Name, err)
			}
			if is {
				there.Elsewhere = append(there.Elsewhere, fmt.Sprintf("Deployment %s/%s", d.Namespace, d.Name))
			}
		}
	}
	leases := &coordinationv1.LeaseList{}
	if err := c.List(ctx, leases, client.MatchingFields{"metadata.name": hubconfig.LeaseName}); err != nil {
		return there, fmt.Errorf("list the Leases of hubs, in all namespaces: %w", err)
	}
	first, err := onehub.First(namespace, leases.Items, time.Now(), may)
	if err != nil {
		return there, fmt.Errorf("ask whether what holds the Lease of a hub may do a hub's work: %w", err)
	}
	if first != nil { // the hub would do nothing
		there.Elsewhere = append(there.Elsewhere, fmt.Sprintf("Lease %s/%s", first.Namespace, first.Name))
	}
	published := &corev1.ConfigMap{}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hubconfig.ConfigMapName}, published)
	if client.IgnoreNotFound(err) != nil {
		return there, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, hubconfig.ConfigMapName, err)
	}
	there.HubID = published.Data["hub-id"]
	return there, definitions(ctx, c, &there)
}

// rightsOf asks the API server about the rights of accounts.
func rightsOf(ctx context.Context, c client.Client) onehub.Ask {
	return onehub.Once(func(r *authorizationv1.SubjectAccessReview) (bool, error) {
		err := c.Create(ctx, r)
		if apierrors.IsForbidden(err) {
			return true, nil // the hub itself may ask
		}
		return r.Status.Allowed, err
	})
}

// alive returns whether somebody holds a Lease, and renews it.
func alive(l *coordinationv1.Lease, now time.Time) bool {
	s := l.Spec
	return s.HolderIdentity != nil && *s.HolderIdentity != "" && s.RenewTime != nil && s.LeaseDurationSeconds != nil &&
		now.Sub(s.RenewTime.Time) <= 3*time.Duration(*s.LeaseDurationSeconds)*time.Second
}

// definitions compares the installed CRDs of ours with those of this build.
func definitions(ctx context.Context, c client.Client, there *manifests.There) error {
	files, err := fs.Glob(config.Files, "crd/bases/*.yaml")
	if err != nil {
		return err
	}
	there.Unknown = map[string][]string{}
	for _, file := range files {
		raw, err := config.Files.ReadFile(file)
		if err != nil {
			return err
		}
		ours, installed := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, ours); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		err = c.Get(ctx, client.ObjectKey{Name: ours.Name}, installed)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read CRD %s: %w", ours.Name, err)
		}
		if fields := doctor.Unknown(ours, installed); len(fields) > 0 {
			there.Unknown[ours.Name] = fields
		}
	}
	flux := &metav1.PartialObjectMetadata{}
	flux.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err = c.Get(ctx, client.ObjectKey{Name: "helmreleases.helm.toolkit.fluxcd.io"}, flux)
	there.FluxCRDs = err == nil
	return client.IgnoreNotFound(err)
}

// current waits until objects are Current in the words of kstatus: a CRD is established, a Deployment is rolled out.
func (w *waiter) current(ctx context.Context, objects []*unstructured.Unstructured) error {
	return w.until(ctx, func(ctx context.Context) (string, error) {
		for _, o := range objects {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(o.GroupVersionKind())
			if err := w.client.Get(ctx, client.ObjectKeyFromObject(o), u); err != nil {
				return "", fmt.Errorf("read %s: %w", called(o), err)
			}
			result, err := status.Compute(u)
			if err != nil {
				return "", fmt.Errorf("%s: %w", called(o), err)
			}
			switch result.Status {
			case status.CurrentStatus:
			case status.FailedStatus:
				return "", fmt.Errorf("%s: %s%s", called(o), result.Message, w.why(ctx, u))
			default:
				return fmt.Sprintf("%s: waits: %s%s", called(o), result.Message, w.why(ctx, u)), nil
			}
		}
		return "", nil
	})
}

// why says which of a Deployment's pods do not run, and why.
func (w *waiter) why(ctx context.Context, u *unstructured.Unstructured) string {
	if u.GetKind() != "Deployment" {
		return ""
	}
	pods := &corev1.PodList{}
	selector := client.MatchingLabels{"app.kubernetes.io/name": manifests.Name}
	if err := w.client.List(ctx, pods, client.InNamespace(u.GetNamespace()), selector); err != nil {
		return ""
	}
	var waits []string
	for i := range pods.Items {
		for _, s := range pods.Items[i].Status.ContainerStatuses {
			if s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating" {
				waits = append(waits, fmt.Sprintf("pod %s: %s", pods.Items[i].Name, s.State.Waiting.Reason))
			}
		}
	}
	if len(waits) == 0 {
		return ""
	}
	slices.Sort(waits)
	return " (" + strings.Join(waits, ", ") + ")"
}
