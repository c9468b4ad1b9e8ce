// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// writes counts the hub's writes to the management cluster. Events and the leader's lease are not counted: they have
// clients of their own.
type writes struct{ total *prometheus.CounterVec }

func newWrites() writes {
	return writes{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_writes_total",
		Help: "Writes to the management cluster, by kind, verb, and result: success, conflict or error.",
	}, []string{"kind", "verb", "result"})}
}

// Counted returns a client that counts its writes.
func (w writes) Counted(c client.Client) client.Client { return &counted{c, w} }

// count counts a write, and returns its error.
func (w writes) count(kind, verb string, err error) error {
	result := "success"
	switch {
	case apierrors.IsConflict(err):
		result = "conflict"
	case err != nil:
		result = "error"
	}
	w.total.WithLabelValues(kind, verb, result).Inc()
	return err
}

type counted struct {
	client.Client
	writes writes
}

func (c *counted) kind(obj runtime.Object) string {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return "unknown"
	}
	return gvk.Kind
}

// appliedKind returns the kind of an apply configuration, which is an unstructured object everywhere in the hub.
func appliedKind(obj runtime.ApplyConfiguration) string {
	if o, ok := obj.(interface{ GetKind() string }); ok {
		return o.GetKind()
	}
	return "unknown"
}

func (c *counted) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.writes.count(appliedKind(obj), "apply", c.Client.Apply(ctx, obj, opts...))
}

func (c *counted) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.writes.count(c.kind(obj), "create", c.Client.Create(ctx, obj, opts...))
}

func (c *counted) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.writes.count(c.kind(obj), "delete", c.Client.Delete(ctx, obj, opts...))
}

func (c *counted) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.writes.count(c.kind(obj), "update", c.Client.Update(ctx, obj, opts...))
}

func (c *counted) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.writes.count(c.kind(obj), "patch", c.Client.Patch(ctx, obj, patch, opts...))
}

func (c *counted) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return c.writes.count(c.kind(obj), "delete", c.Client.DeleteAllOf(ctx, obj, opts...))
}

func (c *counted) Status() client.SubResourceWriter { return &countedStatus{c.Client.Status(), c} }

// countedStatus counts writes of statuses, in whatever way they are written.
type countedStatus struct {
	client.SubResourceWriter
	c *counted
}

func (s *countedStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.c.writes.count(s.c.kind(obj), "status", s.SubResourceWriter.Update(ctx, obj, opts...))
}

func (s *countedStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.c.writes.count(s.c.kind(obj), "status", s.SubResourceWriter.Patch(ctx, obj, patch, opts...))
}

func (s *countedStatus) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return s.c.writes.count(appliedKind(obj), "status", s.SubResourceWriter.Apply(ctx, obj, opts...))
}

// RegisterBound registers how many writes may be in flight at a time.
func RegisterBound(registry prometheus.Registerer, bound func() int) error {
	return registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "chandler_writes_bound",
		Help: "Writes that may be on their way to the management cluster at a time. It falls when that refuses some (429).",
	}, func() float64 { return float64(bound()) }))
}
