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

// pageSize is how many objects are read at a time, as kubectl does.
const pageSize = 500

// Query is what somebody wants to see of a kind.
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

// Pages reads the objects page by page, so that nobody ever holds all of them. It returns the resource version to watch from.
func (q *Query) Pages(ctx context.Context, take func([]client.Object) error) (version string, err error) {
	next := ""
	for {
		list := q.List()
		opts := append([]client.ListOption{client.InNamespace(q.Namespace), client.Limit(pageSize), client.Continue(next)}, q.Options...)
		err := q.Client.List(ctx, list, opts...)
		var refused apierrors.APIStatus
		if apierrors.IsResourceExpired(err) && errors.As(err, &refused) && refused.Status().Continue != "" && next != refused.Status().Continue {
			next = refused.Status().Continue // it took too long for one state of the API server: the rest is of a later one
			continue
		}
		if err != nil {
			return "", q.refused(err)
		}
		var objects []client.Object
		err = meta.EachListItem(list, func(o runtime.Object) error {
			objects = append(objects, o.(client.Object))
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("read the %s: %w", q.Kinds, err)
		}
		if err := take(objects); err != nil {
			return "", err
		}
		version, next = list.GetResourceVersion(), list.GetContinue()
		if next == "" {
			return version, nil
		}
	}
}

func (q *Query) refused(err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("this API server has no %s, so %w: choose another one by --context or --kubeconfig", q.Kinds, ErrNoHub)
	case apierrors.IsForbidden(err) && q.Namespace == "":
		return fmt.Errorf("list the %s of all namespaces: %w; write -n NAMESPACE for a namespace that you may read", q.Kinds, err)
	case q.Namespace != "":
		return fmt.Errorf("list the %s in namespace %s: %w", q.Kinds, q.Namespace, err)
	}
	return fmt.Errorf("list the %s: %w", q.Kinds, err)
}

// pause is how long to wait before a watch begins anew that has ended.
const pause = time.Second

// Follow calls changed with what changes after a resource version, until the context ends or the API server does not know the
// version any more: then it returns nil, and somebody has to read everything anew.
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
