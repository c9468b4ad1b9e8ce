// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Versions are those of what runs on a management cluster.
type Versions struct {
	// Hub is empty if no Deployment of a hub is there.
	Hub  string      `json:"hub,omitempty" about:"version of the hub, by the tag of its image"`
	Flux []Component `json:"flux,omitempty" about:"controllers of Flux"`
}

// Component is a controller and its version.
type Component struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Versions reads the versions of the hub and of Flux from their Deployments.
func (r *Reader) Versions(ctx context.Context, hubNamespace, fluxNamespace string) (v Versions, err error) {
	hub, err := r.deployments(ctx, hubNamespace, "app.kubernetes.io/name", "chandler")
	if err != nil {
		return v, err
	}
	if len(hub) > 0 {
		v.Hub = hub[0].Version
	}
	v.Flux, err = r.deployments(ctx, fluxNamespace, "app.kubernetes.io/part-of", "flux")
	return v, err
}

func (r *Reader) deployments(ctx context.Context, namespace, label, value string) (out []Component, err error) {
	list := &appsv1.DeploymentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{label: value}); err != nil {
		return nil, fmt.Errorf("list the Deployments of namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		for _, c := range list.Items[i].Spec.Template.Spec.Containers {
			out = append(out, Component{list.Items[i].Name, tagOf(c.Image)})
			break
		}
	}
	slices.SortFunc(out, func(a, b Component) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// tagOf returns the tag of an image, or its digest.
func tagOf(ref string) string {
	_, tag := image(ref)
	_, digest, _ := strings.Cut(ref, "@")
	return cmp.Or(tag, digest, "unknown")
}
