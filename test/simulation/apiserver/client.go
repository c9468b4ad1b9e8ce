// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Gate lets a request through, or not. before is an error in place of the request, after one in place of the answer to a request that
// took effect.
type Gate func(verb string, k Key) (before, after error)

// Reader reads from the server as it is now.
type Reader struct {
	Server *Server
	Scheme *runtime.Scheme
	Gate   Gate
}

// KeyOf returns the key of an object of any form.
func KeyOf(scheme *runtime.Scheme, obj runtime.Object, name types.NamespacedName) (Key, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return Key{}, err
	}
	return Key{gvk.Group, gvk.Kind, name.Namespace, name.Name}, nil
}

func (g Gate) open(verb string, k Key) (before, after error) {
	if g == nil {
		return nil, nil
	}
	return g(verb, k)
}

// Get implements client.Reader.
func (r *Reader) Get(_ context.Context, name client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	k, err := KeyOf(r.Scheme, obj, name)
	if err != nil {
		return err
	}
	if err, _ := r.Gate.open("get", k); err != nil {
		return err
	}
	there := r.Server.Get(k)
	if there == nil {
		return apierrors.NewNotFound(k.resource(), k.Name)
	}
	return r.Server.Into(there, obj)
}

// List implements client.Reader. It knows one field selector, metadata.name.
func (r *Reader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, r.Scheme)
	if err != nil {
		return err
	}
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	if err, _ := r.Gate.open("list", Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.Namespace}); err != nil {
		return err
	}
	var items []runtime.Object
	for _, there := range r.Server.List(gvk.GroupKind(), o.Namespace) {
		if o.FieldSelector != nil {
			name, ok := o.FieldSelector.RequiresExactMatch(metav1.ObjectNameField)
			if !ok {
				return fmt.Errorf("field selector %s is none of the API server's", o.FieldSelector)
			}
			if metadata(there)["name"] != name {
				continue
			}
		}
		if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(Labels(there))) {
			continue
		}
		item, err := newObject(r.Scheme, gvk, list)
		if err != nil {
			return err
		}
		if err := r.Server.Into(there, item); err != nil {
			return err
		}
		items = append(items, item)
		if o.Limit > 0 && int64(len(items)) == o.Limit {
			break
		}
	}
	return SetList(list, items)
}

// Labels returns the labels of an object.
func Labels(o Object) map[string]string {
	m, _ := metadata(o)["labels"].(Object)
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k], _ = v.(string)
	}
	return out
}

// Label returns one of the labels of an object; "" if it has none of that name.
func Label(o Object, name string) string {
	m, _ := o["metadata"].(Object)
	m, _ = m["labels"].(Object)
	v, _ := m[name].(string)
	return v
}

// newObject returns an empty object of a kind, of the Go type that a list of that kind has.
func newObject(scheme *runtime.Scheme, gvk schema.GroupVersionKind, list runtime.Object) (client.Object, error) {
	switch list.(type) {
	case *metav1.PartialObjectMetadataList:
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(gvk)
		return m, nil
	case *unstructured.UnstructuredList:
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		return u, nil
	}
	obj, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return obj.(client.Object), nil
}

// SetList puts objects into a list.
func SetList(list client.ObjectList, items []runtime.Object) error {
	switch l := list.(type) {
	case *metav1.PartialObjectMetadataList:
		l.Items = make([]metav1.PartialObjectMetadata, len(items))
		for i := range items {
			l.Items[i] = *items[i].(*metav1.PartialObjectMetadata)
		}
		return nil
	case *unstructured.UnstructuredList:
		l.Items = make([]unstructured.Unstructured, len(items))
		for i := range items {
			l.Items[i] = *items[i].(*unstructured.Unstructured)
		}
		return nil
	}
	return meta.SetList(list, items)
}

// Client writes to the server, and reads from a reader: the server itself, or a cache of it.
type Client struct {
	client.Reader
	Server *Server
	Types  *runtime.Scheme
	// Actor is who writes, if no field owner is given.
	Actor string
	Gate  Gate
}

var errUnused = errors.New("the simulation's API server does not do that")

func (c *Client) owner(given string) string {
	if given != "" {
		return given
	}
	return c.Actor
}

// do carries out a write, unless the gate stops it or keeps its answer.
func (c *Client) do(verb string, k Key, obj runtime.Object, write func() (Object, error)) error {
	before, after := c.Gate.open(verb, k)
	if before != nil {
		return before
	}
	there, err := write()
	if after != nil {
		return after
	}
	if err != nil || there == nil || obj == nil {
		return err
	}
	return c.Server.Into(there, obj)
}

// Create implements client.Client.
func (c *Client) Create(_ context.Context, obj client.Object, opts ...client.CreateOption) error {
	o := client.CreateOptions{}
	o.ApplyOptions(opts)
	k, raw, err := c.json(obj)
	if err != nil {
		return err
	}
	return c.do("create", k, obj, func() (Object, error) { return c.Server.Create(c.owner(o.FieldManager), k, raw) })
}

