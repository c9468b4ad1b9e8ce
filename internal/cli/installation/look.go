// SPDX-License-Identifier: Apache-2.0

// Package installation looks at the hub that is installed on a management cluster, and waits for what becomes of one.
package installation

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/config"
	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/manifests"
)

// Look finds out what there is of a hub on a management cluster. It changes nothing.
func Look(ctx context.Context, c client.Client, namespace string) (manifests.There, error) {
	there := manifests.There{}
	deployment := &appsv1.Deployment{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: manifests.Name}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return there, fmt.Errorf("read Deployment %s/%s: %w", namespace, manifests.Name, err)
	}
	if err == nil {
		there.Deployment = deployment
	}
	lease, err := Lease(ctx, c)
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
	there.Unknown = map[string][]string{}
	ours, err := manifests.CRDs(config.Files)
	if err != nil {
		return err
	}
	for i := range ours {
		installed := &apiextensionsv1.CustomResourceDefinition{}
		err = c.Get(ctx, client.ObjectKey{Name: ours[i].Name}, installed)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read CRD %s: %w", ours[i].Name, err)
		}
		if fields := doctor.Unknown(&ours[i], installed); len(fields) > 0 {
			there.Unknown[ours[i].Name] = fields
		}
	}
	flux := &metav1.PartialObjectMetadata{}
	flux.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err = c.Get(ctx, client.ObjectKey{Name: "helmreleases.helm.toolkit.fluxcd.io"}, flux)
	there.FluxCRDs = err == nil
	return client.IgnoreNotFound(err)
}
