// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// A hub sends more than the Flux objects: deliveries, copies of kubeconfigs, statuses, Events, and reads. The replay has the bare client
// send as many requests of each kind as the hub has sent in its fan-out, to the same API server. What the hub is slower than that is its
// own; the rest is what these requests cost.

// request is a kind of request, as the API server counts it.
type request struct {
	group, resource, subresource, verb string
}

func (r request) String() string {
	name := r.resource
	if r.subresource != "" {
		name += "/" + r.subresource
	}
	return strings.ToLower(r.verb) + " " + name
}

var (
	sources       = hubv1.GroupVersion.WithResource("addonsets")
	deliveries    = hubv1.GroupVersion.WithResource("addondeliveries")
	registrations = hubv1.GroupVersion.WithResource("clusterregistrations")
	secrets       = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	events        = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
)

// askedSoFar returns how many requests of each kind the management cluster's API server has answered.
func (f *fleet) askedSoFar(ctx context.Context) (map[request]float64, error) {
	c, err := rest.HTTPClientFor(f.management.Config)
	if err != nil {
		return nil, err
	}
	metrics, err := scrapeURL(ctx, c, f.management.Config.Host+"/metrics")
	if err != nil {
		return nil, err
	}
	out := map[request]float64{}
	for _, m := range metrics["apiserver_request_total"].GetMetric() {
		by := map[string]string{}
		for _, l := range m.GetLabel() {
			by[l.GetName()] = l.GetValue()
		}
		out[request{by["group"], by["resource"], by["subresource"], by["verb"]}] += m.GetCounter().GetValue()
	}
	return out, nil
}

// askedSince returns the requests that have come after others for a fleet of so many clusters, and prints them.
func (r *run) askedSince(ctx context.Context, before map[request]float64, clusters int) (map[request]float64, error) {
	now, err := r.askedSoFar(ctx)
	if err != nil {
		return nil, err
	}
	asked := since(before, now, clusters)
	_, _ = fmt.Fprintln(r.out, "  "+describe(asked, clusters))
	return asked, nil
}

// since returns the requests that came after others for a fleet of so many clusters: those of which there is one for ten clusters at
// least. The rest is the API server's own, and the bench's.
func since(before, after map[request]float64, clusters int) map[request]float64 {
	out := map[request]float64{}
	for kind, n := range after {
		long := kind.verb == "WATCH" || kind.verb == "LIST" || kind.verb == "CONNECT"
		if n -= before[kind]; !long && n >= float64(clusters)/10 {
			out[kind] = n
		}
	}
	return out
}

// all is how many requests there are.
func all(asked map[request]float64) (n float64) {
	for _, of := range asked {
		n += of
	}
	return n
}

// describe says how many requests of each kind there are for each cluster.
func describe(asked map[request]float64, clusters int) string {
	var out []string
	for kind, n := range asked {
		out = append(out, fmt.Sprintf("%s %.2f", kind, n/float64(clusters)))
	}
	slices.Sort(out)
	return fmt.Sprintf("%.1f requests for each cluster: %s", all(asked)/float64(clusters), strings.Join(out, ", "))
}

// share returns how many of count requests, spread over n clusters, are for the cluster with index i.
func share(count float64, i, n int) int {
	return int(count*float64(i+1)/float64(n)) - int(count*float64(i)/float64(n))
}

// writesOfCluster is how many Flux objects of one cluster the hub writes at a time.
const writesOfCluster = 8

// replica is what the bare client writes for one cluster.
type replica struct {
	applied  []manifest // the delivery, and the copy of the kubeconfig
	objects  []manifest // Flux's
	statuses map[schema.GroupVersionResource]manifest
}

// replicas reads what the hub has made for at most n clusters.
func (r *raw) replicas(ctx context.Context, n int) ([]replica, error) {
	list, err := r.client.Resource(deliveries).Namespace(sets).List(ctx, metav1.ListOptions{Limit: int64(n)})
	if err != nil {
		return nil, err
	}
	out := make([]replica, len(list.Items))
	return out, eachIndex(rawWriters, len(out), func(i int) error {
		var err error
		out[i], err = r.replica(ctx, &list.Items[i])
		return err
	})
}

// replica reads what the hub has made for the cluster of a delivery.
func (r *raw) replica(ctx context.Context, u *unstructured.Unstructured) (replica, error) {
	d := &hubv1.AddonDelivery{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
		return replica{}, err
	}
	out := replica{applied: []manifest{{deliveries, bareCopy(u)}}}
	ref := d.Spec.RegistrationRef
	reg, err := r.client.Resource(registrations).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return out, err
	}
	out.statuses = map[schema.GroupVersionResource]manifest{deliveries: {deliveries, u}, registrations: {registrations, reg}}
	var name string
	for _, a := range d.Status.Addons {
		i := slices.IndexFunc(kinds, func(k schema.GroupVersionResource) bool { return strings.EqualFold(k.Resource, a.Kind+"s") })
		if i < 0 {
			return out, fmt.Errorf("add-on %s of delivery %s is a %q", a.Name, d.Name, a.Kind)
		}
		o, err := r.client.Resource(kinds[i]).Namespace(d.Namespace).Get(ctx, a.Object, metav1.GetOptions{})
		if err != nil {
			return out, err
		}
		name, _, _ = unstructured.NestedString(o.Object, "spec", "kubeConfig", "secretRef", "name")
		out.objects = append(out.objects, manifest{kinds[i], bareCopy(o)})
	}
	secret, err := r.client.Resource(secrets).Namespace(d.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return out, err
	}
	out.applied = append(out.applied, manifest{secrets, bareCopy(secret)})
	return out, nil
}