func (c *Client) json(obj client.Object) (Key, Object, error) {
	gvk, err := apiutil.GVKForObject(obj, c.Types)
	if err != nil {
		return Key{}, nil, err
	}
	raw, err := FromTyped(obj)
	if err != nil {
		return Key{}, nil, err
	}
	raw["apiVersion"], raw["kind"] = gvk.GroupVersion().String(), gvk.Kind
	return Key{gvk.Group, gvk.Kind, obj.GetNamespace(), obj.GetName()}, raw, nil
}

// Update implements client.Client.
func (c *Client) Update(_ context.Context, obj client.Object, opts ...client.UpdateOption) error {
	o := client.UpdateOptions{}
	o.ApplyOptions(opts)
	k, raw, err := c.json(obj)
	if err != nil {
		return err
	}
	return c.do("update", k, obj, func() (Object, error) {
		return c.Server.Update(c.owner(o.FieldManager), "update", k, raw, false)
	})
}

// Delete implements client.Client.
func (c *Client) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	o := client.DeleteOptions{}
	o.ApplyOptions(opts)
	k, err := KeyOf(c.Types, obj, client.ObjectKeyFromObject(obj))
	if err != nil {
		return err
	}
	var p Preconditions
	if o.Preconditions != nil {
		if o.Preconditions.UID != nil {
			p.UID = string(*o.Preconditions.UID)
		}
		if o.Preconditions.ResourceVersion != nil {
			p.ResourceVersion = *o.Preconditions.ResourceVersion
		}
	}
	return c.do("delete", k, nil, func() (Object, error) { return nil, c.Server.Delete(c.Actor, k, p) })
}

// DeleteAllOf implements client.Client.
func (c *Client) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errUnused
}

// Patch implements client.Client.
func (c *Client) Patch(_ context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	o := client.PatchOptions{}
	o.ApplyOptions(opts)
	return c.patch(obj, patch, c.owner(o.FieldManager), false)
}

func (c *Client) patch(obj client.Object, patch client.Patch, owner string, status bool) error {
	if patch.Type() != types.MergePatchType {
		return errUnused
	}
	k, err := KeyOf(c.Types, obj, client.ObjectKeyFromObject(obj))
	if err != nil {
		return err
	}
	raw, err := patch.Data(obj)
	if err != nil {
		return err
	}
	verb := "patch"
	if status {
		verb = "patch status"
	}
	return c.do(verb, k, obj, func() (Object, error) { return c.Server.Patch(owner, k, raw, status) })
}

// Apply implements client.Client.
func (c *Client) Apply(_ context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	o := client.ApplyOptions{}
	o.ApplyOptions(opts)
	u, ok := config.(interface {
		UnstructuredContent() map[string]any
		SetUnstructuredContent(map[string]any)
	})
	if !ok {
		return errUnused
	}
	content := u.UnstructuredContent()
	obj := &unstructured.Unstructured{Object: content}
	gvk := obj.GroupVersionKind()
	k := Key{gvk.Group, gvk.Kind, obj.GetNamespace(), obj.GetName()}
	force := o.Force != nil && *o.Force
	return c.do("apply", k, nil, func() (Object, error) {
		there, err := c.Server.Apply(c.owner(o.FieldManager), k, content, force)
		if err != nil {
			return nil, err
		}
		u.SetUnstructuredContent(Clone(there))
		return nil, nil
	})
}

// Status implements client.Client.
func (c *Client) Status() client.SubResourceWriter { return statusWriter{c} }

// SubResource implements client.Client.
func (c *Client) SubResource(string) client.SubResourceClient { panic(errUnused) }

// Scheme implements client.Client.
func (c *Client) Scheme() *runtime.Scheme { return c.Types }

// RESTMapper implements client.Client.
func (c *Client) RESTMapper() meta.RESTMapper { return nil }

// GroupVersionKindFor implements client.Client.
func (c *Client) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.Types)
}

// IsObjectNamespaced implements client.Client.
func (c *Client) IsObjectNamespaced(runtime.Object) (bool, error) { return true, nil }

type statusWriter struct{ c *Client }

func (s statusWriter) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errUnused
}

func (s statusWriter) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	k, raw, err := s.c.json(obj)
	if err != nil {
		return err
	}
	return s.c.do("update status", k, obj, func() (Object, error) {
		return s.c.Server.Update(s.c.Actor, "update status", k, raw, true)
	})
}

func (s statusWriter) Patch(_ context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	o := client.SubResourcePatchOptions{}
	o.ApplyOptions(opts)
	return s.c.patch(obj, patch, s.c.owner(o.FieldManager), true)
}

func (s statusWriter) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errUnused
}
