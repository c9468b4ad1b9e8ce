// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// idle is after how long a list that no page asks for is not followed any more. An open page asks more often than that.
const idle = 2 * time.Minute

// followed is a client that reads a list once, and from then on watches it: who asks for it again gets what is known. So an open page
// costs the API server what changes. A watch that ends is not begun anew: the next one to ask reads the list again, and learns what is
// wrong.
type followed struct {
	client.WithWatch

	// changes counts what the watches have seen.
	changes atomic.Int64
	mu      sync.Mutex
	lists   map[string]*followedList
	// revisions are those that were read, each for a while: the content of one never changes.
	revisions map[client.ObjectKey]readRevision
}

type readRevision struct {
	*appsv1.ControllerRevision
	at time.Time
}

// maxRevisions is how many revisions are kept.
const maxRevisions = 200

// followedList is what a watch has seen of a list, by namespace and name.
type followedList struct {
	objects map[client.ObjectKey]client.Object
	stop    context.CancelFunc
	asked   time.Time
}

// follow returns a client that follows the lists of cluster pages.
func follow(c client.WithWatch) *followed {
	return &followed{WithWatch: c, lists: map[string]*followedList{}, revisions: map[client.ObjectKey]readRevision{}}
}

// Get reads an object; a revision from memory, if it was read a while ago.
func (f *followed) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	revision, ok := o.(*appsv1.ControllerRevision)
	if !ok {
		return f.WithWatch.Get(ctx, key, o, opts...)
	}
	f.mu.Lock()
	read := f.revisions[key]
	f.mu.Unlock()
	if read.ControllerRevision != nil && time.Since(read.at) < nowAndThen {
		read.DeepCopyInto(revision)
		return nil
	}
	if err := f.WithWatch.Get(ctx, key, o, opts...); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.revisions) >= maxRevisions {
		clear(f.revisions)
	}
	f.revisions[key] = readRevision{revision.DeepCopy(), time.Now()}
	return nil
}

// List lists objects, from memory if it follows them.
func (f *followed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	key := followable(list, opts)
	if key == "" {
		return f.WithWatch.List(ctx, list, opts...)
	}
	if objects := f.known(key); objects != nil {
		return meta.SetList(list, objects)
	}
	if err := f.WithWatch.List(ctx, list, opts...); err != nil {
		return err
	}
	objects := map[client.ObjectKey]client.Object{}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		one := o.DeepCopyObject().(client.Object)
		objects[client.ObjectKeyFromObject(one)] = one
		return nil
	})
	if err == nil {
		f.begin(ctx, key, objects, list, opts)
	}
	return err
}

// followable returns what tells a list from others; "" if it is none of those that are followed.
func followable(list client.ObjectList, opts []client.ListOption) string {
	switch list.(type) {
	case *hubv1.AddonSetList, *hubv1.TeamList, *hubv1.AddonDeliveryList, *helmv2.HelmReleaseList, *kustomizev1.KustomizationList:
	default:
		return ""
	}
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if o.Limit > 0 || o.Continue != "" || o.Raw != nil || o.FieldSelector != nil {
		return ""
	}
	by := ""
	if o.LabelSelector != nil {
		by = o.LabelSelector.String()
	}
	return fmt.Sprintf("%T %s %s", list, o.Namespace, by)
}

// known returns copies of what a list has now, in the order of names; nil if it is not followed.
func (f *followed) known(key string) []runtime.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lists[key]
	if l == nil {
		return nil
	}
	l.asked = time.Now()
	out := make([]runtime.Object, 0, len(l.objects))
	for _, name := range slices.SortedFunc(maps.Keys(l.objects), compareKeys) {
		out = append(out, l.objects[name].DeepCopyObject())
	}
	return out
}

func compareKeys(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) }

// begin watches a list from where it was read. If that cannot be, the list is read each time.
func (f *followed) begin(ctx context.Context, key string, objects map[client.ObjectKey]client.Object, list client.ObjectList,
	opts []client.ListOption) {
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), AllowWatchBookmarks: true}}
	of := list.DeepCopyObject().(client.ObjectList)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the page, and ends when no page asks any more
	w, err := f.Watch(watching, of, append(slices.Clone(opts), from)...)
	if err != nil {
		stop()
		return
	}
	l := &followedList{objects: objects, stop: stop, asked: time.Now()}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lists[key] != nil { // another page was faster
		stop()
		w.Stop()
		return
	}
	f.lists[key] = l
	go f.run(watching, key, l, w)
}

// run takes what a watch tells until it ends, or no page asks for the list any more.
func (f *followed) run(ctx context.Context, key string, l *followedList, w watch.Interface) {
	defer l.stop()
	defer w.Stop()
	defer f.drop(key, l)
	ticker := time.NewTicker(idle / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if f.unasked(l) {
				return
			}
		case e, ok := <-w.ResultChan():
			if !ok || !f.take(l, e) {
				return
			}
		}
	}
}

func (f *followed) unasked(l *followedList) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Since(l.asked) > idle
}

// take notes an event, and returns false if the watch is over.
func (f *followed) take(l *followedList, e watch.Event) bool {
	o, ok := e.Object.(client.Object)
	if !ok || e.Type == watch.Error {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch e.Type {
	case watch.Bookmark:
		return true
	case watch.Deleted:
		delete(l.objects, client.ObjectKeyFromObject(o))
	default:
		l.objects[client.ObjectKeyFromObject(o)] = o
	}
	f.changes.Add(1)
	return true
}

// drop forgets a list.
func (f *followed) drop(key string, l *followedList) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lists[key] == l {
		delete(f.lists, key)
	}
}

// close ends all watches.
func (f *followed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lists {
		l.stop()
	}
}
