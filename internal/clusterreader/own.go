// SPDX-License-Identifier: Apache-2.0

package clusterreader

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/status"
)

// Own returns the clusters that the AddonDeliveries of a namespace go to, for a caller who may not read their ClusterRegistrations, as a
// Team's people may not. Each has its namespace and name, and how what is delivered from there stands. cluster is NAME, NAMESPACE/NAME, or
// empty for all.
func Own(ctx context.Context, c client.WithWatch, namespace, cluster string) ([]hubv1.ClusterRegistration, error) {
	inNamespace, name, both := strings.Cut(cluster, "/")
	q := &live.Query{Client: c, Kinds: "AddonDeliveries", Namespace: namespace,
		List: func() client.ObjectList { return &hubv1.AddonDeliveryList{} }}
	if !both {
		inNamespace, name = "", cluster
	}
	if name != "" {
		q.Options = []client.ListOption{client.MatchingLabels{hubv1.ClusterLabel: identity.LabelValue(name)}}
	}
	var out []hubv1.ClusterRegistration
	_, err := q.Pages(ctx, func(objects []client.Object) error {
		for _, o := range objects {
			d := o.(*hubv1.AddonDelivery)
			key := d.Spec.RegistrationRef.Key()
			if name != "" && key.Name != name || inNamespace != "" && key.Namespace != inNamespace {
				continue
			}
			at := slices.IndexFunc(out, func(reg hubv1.ClusterRegistration) bool { return client.ObjectKeyFromObject(&reg) == key })
			if at < 0 {
				at, out = len(out), append(out, *match.Missing(key))
			}
			addDelivery(&out[at], d)
		}
		return nil
	})
	return out, err
}

// addDelivery adds to a cluster how a delivery stands. The cluster is Ready if all of them are.
func addDelivery(reg *hubv1.ClusterRegistration, d *hubv1.AddonDelivery) {
	if reg.CreationTimestamp.IsZero() || d.CreationTimestamp.Before(&reg.CreationTimestamp) {
		reg.CreationTimestamp = d.CreationTimestamp
	}
	if c := d.Status.AddonCounts; c != nil {
		sum := reg.Status.AddonCounts
		if sum == nil {
			sum = &hubv1.ObjectCounts{}
		}
		sum.Total, sum.Ready, sum.Failed = sum.Total+c.Total, sum.Ready+c.Ready, sum.Failed+c.Failed
		sum.Summary, reg.Status.AddonCounts = status.Fraction(sum.Ready, sum.Total), sum
	}
	before, c := status.Find(reg, hubv1.ReadyCondition), status.Find(d, hubv1.ReadyCondition)
	switch {
	case c == nil:
		c = &metav1.Condition{Type: hubv1.ReadyCondition, Status: metav1.ConditionUnknown, Message: "the hub has not looked at it yet"}
	case c.Status == metav1.ConditionTrue && before != nil:
		return
	}
	if before == nil || before.Status != metav1.ConditionFalse {
		meta.SetStatusCondition(&reg.Status.Conditions, *c)
	}
}

// ReadOwn reads what the AddonDeliveries of a namespace say of a cluster, and their Flux objects, for a caller who may not read the
// ClusterRegistration. It returns nil if there are none.
func ReadOwn(ctx context.Context, r *live.Reader, c client.WithWatch, namespace, cluster string, now time.Time) (*explain.Input, error) {
	clusters, err := Own(ctx, c, namespace, cluster)
	if err != nil || len(clusters) == 0 {
		return nil, err
	}
	if len(clusters) > 1 {
		var names []string
		for i := range clusters {
			names = append(names, clusters[i].Namespace+"/"+clusters[i].Name)
		}
		slices.Sort(names)
		return nil, live.Several(fmt.Sprintf("the AddonDeliveries in namespace %s go to %d clusters called %q: %s; write one of these", namespace,
			len(names), cluster, status.List(names, live.MaxNames)))
	}
	g := begin(ctx, r, match.Missing(client.ObjectKeyFromObject(&clusters[0])), now)
	g.only, g.in.Unread = namespace, true
	return g.in, g.read(g.deliveries, g.flux)
}
