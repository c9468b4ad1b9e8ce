// SPDX-License-Identifier: Apache-2.0

// Package apply writes to the management cluster. It server-side applies exactly the fields that the hub owns, patches a
// status only if it has changed, and deletes only what was seen.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// ErrNotOwned says that an object of that name exists and belongs to another owner.
var ErrNotOwned = errors.New("an object of that name exists that Chandler did not make")

// ErrOtherCluster says that an object of that name exists and is that of another cluster. It is an ErrNotOwned.
var ErrOtherCluster error = otherCluster{}

type otherCluster struct{}

func (otherCluster) Error() string { return "an object of that name exists that is another cluster's" }

// Is makes it an ErrNotOwned.
func (otherCluster) Is(target error) bool { return target == ErrNotOwned }

// FreeFor returns an ErrOtherCluster if the cache has an object of a name with a cluster's label other than the given one. The server
// does not refuse that: the hub's write has no conflict with an earlier one of its own. there is an empty object.
func FreeFor(ctx context.Context, cache client.Reader, name types.NamespacedName, there client.Object, clusterKey string) error {
	switch err := cache.Get(ctx, name, there, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", name, err)
	}
	if has := there.GetLabels()[hubv1.ClusterKeyLabel]; has != "" && has != clusterKey {
		return fmt.Errorf("%s: %w", name, ErrOtherCluster)
	}
	return nil
}

// Create applies an object that does not exist yet, and returns it as the API server has it. It does not force: if
// the object exists after all, with fields that another writer set, the API server reports a conflict. owned then
// tells whether the object is the hub's, since the cache may lag behind the hub's own write. If it is not, Create
// leaves it alone and returns ErrNotOwned.
func Create(ctx context.Context, c client.Client, live client.Reader, obj *unstructured.Unstructured, manager string,
	owned func(client.Object) bool) (*unstructured.Unstructured, error) {
	u := obj.DeepCopy()
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager))
	if !apierrors.IsConflict(err) {
		return u, wrap(obj, err)
	}
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(obj.GroupVersionKind())
	if err := live.Get(ctx, client.ObjectKeyFromObject(obj), there); err != nil {
		return nil, wrap(obj, err)
	}
	if !owned(there) {
		return nil, fmt.Errorf("%s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), ErrNotOwned)
	}
	return Update(ctx, c, obj, manager)
}

// Update applies an object of the hub's, and overwrites fields that another writer has set meanwhile. It returns the
// object as the API server has it.
func Update(ctx context.Context, c client.Client, obj *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	u := obj.DeepCopy()
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.ForceOwnership)
	return u, wrap(obj, err)
}

// Delete deletes the very object that was seen, and not one that took its name meanwhile: that one gives a conflict. It is no error if
// the object is gone.
func Delete(ctx context.Context, c client.Client, obj client.Object) error {
	uid := obj.GetUID()
	return client.IgnoreNotFound(c.Delete(ctx, obj, client.Preconditions{UID: &uid}))
}

func wrap(obj *unstructured.Unstructured, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("apply %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
}

// Status writes the status of after, with its texts bounded, if it differs from that of before. Both are copies of the same object. It
// returns a conflict if the object has changed since it was read, or is gone: what a process decided before it stood still is not written
// over what another one has said since, and what depends on the status must not be done.
func Status(ctx context.Context, c client.Client, before, after client.Object) error {
	bound(c, after)
	if equality.Semantic.DeepEqual(statusOf(before), statusOf(after)) {
		return nil
	}
	err := c.Status().Patch(ctx, after, statusPatch{before: before})
	if apierrors.IsNotFound(err) {
		kind := schema.GroupResource{Resource: reflect.TypeOf(after).Elem().Name()}
		err = apierrors.NewConflict(kind, after.GetName(), errors.New("it is gone"))
	}
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// statusPatch is a merge patch of the status alone, for the object as it was read. client.MergeFrom would encode both objects as a whole,
// and compare them: the spec of a set may have all its manifests.
type statusPatch struct {
	before client.Object
}

// Type implements client.Patch.
func (statusPatch) Type() types.PatchType { return types.MergePatchType }

// Data implements client.Patch.
func (p statusPatch) Data(after client.Object) ([]byte, error) {
	was, err := json.Marshal(statusOf(p.before))
	if err != nil {
		return nil, err
	}
	is, err := json.Marshal(statusOf(after))
	if err != nil {
		return nil, err
	}
	change, err := jsonpatch.CreateMergePatch(was, is)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": p.before.GetResourceVersion()}, "status": json.RawMessage(change),
	})
}

// statusOf returns the status of an object, which must not be changed.
func statusOf(obj client.Object) any {
	return reflect.ValueOf(obj).Elem().FieldByName("Status").Addr().Interface()
}

// bound bounds the texts of a status. If the client is documented, it adds the addresses of runbooks.
func bound(c client.Client, obj client.Object) {
	o, ok := obj.(status.Object)
	if !ok {
		return
	}
	status.Bound(o)
	if d, ok := c.(documented); ok {
		status.AddRunbooks(o, d.docs)
	}
}

type documented struct {
	client.Client
	docs string
}

// Documented returns a client with which Status ends the message of each condition that needs a person with the address
// of its runbook. docs is where the pages are.
func Documented(c client.Client, docs string) client.Client { return documented{c, docs} }

// Lagged returns whether an error consists only of conflicts. Then the cache was stale, and it will catch up in a
// moment. It is no reason for an alert.
func Lagged(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !Lagged(e) })
	}
	return apierrors.IsConflict(err)
}

// ErrBeingDeleted says that an object is there, and on its way out. It is made again when it is gone.
var ErrBeingDeleted = errors.New("is being deleted; it is made again when it is gone")

// Passes returns whether an error consists only of what may be gone at the next try: conflicts, what is still being deleted, and an API
// server that is not reached, is slow, or has too much to do.
func Passes(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !Passes(e) })
	}
	var unreached *url.Error
	return apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &unreached) || errors.Is(err, ErrBeingDeleted)
}

// afterConflict is how long a request waits after a conflict, until the cache has caught up. Most new clusters meet a conflict, so this
// time is in new_cluster_10ps_ms_p50 of the bench.
const afterConflict = 50 * time.Millisecond

// Retried turns the result and error of a reconcile into what it returns to controller-runtime. If err consists only of conflicts, the
// request is requeued soon, and the conflicts are not logged or counted as errors. The back-off of an error would be too long: the request
// may have failed for another reason for an hour, and then a conflict would be the next step of that back-off.
func Retried(result ctrl.Result, err error) (ctrl.Result, error) {
	if err != nil && Lagged(err) {
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	}
	if err != nil {
		return ctrl.Result{}, err // which is tried again sooner; controller-runtime warns of both
	}
	return result, nil
}

// RemoveFinalizer removes finalizers from an object, unless the object has changed since it was read: the change
// may be a reason to keep it.
func RemoveFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizers ...string) error {
	var kept []string
	for _, f := range obj.GetFinalizers() {
		if !slices.Contains(finalizers, f) {
			kept = append(kept, f)
		}
	}
	if len(kept) == len(obj.GetFinalizers()) {
		return nil
	}
	obj.SetFinalizers(kept)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": kept, "resourceVersion": obj.GetResourceVersion()}})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch)))
}
