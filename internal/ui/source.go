// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

// Fleet is where pages get the fleet from.
type Fleet interface {
	// Index returns the fleet as it is known now.
	Index() *view.Index
	// Changed returns a channel that is closed at the next change.
	Changed() <-chan struct{}
}

// Watch keeps the fleet of a hub in memory.
type Watch struct {
	mu      sync.Mutex
	changed chan struct{}
	// index is nil if something has changed since it was made.
	index *view.Index
	// notes say what the caller may not list, and troubles what went wrong last, both by kind.
	notes    []string
	troubles map[string]string
	stores   map[string]cache.Store
	// namespace is the only one that is listed, or empty. unlisted are the kinds that the caller may not list.
	namespace string
	unlisted  []string
}

// kinds are what a Watch lists, by their resources.
var kinds = []struct {
	resource, plural string
	object           client.Object
	list             func() client.ObjectList
}{
	{"clusterregistrations", "ClusterRegistrations", &hubv1.ClusterRegistration{},
		func() client.ObjectList { return &hubv1.ClusterRegistrationList{} }},
	{"addonsets", "AddonSets", &hubv1.AddonSet{}, func() client.ObjectList { return &hubv1.AddonSetList{} }},
	{"addondeliveries", "AddonDeliveries", &hubv1.AddonDelivery{}, func() client.ObjectList { return &hubv1.AddonDeliveryList{} }},
}

// NewWatch begins to list and watch the fleet in a namespace; an empty one means all. It returns when everything has been listed once.
// What the caller may not list is noted, and is no error, unless that is everything.
func NewWatch(ctx context.Context, config *rest.Config, c client.Client, namespace string) (*Watch, error) {
	w := &Watch{changed: make(chan struct{}), troubles: map[string]string{}, stores: map[string]cache.Store{}, namespace: namespace}
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &hubv1.GroupVersion, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(hubscheme.New()).WithoutConversion()
	api, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reach the hub at %s: %w", config.Host, err)
	}
	var listed []cache.InformerSynced
	var refused error
	for _, kind := range kinds {
		err := c.List(ctx, kind.list(), client.InNamespace(namespace), client.Limit(1))
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return nil, live.NoHub(kind.plural)
		case apierrors.IsForbidden(err):
			refused = err
			w.notes, w.unlisted = append(w.notes, mayNot(kind.plural, namespace)), append(w.unlisted, kind.plural)
			continue
		case err != nil:
			return nil, fmt.Errorf("list the %s: %w", kind.plural, err)
		}
		informer := cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(
			cache.NewListWatchFromClient(api, kind.resource, namespace, fields.Everything()), api), kind.object, cache.SharedIndexInformerOptions{})
		synced, err := w.follow(informer, kind.plural)
		if err != nil {
			return nil, err
		}
		w.stores[kind.resource] = informer.GetStore()
		listed = append(listed, synced)
		go informer.RunWithContext(ctx)
	}
	if len(listed) == 0 {
		return nil, fmt.Errorf("you may list nothing of this hub: %w; write -n NAMESPACE for a namespace that you may read", refused)
	}
	if !cache.WaitForCacheSync(ctx.Done(), listed...) {
		return nil, fmt.Errorf("list the fleet: %w", context.Cause(ctx))
	}
	return w, nil
}

func mayNot(plural, namespace string) string {
	if namespace == "" {
		return fmt.Sprintf("You may not list the %s of all namespaces, so they are missing here. chandler ui -n NAMESPACE looks at one "+
			"namespace that you may read.", plural)
	}
	return fmt.Sprintf("You may not list the %s in namespace %s, so they are missing here.", plural, namespace)
}

// follow has an informer tell what changes.
func (w *Watch) follow(informer cache.SharedIndexInformer, plural string) (cache.InformerSynced, error) {
	if err := informer.SetTransform(strip); err != nil {
		return nil, err
	}
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return // a watch ends now and then
		}
		w.change(plural, fmt.Sprintf("The %s are not up to date: %s.", plural, excerpt.Cut(excerpt.Line(err.Error()), 300)))
	})
	if err != nil {
		return nil, err
	}
	fine := func() { w.change(plural, "") }
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { fine() },
		UpdateFunc: func(any, any) { fine() }, DeleteFunc: func(any) { fine() }})
	if err != nil {
		return nil, err
	}
	return registration.HasSynced, nil
}

// change notes that something has changed, and what is wrong with a kind.
func (w *Watch) change(plural, trouble string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubles[plural] = trouble
	if w.index == nil {
		return // no page has looked since the last change
	}
	w.index = nil
	close(w.changed)
	w.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next change after Index was called.
func (w *Watch) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Index returns the fleet.
func (w *Watch) Index() *view.Index {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.index != nil {
		return w.index
	}
	f := &view.Fleet{Notes: slices.Clone(w.notes), Namespace: w.namespace, Unlisted: w.unlisted}
	for _, kind := range kinds {
		if text := w.troubles[kind.plural]; text != "" {
			f.Notes = append(f.Notes, text)
		}
		store := w.stores[kind.resource]
		if store == nil {
			continue
		}
		for _, object := range store.List() {
			switch o := object.(type) {
			case *hubv1.ClusterRegistration:
				f.Registrations = append(f.Registrations, o)
			case *hubv1.AddonSet:
				f.Sets = append(f.Sets, o)
			case *hubv1.AddonDelivery:
				f.Deliveries = append(f.Deliveries, o)
			}
		}
	}
	w.index = view.NewIndex(f)
	return w.index
}
