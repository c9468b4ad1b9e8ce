// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
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
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/manifests"
)

// lookAround finds out what there is of a hub on a management cluster. It changes nothing.
func lookAround(ctx context.Context, c client.Client, namespace string) (manifests.There, error) {
	there := manifests.There{}
	deployment := &appsv1.Deployment{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: manifests.Name}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return there, fmt.Errorf("read Deployment %s/%s: %w", namespace, manifests.Name, err)
	}
	if err == nil {
		there.Deployment = deployment
	}
	lease, err := live.ReadLease(ctx, c)
	if err != nil {
		return there, err
	}
	now := time.Now()
	if other := lease.Of(now); other != namespace {
		there.Elsewhere = other
	}
	there.Leads = there.Elsewhere == "" && lease.Alive(now)
	published := &corev1.ConfigMap{}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hubconfig.ConfigMapName}, published)
	if client.IgnoreNotFound(err) != nil {
		return there, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, hubconfig.ConfigMapName, err)
	}
	there.HubID = published.Data["hub-id"]
	return there, definitions(ctx, c, &there)
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
