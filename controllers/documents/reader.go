// SPDX-License-Identifier: Apache-2.0

// Package documents reads the ConfigMaps and Secrets that sets refer to.
package documents

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandler-hub/chandler/internal/render"
)

// Reader reads documents. The hub caches only their metadata, and reads their bytes again after they have changed. A Reader
// remembers who has read which of them, so that a change wakes only those: clusters in one controller, sets in another. The zero
// value is ready to use.
type Reader struct {
	// Most is how many bytes of documents are kept, about; DefaultMost if it is not set. What is read beyond that is read each time.
	Most int

	mu      sync.Mutex
	cache   map[place]*document
	recent  list.List // of places, the last read first
	bytes   int
	readers map[place]map[types.NamespacedName]bool // whether they have read it since Prune
	reads   map[types.NamespacedName][]place        // the same, by reader
}

// DefaultMost is 128 MiB: a hundred of the largest documents that there are, and all of a usual fleet.
const DefaultMost = 128 << 20

// From is where documents are read: their metadata from the cache, and their bytes from the API server.
type From struct{ Cached, Live client.Reader }

// place identifies a document. Its Ref has no namespace.
type place struct {
	namespace string
	render.Ref
}

// placeOf returns where the document is to which a set of a namespace refers.
func placeOf(namespace string, ref render.Ref) place {
	namespace, ref = ref.In(namespace)
	return place{namespace, ref}
}

type document struct {
	resourceVersion string
	render.Document
	bytes int
	at    *list.Element
}

// Kept returns how many documents are kept, and how many bytes they take, about.
func (d *Reader) Kept() (entries, bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.cache), d.bytes
}

// known returns a document as it was read, if it has not changed since.
func (d *Reader) known(at place, version string) (render.Document, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc := d.cache[at]
	if doc == nil || doc.resourceVersion != version {
		return render.Document{}, false
	}
	d.recent.MoveToFront(doc.at)
	return doc.Document, true
}

// keep remembers a document, and forgets those that have not been read for longest if they are too much.
func (d *Reader) keep(at place, version string, doc render.Document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(at)
	kept := &document{version, doc, size(&doc), d.recent.PushFront(at)}
	d.cache[at] = kept
	d.bytes += kept.bytes
	most := d.Most
	if most == 0 {
		most = DefaultMost
	}
	for d.bytes > most {
		d.drop(d.recent.Back().Value.(place))
	}
}

// drop forgets a document. The caller holds the lock.
func (d *Reader) drop(at place) {
	doc := d.cache[at]
	if doc == nil {
		return
	}
	d.recent.Remove(doc.at)
	d.bytes -= doc.bytes
	delete(d.cache, at)
}

// size returns what a document takes, about.
func size(doc *render.Document) int {
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
	refs []render.Ref) ([]string, error) {
	out := make([]string, len(refs))
	for i, ref := range refs {
		at := placeOf(namespace, ref)
		d.note(at, reader)
		var err error
		if out[i], err = d.version(ctx, from, at); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *Reader) note(at place, reader types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.readers == nil {
		d.readers, d.cache = map[place]map[types.NamespacedName]bool{}, map[place]*document{}
		d.reads = map[types.NamespacedName][]place{}
	}
	if d.readers[at] == nil {
		d.readers[at] = map[types.NamespacedName]bool{}
	}
	if _, noted := d.readers[at][reader]; !noted {
		d.reads[reader] = append(d.reads[reader], at)
	}
	d.readers[at][reader] = true
}

// Prune forgets what a reader has not read since its last Prune, and the documents that no other reads. It is called when the reader has
// read all that he reads now: a document that he has not read again has no part in what he made of the others, and may change without
// waking him.
func (d *Reader) Prune(reader types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := slices.DeleteFunc(d.reads[reader], func(at place) bool {
		if d.readers[at][reader] {
			d.readers[at][reader] = false
			return false
		}
		d.leave(at, reader)
		return true
	})
	if len(left) == 0 {
		delete(d.reads, reader)
		return
	}
	d.reads[reader] = left
}

// Forget forgets a reader that reads nothing any more, and the documents that no other reads.
func (d *Reader) Forget(reader types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.reads[reader] {
		d.leave(at, reader)
	}
	delete(d.reads, reader)
}

// leave forgets that a reader reads a document. The caller holds the lock.
func (d *Reader) leave(at place, reader types.NamespacedName) {
	delete(d.readers[at], reader)
	if len(d.readers[at]) == 0 {
		delete(d.readers, at)
		d.drop(at)
	}
}

// Notes returns how many times it is noted that a reader reads a document, which may not exist.
func (d *Reader) Notes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, read := range d.reads {
		n += len(read)
	}
	return n
}

// ReadersOf returns a map function from a document of a kind to those who have read it.
func (d *Reader) ReadersOf(kind string) func(context.Context, client.Object) []reconcile.Request {
	return func(_ context.Context, obj client.Object) []reconcile.Request {
		d.mu.Lock()
		defer d.mu.Unlock()
		var out []reconcile.Request
		for k := range d.readers[place{obj.GetNamespace(), render.Ref{Kind: kind, Name: obj.GetName()}}] {
			out = append(out, reconcile.Request{NamespacedName: k})
		}
		return out
	}
}

// Read returns a document, and the resourceVersion that the cache had of it before, as Versions returns it. What is read may be newer: who
// remembers that version notices the event that tells of it. Of a Secret it returns the names of its keys and of the objects that they
// hold, and not their values.
func (d *Reader) Read(ctx context.Context, from From, reader types.NamespacedName, namespace string,
	ref render.Ref) (doc render.Document, before string, err error) {
	at := placeOf(namespace, ref)
	d.note(at, reader)
	before, err = d.version(ctx, from, at)
	if err != nil || before == "" {
		return render.Document{}, "", err
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

func load(ctx context.Context, live client.Reader, at place) (render.Document, string, error) {
	name := types.NamespacedName{Namespace: at.namespace, Name: at.Name}
	if at.Kind == "Secret" {
		s := &corev1.Secret{}
		if err := live.Get(ctx, name, s); err != nil {
			return render.Document{}, "", notFound(err, at)
		}
		doc := render.Secret(s.Labels, s.Annotations, s.Type, s.Data)
		doc.Version = s.ResourceVersion
		return doc, s.ResourceVersion, nil
	}
	m := &corev1.ConfigMap{}
	if err := live.Get(ctx, name, m); err != nil {
		return render.Document{}, "", notFound(err, at)
	}
	return render.ConfigMap(m.Annotations, m.Data), m.ResourceVersion, nil
}

func notFound(err error, at place) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("read %s %s/%s: %w", at.Kind, at.namespace, at.Name, err)
}