// replay sends the requests that the hub has sent in its fan-out, as many of each kind for each cluster, and returns how many Flux objects
// that made in a second. Then it does the same for clusters that come at ten a second, if they have come. Of the Flux objects so many were
// there before, and are there after it.
func (r *run) replay(ctx context.Context, there int) (rate float64, err error) {
	n := max(1, sampled(r.result.Objects)/r.p.Addons)
	if r.replicas == nil {
		if r.replicas, err = r.raw.replicas(ctx, n); err != nil {
			return 0, err
		}
	}
	unwatch, err := r.raw.watch(ctx, r.management.Config, r.management.Client.Scheme())
	if err != nil {
		return 0, err
	}
	defer unwatch()
	clean := func() error { return errors.Join(r.raw.remove(ctx, r.observer, there), r.raw.forget(ctx)) }
	if rate, err = r.replayFanout(ctx); err != nil {
		return 0, err
	}
	if err := clean(); err != nil || r.came == nil {
		return rate, err
	}
	return rate, errors.Join(r.replayCrowd(ctx), clean())
}

func (r *run) replayFanout(ctx context.Context) (rate float64, err error) {
	err = each(rawWriters, r.replicas, func(c replica) error { // they are there before a fan-out
		return r.raw.put(ctx, manifest{registrations, bareCopy(c.statuses[registrations].obj)})
	})
	if err != nil {
		return 0, err
	}
	processors, err := r.share(nil)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	r.profileAPI(ctx, "replay")
	part := float64(len(r.replicas)) / float64(r.p.Clusters)
	err = eachIndex(rawWriters, len(r.replicas), func(i int) error {
		_, err := r.raw.play(ctx, r.replicas[i], func(kind request) int { return share(r.asked[kind]*part, i, len(r.replicas)) })
		return err
	})
	if err != nil {
		return 0, err
	}
	took := time.Since(begin).Seconds()
	_, _, err = r.shared(processors, all(r.asked)*part)
	return float64(len(r.replicas)*r.p.Addons) / took, err
}

// play sends the requests for one cluster, in the order in which the hub sends them. times says how many there are of a kind. It
// returns when the last Flux object was made.
func (r *raw) play(ctx context.Context, c replica, times func(request) int) (made time.Time, err error) {
	delivery, registration := c.applied[0].obj, c.statuses[registrations].obj.GetName()
	for _, read := range []struct {
		kind            schema.GroupVersionResource
		namespace, name string
	}{
		{secrets, clusters, registration}, {deliveries, rawNamespace, delivery.GetName()},
		{registrations, rawNamespace, registration}, {sources, sets, setName},
	} {
		for range times(request{read.kind.Group, read.kind.Resource, "", "GET"}) {
			_, err := r.client.Resource(read.kind).Namespace(read.namespace).Get(ctx, read.name, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) { // a delivery is not there yet, as for the hub
				return made, err
			}
		}
	}
	for _, m := range c.applied {
		if err := r.put(ctx, m); err != nil {
			return made, err
		}
	}
	if err := each(writesOfCluster, c.objects, func(m manifest) error { return r.put(ctx, m) }); err != nil {
		return made, err
	}
	made = time.Now()
	for i := range times(request{events.Group, events.Resource, "", "POST"}) {
		if err := r.tell(ctx, delivery, i); err != nil {
			return made, err
		}
	}
	for kind, m := range c.statuses {
		for i := range times(request{kind.Group, kind.Resource, "status", "PATCH"}) {
			if err := r.say(ctx, m, i); err != nil {
				return made, err
			}
		}
	}
	return made, nil
}

// tell sends an Event about an object.
func (r *raw) tell(ctx context.Context, about *unstructured.Unstructured, i int) error {
	e := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event", "eventTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		"type": "Normal", "reason": "Applied", "action": "Apply", "reportingController": "chandler", "reportingInstance": "chandler-bench",
		"note": "made HelmRelease cert-manager, HelmRelease ingress, Kustomization policies, and two more",
		"regarding": map[string]any{
			"apiVersion": about.GetAPIVersion(), "kind": about.GetKind(), "namespace": rawNamespace, "name": about.GetName(),
		},
	}}
	e.SetName(fmt.Sprintf("%s.%x.%d", about.GetName(), time.Now().UnixNano(), i))
	_, err := r.client.Resource(events).Namespace(rawNamespace).Create(ctx, e, metav1.CreateOptions{})
	return err
}

// say writes the status of an object as the hub has written it for the i-th time: conditions have another message each time.
func (r *raw) say(ctx context.Context, m manifest, i int) error {
	status, ok := runtime.DeepCopyJSONValue(m.obj.Object["status"]).(map[string]any)
	if !ok {
		return fmt.Errorf("%s %s has no status", m.kind.Resource, m.obj.GetName())
	}
	conditions, _, err := unstructured.NestedSlice(status, "conditions")
	if err != nil {
		return err
	}
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok {
			c["message"] = fmt.Sprintf("%d add-ons are Ready", i)
		}
	}
	status["conditions"] = conditions
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = r.client.Resource(m.kind).Namespace(rawNamespace).
		Patch(ctx, m.obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// forget deletes what a replay has made, but for Flux objects and Events.
func (r *raw) forget(ctx context.Context) error {
	for _, kind := range []schema.GroupVersionResource{deliveries, registrations, secrets} {
		err := r.client.Resource(kind).Namespace(rawNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}
