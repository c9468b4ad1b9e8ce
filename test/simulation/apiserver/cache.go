// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Cache is a process's view of the server: informers, each of which shows the events of its kind up to some point,
// until Deliver is called.
type Cache struct {
	server  *Server
	scheme  *runtime.Scheme
	options cache.Options

	mu        sync.Mutex
	informers map[id]*Informer
	// ordered are the same, sorted by what they are called.
	ordered []*Informer
	indexes map[id]map[string]client.IndexerFunc
}

// id tells the informers of a kind apart that have their objects in different forms.
type id struct {
	schema.GroupKind
	form string
}

// NewCache returns a cache without informers.
func NewCache(s *Server, scheme *runtime.Scheme, options cache.Options) *Cache {
	return &Cache{server: s, scheme: scheme, options: options, informers: map[id]*Informer{}, indexes: map[id]map[string]client.IndexerFunc{}}
}

func form(obj runtime.Object) string {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return "metadata"
	case *unstructured.Unstructured, *unstructured.UnstructuredList:
		return "unstructured"
	}
	return ""
}

// Informer is the view of one kind in one form.
type Informer struct {
	cache.Informer // nil: what is not below is never called

	id       id
	gvk      schema.GroupVersionKind
	kind     *kind
	example  client.Object
	of       *Cache
	selector labels.Selector
	change   toolscache.TransformFunc

	position int
	objects  map[types.NamespacedName]client.Object
	// sorted are the keys of objects; nil if they have changed.
	sorted   []types.NamespacedName
	indexed  map[string]*index
	handlers []toolscache.ResourceEventHandler
	// fresh are handlers that have not been told which objects exist.
	fresh []toolscache.ResourceEventHandler
}

// String names the informer.
func (i *Informer) String() string {
	if i.id.form == "" {
		return i.id.Kind
	}
	return i.id.Kind + " (" + i.id.form + ")"
}

// informer returns an informer. A new informer shows all existing objects.
func (c *Cache) informer(obj runtime.Object) (*Informer, error) {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return nil, err
	}
	if n := len(gvk.Kind) - len("List"); n > 0 && gvk.Kind[n:] == "List" {
		gvk.Kind = gvk.Kind[:n]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := id{gvk.GroupKind(), form(obj)}
	if i := c.informers[key]; i != nil {
		return i, nil
	}
	i := &Informer{id: key, gvk: gvk, kind: c.server.kind(gvk.GroupKind()), of: c, selector: labels.Everything(),
		change: c.options.DefaultTransform, objects: map[types.NamespacedName]client.Object{}, indexed: map[string]*index{}}
	for example, by := range c.options.ByObject {
		of, err := apiutil.GVKForObject(example, c.scheme)
		if err != nil {
			return nil, err
		}
		if of.GroupKind() == key.GroupKind && form(example) == key.form {
			if by.Label != nil {
				i.selector = by.Label
			}
			if by.Transform != nil {
				i.change = by.Transform
			}
		}
	}
	var list runtime.Object
	switch key.form {
	case "metadata":
		list = &metav1.PartialObjectMetadataList{}
	case "unstructured":
		list = &unstructured.UnstructuredList{}
	}
	if i.example, err = newObject(c.scheme, gvk, list); err != nil {
		return nil, err
	}
	i.position = c.server.Position(gvk.GroupKind())
	for _, o := range c.server.List(gvk.GroupKind(), "") {
		if obj := i.see(o); obj != nil {
			i.objects[client.ObjectKeyFromObject(obj)] = obj
		}
	}
	c.informers[key] = i
	c.ordered = append(c.ordered, i)
	slices.SortFunc(c.ordered, func(a, b *Informer) int { return cmp.Compare(a.String()+a.id.Group, b.String()+b.id.Group) })
	return i, nil
}

// see returns an object as the informer keeps it, nil if it does not.
func (i *Informer) see(o Object) client.Object {
	if o == nil || !i.selector.Matches(labels.Set(Labels(o))) {
		return nil
	}
	obj := i.example.DeepCopyObject().(client.Object)
	if err := i.of.server.Into(o, obj); err != nil {
		panic(fmt.Sprintf("decode %s: %v", i, err))
	}
	if i.change != nil {
		changed, err := i.change(obj)
		if err != nil {
			panic(err)
		}
		obj = changed.(client.Object)
	}
	obj.GetObjectKind().SetGroupVersionKind(i.gvk)
	return obj
}

// Informers returns those that have something to deliver, in a fixed order.
func (c *Cache) Informers() []*Informer {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*Informer
	for _, i := range c.ordered {
		if i.Behind() > 0 || len(i.fresh) > 0 {
			out = append(out, i)
		}
	}
	return out
}

// Behind returns how much has happened that the informer does not show.
func (i *Informer) Behind() int { return len(i.kind.log) - i.position }

