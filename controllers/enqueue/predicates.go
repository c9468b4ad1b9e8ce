// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Changes lets through that an object comes or goes, that its spec changes, and that it is being deleted.
func Changes() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, Deletion())
}

// Deletion leaves out every update of an object but the one that begins its deletion.
func Deletion() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}
