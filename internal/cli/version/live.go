// SPDX-License-Identifier: Apache-2.0

package version

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/manifests"
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

// label is what the Deployments of the hub, or of Flux, have.
type label struct{ key, value string }

var (
	hubLabel  = label{"app.kubernetes.io/name", "chandler"}
	fluxLabel = label{"app.kubernetes.io/part-of", "flux"}
)

// versions reads the versions of the hub and of Flux from their Deployments.
func (o *Options) versions(ctx context.Context) (v Versions, err error) {
	hub, err := o.deployments(ctx, o.HubNamespace, hubLabel)
	if err != nil {
		return v, err
	}
	if len(hub) > 0 {
		v.Hub = hub[0].Version
	}
	v.Flux, err = o.deployments(ctx, o.FluxNamespace, fluxLabel)
	return v, err
}

func (o *Options) deployments(ctx context.Context, namespace string, l label) (out []Component, err error) {
	list := &appsv1.DeploymentList{}
	if err := o.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{l.key: l.value}); err != nil {
		return nil, fmt.Errorf("list the Deployments of namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		for _, c := range list.Items[i].Spec.Template.Spec.Containers {
			_, tag, digest := manifests.ParseImage(c.Image)
			out = append(out, Component{list.Items[i].Name, cmp.Or(tag, digest, "unknown")})
			break
		}
	}
	slices.SortFunc(out, func(a, b Component) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}