// Deliver shows the next event. A new handler is told of all existing objects first.
func (i *Informer) Deliver() {
	for _, h := range i.fresh {
		for _, key := range i.keys() {
			h.OnAdd(i.objects[key], true)
		}
	}
	i.handlers, i.fresh = append(i.handlers, i.fresh...), nil
	if i.Behind() == 0 {
		return
	}
	e := i.of.server.Events(i.id.GroupKind, i.position)[0]
	i.position++
	i.show(e)
}

// Relist jumps to the present state, as after a watch that broke: what happened in between is seen as one change.
func (i *Informer) Relist() {
	i.position = i.of.server.Position(i.id.GroupKind)
	now := map[types.NamespacedName]Object{}
	for _, o := range i.of.server.List(i.id.GroupKind, "") {
		m := metadata(o)
		ns, _ := m["namespace"].(string)
		now[types.NamespacedName{Namespace: ns, Name: m["name"].(string)}] = o
	}
	for _, key := range i.keys() {
		if now[key] == nil {
			old := i.objects[key]
			i.set(key, nil)
			for _, h := range i.handlers {
				h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: key.String(), Obj: old})
			}
		}
	}
	for _, o := range i.of.server.List(i.id.GroupKind, "") {
		i.show(Event{New: o})
	}
}

// set has a new object, or nil for one that is gone, in place of another.
func (i *Informer) set(key types.NamespacedName, obj client.Object) {
	for _, x := range i.indexed {
		x.drop(key)
	}
	if _, there := i.objects[key]; there != (obj != nil) {
		i.sorted = nil
	}
	if obj == nil {
		delete(i.objects, key)
		return
	}
	i.objects[key] = obj
}

// keys returns the keys of all objects, sorted. They must not be changed.
func (i *Informer) keys() []types.NamespacedName {
	if i.sorted != nil {
		return i.sorted
	}
	keys := make([]types.NamespacedName, 0, len(i.objects))
	for k := range i.objects {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareKeys)
	i.sorted = keys
	return keys
}

func (i *Informer) show(e Event) {
	next := i.see(e.New)
	var key types.NamespacedName
	o := e.New
	if o == nil {
		o = e.Old
	}
	m := metadata(o)
	key.Namespace, _ = m["namespace"].(string)
	key.Name, _ = m["name"].(string)
	old, had := i.objects[key]
	switch {
	case next != nil && had:
		i.set(key, next)
		for _, h := range i.handlers {
			h.OnUpdate(old, next)
		}
	case next != nil:
		i.set(key, next)
		for _, h := range i.handlers {
			h.OnAdd(next, false)
		}
	case had:
		i.set(key, nil)
		if gone := i.see(e.Old); e.New == nil && gone != nil {
			old = gone
		}
		for _, h := range i.handlers {
			h.OnDelete(old)
		}
	}
}

// GetInformer implements cache.Informers.
func (c *Cache) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return c.informer(obj)
}

// GetInformerForKind implements cache.Informers.
func (c *Cache) GetInformerForKind(context.Context, schema.GroupVersionKind, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, errUnused
}

// RemoveInformer implements cache.Informers.
func (c *Cache) RemoveInformer(context.Context, client.Object) error { return nil }

// Start implements cache.Informers.
func (c *Cache) Start(context.Context) error { return errUnused }

// WaitForCacheSync implements cache.Informers.
func (c *Cache) WaitForCacheSync(context.Context) bool { return true }

// IndexField implements client.FieldIndexer.
func (c *Cache) IndexField(_ context.Context, obj client.Object, field string, value client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return err
	}
	key := id{gvk.GroupKind(), form(obj)}
	if c.indexes[key] == nil {
		c.indexes[key] = map[string]client.IndexerFunc{}
	}
	c.indexes[key][field] = value
	return nil
}

// Get implements client.Reader.
func (c *Cache) Get(_ context.Context, name client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	i, err := c.informer(out)
	if err != nil {
		return err
	}
	obj := i.objects[name]
	if obj == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: i.id.Group, Resource: i.id.Kind}, name.Name)
	}
	o := client.GetOptions{}
	o.ApplyOptions(opts)
	if o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy {
		obj = obj.DeepCopyObject().(client.Object)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(obj).Elem())
	return nil
}

// List implements client.Reader.
func (c *Cache) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	i, err := c.informer(list)
	if err != nil {
		return err
	}
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	deep := o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy
	keys, err := i.found(o.FieldSelector)
	if err != nil {
		return err
	}
	var items []runtime.Object
	for _, key := range keys {
		obj := i.objects[key]
		if o.Namespace != "" && o.Namespace != key.Namespace || o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
			continue
		}
		if deep {
			obj = obj.DeepCopyObject().(client.Object)
		}
		items = append(items, obj)
		if o.Limit > 0 && int64(len(items)) == o.Limit {
			break
		}
	}
	return SetList(list, items)
}

// AddEventHandler implements cache.Informer.
func (i *Informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.of.mu.Lock()
	defer i.of.mu.Unlock()
	i.fresh = append(i.fresh, h)
	return registered{}, nil
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i *Informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler,
	_ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

type registered struct {
	toolscache.ResourceEventHandlerRegistration
}

func (registered) HasSynced() bool { return true }
