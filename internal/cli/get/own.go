// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/clusterreader"
)

// askOwn asks again for less, for a user who may not read what was asked for: one namespace in place of all, and the clusters to which it
// delivers in place of ClusterRegistrations. refused is the error if the user may not read that either.
func (g *getter) askOwn(ctx context.Context, q question, refused error) (found int, err error) {
	own, err := hub.OwnNamespace(g.Flags)
	if err != nil {
		return 0, err
	}
	if q.Namespace == "" {
		narrow := q
		narrow.Namespace = own
		_, found, err = g.ask(ctx, narrow)
		if err == nil {
			hub.SayNarrow(g.ErrOut, g.kind.kinds, own)
		}
		if !apierrors.IsForbidden(err) {
			return found, err
		}
	}
	_, clusters := g.kind.list().(*hubv1.ClusterRegistrationList)
	if !clusters || g.stream != nil || g.Selector != "" { // the labels, and the object itself, are what he may not read
		return 0, refused
	}
	return g.askDeliveries(ctx, q, own, refused)
}

// askDeliveries shows the clusters of the AddonDeliveries in a namespace, each with how they stand.
func (g *getter) askDeliveries(ctx context.Context, q question, namespace string, refused error) (found int, err error) {
	clusters, err := clusterreader.Own(ctx, g.Client, namespace, q.arg)
	if err != nil || len(clusters) == 0 {
		return 0, refused
	}
	g.table.Without = "" // the clusters are in other namespaces than the deliveries
	var items []item
	for i := range clusters {
		items = append(items, g.items(client.Object(&clusters[i]))...)
	}
	terminal.Say(g.ErrOut, "cannot list ClusterRegistrations: showing the clusters of the AddonDeliveries in namespace %s", namespace)
	return len(clusters), g.write(items)
}
