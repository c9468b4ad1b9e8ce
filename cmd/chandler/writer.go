// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writer applies objects to the management cluster, and says of each what it did.
type writer struct {
	client client.Client
	out    io.Writer
	// manager is the field manager. It is the user's, and so not the hub's.
	manager string
	// dry has it change nothing, and say what would become of each object.
	dry bool
	// overwrite has it change objects that exist, and force take over fields that somebody else has set.
	overwrite, force bool
}

// write applies the objects in their order. First the API server is asked about all of them, so that a mistake in the last
// one does not leave the first ones behind.
func (w *writer) write(ctx context.Context, objects []*unstructured.Unstructured) error {
	before, err := w.ask(ctx, objects)
	if err != nil {
		return err
	}
	return w.put(ctx, objects, before)
}

// put applies objects that the API server has been asked about. before is each as it was then.
func (w *writer) put(ctx context.Context, objects, before []*unstructured.Unstructured) error {
	var options []client.ApplyOption
	dry := ""
	if w.dry {
		options, dry = append(options, client.DryRunAll), " (server dry run)"
	}
	for i, u := range objects {
		after := u.DeepCopy()
		err := w.apply(ctx, after, options...)
		if w.dry && apierrors.IsNotFound(err) && before[i] == nil {
			err = nil // its namespace would be made too
		}
		if err != nil {
			return w.wrap(u, err)
		}
		what := "configured"
		switch {
		case before[i] == nil:
			what = "created"
		case len(differences(before[i], after)) == 0:
			what = "unchanged"
		}
		if _, err := fmt.Fprintln(w.out, called(u), what+dry); err != nil {
			return err
		}
	}
	return nil
}

// ask has the API server say what it would do. An object that exists is somebody's, also if he has made it by this command:
// another selector, or another add-on, would take away what clusters have. So it stays as it is, unless the user says so.
// ask returns each object as it is before; nil for one that is none yet.
func (w *writer) ask(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	made := map[string]bool{}
	all := make([]*unstructured.Unstructured, len(objects))
	for i, u := range objects {
		before, err := w.before(ctx, u)
		if err != nil {
			return nil, err
		}
		all[i] = before
		after := u.DeepCopy()
		err = w.apply(ctx, after, client.DryRunAll)
		if apierrors.IsNotFound(err) && made[u.GetNamespace()] {
			continue // its namespace does not exist yet, and is made with it
		}
		if err != nil {
			return nil, w.wrap(u, err)
		}
		if u.GetKind() == "Namespace" {
			made[u.GetName()] = true
		}
		if before == nil || w.overwrite {
			continue
		}
		if fields := differences(before, after); len(fields) > 0 {
			return nil, fmt.Errorf("%s exists, and differs in %s: choose another name, or write --overwrite to change it", called(u),
				strings.Join(fields, ", "))
		}
	}
	return all, nil
}

// before returns an object as it is; nil if there is none.
func (w *writer) before(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(u.GroupVersionKind())
	switch err := w.client.Get(ctx, client.ObjectKeyFromObject(u), before); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", called(u), err)
	}
	return before, nil
}

// differences returns the fields in which two states of an object differ for a user: its labels, and what is in its spec or
// next to it. The API server may note anew who set what, though nothing else has changed.
func differences(before, after *unstructured.Unstructured) []string {
	var out []string
	for _, path := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}, {"spec"}, {}} {
		a, _, _ := unstructured.NestedMap(before.Object, path...)
		b, _, _ := unstructured.NestedMap(after.Object, path...)
		keys := map[string]bool{}
		for _, m := range []map[string]any{a, b} {
			for k := range m {
				keys[k] = true
			}
		}
		if len(path) == 0 {
			for _, k := range []string{"metadata", "spec", "status"} {
				delete(keys, k)
			}
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			if !equality.Semantic.DeepEqual(a[k], b[k]) {
				out = append(out, strings.Join(append(slices.Clone(path), k), "."))
			}
		}
	}
	return out
}

func (w *writer) apply(ctx context.Context, u *unstructured.Unstructured, options ...client.ApplyOption) error {
	options = append(options, client.FieldOwner(w.manager))
	if w.force {
		options = append(options, client.ForceOwnership)
	}
	return w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...)
}

func (w *writer) wrap(u *unstructured.Unstructured, err error) error {
	switch {
	case apierrors.IsConflict(err) && !w.force:
		return fmt.Errorf("%s: somebody else has set some of its fields: %w. Change it where it comes from, or write --force-conflicts to take "+
			"them over", called(u), err)
	case apierrors.IsNotFound(err) && u.GetNamespace() != "":
		return fmt.Errorf("%s: namespace %q, or the kind, does not exist: %w", called(u), u.GetNamespace(), err)
	}
	return fmt.Errorf("apply %s: %w", called(u), err)
}
