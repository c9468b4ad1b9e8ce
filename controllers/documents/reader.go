// SPDX-License-Identifier: Apache-2.0

// Package documents reads the ConfigMaps and Secrets that sets refer to.
package documents

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandler-hub/chandler/internal/memory"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// Reader reads documents. The hub caches only their metadata, and reads their bytes again after they have changed. A Reader
// remembers who has read which of them, so that a change wakes only those: clusters in one controller, sets in another. The zero
// value is ready to use.
type Reader struct {
	// Most is how many bytes of documents are kept, about; DefaultMost if it is not set. What is read beyond that is read each time.
	Most int

	cache   memory.Recent[place, read]
	readers memory.Readers[types.NamespacedName, place]
}

// DefaultMost is 128 MiB: a hundred of the largest documents that there are, and all of a usual fleet.
const DefaultMost = 128 << 20

// From is where documents are read: their metadata from the cache, and their bytes from the API server.
type From struct{ Cached, Live client.Reader }

// place identifies a document. Its Ref has no namespace.
type place struct {
	namespace string
	document.Ref
}

// placeOf returns where the document is to which a set of a namespace refers.
func placeOf(namespace string, ref document.Ref) place {
	namespace, ref = ref.In(namespace)
	return place{namespace, ref}
}

type read struct {
	resourceVersion string
	document.Document
}

// Kept returns how many documents are kept, and how many bytes they take, about.
func (d *Reader) Kept() (entries, bytes int) { return d.cache.Kept() }

// known returns a document as it was read, if it has not changed since.
func (d *Reader) known(at place, version string) (document.Document, bool) {
	doc, known := d.cache.Get(at)
	return doc.Document, known && doc.resourceVersion == version
}

// keep remembers a document, and forgets those that have not been read for longest if they are too much.
func (d *Reader) keep(at place, version string, doc document.Document) {
	d.cache.Put(at, read{version, doc}, size(&doc), memory.Bound{Bytes: cmp.Or(d.Most, DefaultMost)})
}

// size returns what a document takes, about.
func size(doc *document.Document) int {
	const entry = 64
	bytes := entry
	for k, v := range doc.Data {
		bytes += entry + len(k) + len(v)
	}
	for k, objects := range doc.Objects {
		bytes += entry + len(k) + 4*entry*len(objects)
	}
	for _, namespace := range doc.SharedWith {
		bytes += entry + len(namespace)
	}
	return bytes + entry*(len(doc.Keys)+len(doc.Binary))
}

// version returns a document's resourceVersion from the cache; empty if the document does not exist.
func (d *Reader) version(ctx context.Context, from From, at place) (string, error) {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(at.Kind))
	err := from.Cached.Get(ctx, types.NamespacedName{Namespace: at.namespace, Name: at.Name}, meta)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s %s/%s: %w", at.Kind, at.namespace, at.Name, err)
	}
	return meta.ResourceVersion, nil
}

// Versions returns the resourceVersions of several documents to which a set of a namespace refers, and remembers who reads them.
func (d *Reader) Versions(ctx context.Context, from From, reader types.NamespacedName, namespace string,
	refs []document.Ref) ([]string, error) {
	out := make([]string, len(refs))
	for i, ref := range refs {
		at := placeOf(namespace, ref)
		d.readers.Note(reader, at)
		var err error
		if out[i], err = d.version(ctx, from, at); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Prune forgets what a reader has not read since its last Prune, and the documents that no other reads. It is called when the reader has
// read all that he reads now: a document that he has not read again has no part in what he made of the others, and may change without
// waking him.
func (d *Reader) Prune(reader types.NamespacedName) { d.drop(d.readers.Prune(reader)) }

// Forget forgets a reader that reads nothing any more, and the documents that no other reads.
func (d *Reader) Forget(reader types.NamespacedName) { d.drop(d.readers.Forget(reader)) }

// drop forgets documents. One that somebody begins to read just then is read once more.
func (d *Reader) drop(unread []place) {
	for _, at := range unread {
		d.cache.Delete(at)
	}
}

// Notes returns how many times it is noted that a reader reads a document, which may not exist.
func (d *Reader) Notes() int { return d.readers.Notes() }

// ReadersOf returns a map function from a document of a kind to those who have read it.
func (d *Reader) ReadersOf(kind string) func(context.Context, client.Object) []reconcile.Request {
	return func(_ context.Context, obj client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, k := range d.readers.Of(place{obj.GetNamespace(), document.Ref{Kind: kind, Name: obj.GetName()}}) {
			out = append(out, reconcile.Request{NamespacedName: k})
		}
		return out
	}
}

// Read returns a document, and the resourceVersion that the cache had of it before, as Versions returns it. What is read may be newer: who
// remembers that version notices the event that tells of it. Of a Secret it returns the names of its keys and of the objects that they
// hold, and not their values.
func (d *Reader) Read(ctx context.Context, from From, reader types.NamespacedName, namespace string,
	ref document.Ref) (doc document.Document, before string, err error) {
	at := placeOf(namespace, ref)
	d.readers.Note(reader, at)
	before, err = d.version(ctx, from, at)
	if err != nil || before == "" {
		return document.Document{}, "", err
	}
	if doc, ok := d.known(at, before); ok {
		return doc, before, nil
	}
	doc, version, err := load(ctx, from.Live, at)
	if err != nil || !doc.Found {
		return doc, before, err
	}
	d.keep(at, version, doc)
	return doc, before, nil
}

func load(ctx context.Context, live client.Reader, at place) (document.Document, string, error) {
	name := types.NamespacedName{Namespace: at.namespace, Name: at.Name}
	if at.Kind == "Secret" {
		s := &corev1.Secret{}
		if err := live.Get(ctx, name, s); err != nil {
			return document.Document{}, "", notFound(err, at)
		}
		doc := document.Secret(s.Labels, s.Annotations, s.Type, s.Data)
		doc.Version = s.ResourceVersion
		return doc, s.ResourceVersion, nil
	}
	m := &corev1.ConfigMap{}
	if err := live.Get(ctx, name, m); err != nil {
		return document.Document{}, "", notFound(err, at)
	}
	return document.ConfigMap(m.Annotations, m.Data), m.ResourceVersion, nil
}

func notFound(err error, at place) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("read %s %s/%s: %w", at.Kind, at.namespace, at.Name, err)
}
