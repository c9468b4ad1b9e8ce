// SPDX-License-Identifier: Apache-2.0

// Package resource applies objects to the management cluster as kubectl does, and prints them for Git.
package resource

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

// Writer applies objects to the management cluster, and says of each what it did.
type Writer struct {
	Client client.Client
	Out    io.Writer
	// Manager is the field manager. It is the user's, and so not the hub's.
	Manager string
	// Dry has it change nothing, and say what would become of each object.
	Dry bool
	// Overwrite has it change objects that exist, and Force take over fields that another manager has set.
	Overwrite, Force bool
}

// Write applies the objects in their order. First the API server is asked about all of them, so that a mistake in the last
// one does not leave the first ones behind.
func (w *Writer) Write(ctx context.Context, objects []*unstructured.Unstructured) error {
	before, err := w.Ask(ctx, objects)
	if err != nil {
		return err
	}
	return w.Put(ctx, objects, before)
}

// Put applies objects that the API server has been asked about. before is each as it was then.
func (w *Writer) Put(ctx context.Context, objects, before []*unstructured.Unstructured) error {
	var options []client.ApplyOption
	dry := ""
	if w.Dry {
		options, dry = append(options, client.DryRunAll), " (server dry run)"
	}
	for i, u := range objects {
		after := u.DeepCopy()
		err := w.apply(ctx, after, options...)
		if w.Dry && apierrors.IsNotFound(err) && before[i] == nil {
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
		if _, err := fmt.Fprintln(w.Out, Called(u), what+dry); err != nil {
			return err
		}
	}
	return nil
}

// Ask has the API server say what it would do. An object that exists belongs to a user, also if this command made it: another selector, or
// another add-on, would take away what clusters have. So it stays as it is without --overwrite.
// Ask returns each object as it is before; nil for one that is none yet.
func (w *Writer) Ask(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
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
		if before == nil || w.Overwrite {
			continue
		}
		if fields := differences(before, after); len(fields) > 0 {
			return nil, fmt.Errorf("%s exists, and differs in %s: choose another name, or write --overwrite to change it", Called(u),
				strings.Join(fields, ", "))
		}
	}
	return all, nil
}

// before returns an object as it is; nil if there is none.
func (w *Writer) before(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(u.GroupVersionKind())
	switch err := w.Client.Get(ctx, client.ObjectKeyFromObject(u), before); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", Called(u), err)
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

func (w *Writer) apply(ctx context.Context, u *unstructured.Unstructured, options ...client.ApplyOption) error {
	options = append(options, client.FieldOwner(w.Manager))
	if w.Force {
		options = append(options, client.ForceOwnership)
	}
	return w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...)
}

func (w *Writer) wrap(u *unstructured.Unstructured, err error) error {
	switch {
	case apierrors.IsConflict(err) && !w.Force:
		return fmt.Errorf("%s: another user or tool has set some of its fields: %w. Change it where it comes from, or write "+
			"--force-conflicts to take them over", Called(u), err)
	case apierrors.IsNotFound(err) && u.GetNamespace() != "":
		return fmt.Errorf("%s: namespace %q, or the kind, does not exist: %w", Called(u), u.GetNamespace(), err)
	}
	return fmt.Errorf("apply %s: %w", Called(u), err)
}
