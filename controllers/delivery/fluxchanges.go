// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"hash/maphash"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
)

// fluxChanges leaves out Flux's many status writes that change nothing of substance. It asks the very function that the
// report asks, so that the two cannot disagree.
func fluxChanges() predicate.Predicate {
	seen := &sightings{seed: maphash.MakeSeed(), objects: map[types.UID]sighting{}}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			seen.news(e.Object)
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			news := seen.news(e.ObjectNew)
			return news || !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
				e.ObjectOld.GetAnnotations()[hubv1.HashAnnotation] != e.ObjectNew.GetAnnotations()[hubv1.HashAnnotation]
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			seen.forget(e.Object)
			return true
		},
	}
}

// sightings remember how each Flux object stood when it last woke the room. Flux says Unknown at the start of each routine reconcile
// and True at its end: compared with the event before, each of the two is news, and 50,000 objects every ten minutes are 160
// events a second that change nothing.
type sightings struct {
	seed    maphash.Seed
	mu      sync.Mutex
	objects map[types.UID]sighting
}

type sighting struct {
	state      uint64 // its hash: 50,000 messages would be megabytes
	ready      bool
	generation int64
}

// news returns whether an object stands otherwise than when it last did.
func (s *sightings) news(obj client.Object) bool {
	state := fluxstate.Of(obj)
	is := sighting{maphash.Comparable(s.seed, state), state.Ready == metav1.ConditionTrue, state.Generation}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.objects[obj.GetUID()]
	routine := known && was.ready && was.generation == is.generation && state.Ready == metav1.ConditionUnknown && !state.Deleting && !state.Suspended
	if routine || known && was == is {
		return false
	}
	s.objects[obj.GetUID()] = is
	return true
}

func (s *sightings) forget(obj client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, obj.GetUID())
}
