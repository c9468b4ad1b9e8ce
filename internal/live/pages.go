// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// PageSize is how many objects are read at a time, as kubectl does.
const PageSize = 500

// Pages lists a kind page by page, and calls take with each. It ends early when take returns false.
func Pages(ctx context.Context, c client.Reader, empty func() client.ObjectList, take func(client.ObjectList) bool,
	opts ...client.ListOption) error {
	next := ""
	for {
		list := empty()
		err := c.List(ctx, list, append([]client.ListOption{client.Limit(PageSize), client.Continue(next)}, opts...)...)
		var refused apierrors.APIStatus
		if apierrors.IsResourceExpired(err) && errors.As(err, &refused) && refused.Status().Continue != "" && next != refused.Status().Continue {
			next = refused.Status().Continue // it took too long for one state of the API server: the rest is of a later one
			continue
		}
		if err != nil {
			return err
		}
		if next = list.GetContinue(); !take(list) || next == "" {
			return nil
		}
	}
}

// Query says which objects of a kind are wanted.
type Query struct {
	Client client.WithWatch
	// Kinds is the kind in the plural, such as ClusterRegistrations.
	Kinds string
	// List makes an empty list of it.
	List func() client.ObjectList
	// Namespace is empty for all.
	Namespace string
	Options   []client.ListOption
}

// Pages reads the objects page by page, and never holds all of them. It returns the resource version to watch from.
func (q *Query) Pages(ctx context.Context, take func([]client.Object) error) (version string, err error) {
	var failed error
	err = Pages(ctx, q.Client, q.List, func(list client.ObjectList) bool {
		var objects []client.Object
		failed = meta.EachListItem(list, func(o runtime.Object) error {
			objects = append(objects, o.(client.Object))
			return nil
		})
		if failed == nil {
			failed, version = take(objects), list.GetResourceVersion()
		}
		return failed == nil
	}, append([]client.ListOption{client.InNamespace(q.Namespace)}, q.Options...)...)
	if err != nil {
		return "", Refused(q.Kinds, q.Namespace, err)
	}
	return version, failed
}

// pause is how long to wait before a watch begins anew that has ended.
const pause = time.Second

// Follow calls changed with what changes after a resource version, until the context ends or the API server does not know the
// version any more: then it returns nil, and the caller has to read everything anew.
func (q *Query) Follow(ctx context.Context, version string, changed func(o client.Object, deleted bool) error) error {
	for ctx.Err() == nil {
		opts := append([]client.ListOption{client.InNamespace(q.Namespace)}, q.Options...)
		opts = append(opts, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}})
		w, err := q.Client.Watch(ctx, q.List(), opts...)
		switch {
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			return nil
		case apierrors.IsForbidden(err):
			return fmt.Errorf("watch the %s: %w", q.Kinds, err)
		case err == nil:
			over, err := follow(w, &version, changed)
			w.Stop()
			if over || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// follow returns whether the version is too old for the API server.
func follow(w watch.Interface, version *string, changed func(client.Object, bool) error) (over bool, err error) {
	for e := range w.ResultChan() {
		o, ok := e.Object.(client.Object)
		if e.Type == watch.Error || !ok {
			return true, nil
		}
		*version = o.GetResourceVersion()
		if e.Type == watch.Bookmark {
			continue
		}
		if err := changed(o, e.Type == watch.Deleted); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Selected returns the names of the clusters with certain labels. It reads nothing but metadata.
func Selected(ctx context.Context, c client.WithWatch, opts ...client.ListOption) (map[types.NamespacedName]bool, error) {
	q := &Query{Client: c, Kinds: "ClusterRegistrations", Options: opts, List: func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(hubv1.GroupVersion.WithKind("ClusterRegistrationList"))
		return list
	}}
	out := map[types.NamespacedName]bool{}
	_, err := q.Pages(ctx, func(page []client.Object) error {
		for _, o := range page {
			out[client.ObjectKeyFromObject(o)] = true
		}
		return nil
	})
	return out, err
}
