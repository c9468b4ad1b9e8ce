// SPDX-License-Identifier: Apache-2.0

// Package apiserver is a management cluster's API server in memory. It keeps objects as JSON, and behaves as a real
// one does as far as a controller of the hub can tell. It is made for speed (controller-runtime's fake client takes
// milliseconds for a server-side apply), for a clock that the caller sets, and for injected faults.
//
// It honours: resourceVersions that grow over all objects, UIDs, generations that change only with the spec and with
// a deletion, no event for a write that changes nothing, the status subresource, finalizers and deletionTimestamps,
// preconditions on UID and resourceVersion in deletions and patches, merge patches, server-side apply with owners of
// fields, conflicts, forced ownership and co-ownership, admission by whoever is asked for it, and a namespace that is
// being deleted and rejects new objects.
//
// It does not honour: schemas (it prunes, validates and defaults nothing, except the initial status of the hub's own
// kinds), RBAC, garbage collection by owner, more than one version of a kind, strategic merge and
// JSON patches, lists that merge by a key other than finalizers (a set), conditions in a status that is applied, and
// bookkeeping in metadata.managedFields.
package apiserver

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Key names an object.
type Key struct {
	Group, Kind, Namespace, Name string
}

func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// Event is what a watch tells. Old is nil for one that is new, New for one that is gone.
type Event struct {
	Old, New Object
}

// Write is what somebody wrote.
type Write struct {
	Key     Key
	Actor   string
	Verb    string
	At      time.Time
	Old     Object
	New     Object
	Changed bool
}

// Attempt is what somebody is about to write. Verb is CREATE, UPDATE or DELETE; Old is nil for the first, New for the last. Neither may be
// changed.
type Attempt struct {
	Key                      Key
	Actor, Verb, Subresource string
	Old, New                 Object
}

// Server is the API server. It is for one goroutine at a time.
type Server struct {
	Clock clock.PassiveClock
	// OnWrite is called after each write that was accepted.
	OnWrite func(Write)
	// Admit is asked before each write of a client, if it is set. Its error is the answer.
	Admit func(Attempt) error

	version int64
	uids    int64
	kinds   map[schema.GroupKind]*kind
	decoded *decoder
}

// kind holds the objects of one kind, and all that has ever happened to them.
type kind struct {
	objects map[types.NamespacedName]*stored
	log     []Event
}

type stored struct {
	object Object
	owners owners
}

// New returns an empty API server.
func New(c clock.PassiveClock) *Server {
	return &Server{Clock: c, kinds: map[schema.GroupKind]*kind{}, decoded: newDecoder()}
}

// Snapshot returns an API server that has what this one has now. It is for reading alone.
func (s *Server) Snapshot() *Server {
	out := &Server{Clock: s.Clock, version: s.version, kinds: map[schema.GroupKind]*kind{}, decoded: s.decoded}
	for gk, k := range s.kinds {
		there := out.kind(gk)
		for name, o := range k.objects {
			there.objects[name] = &stored{object: o.object} // what is written replaces an object as a whole
		}
	}
	return out
}

func (s *Server) kind(gk schema.GroupKind) *kind {
	k := s.kinds[gk]
	if k == nil {
		k = &kind{objects: map[types.NamespacedName]*stored{}}
		s.kinds[gk] = k
	}
	return k
}

func (k Key) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }
func (k Key) name() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}
func (k Key) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Kind}
}

// Get returns an object, which must not be changed; nil if it does not exist.
func (s *Server) Get(k Key) Object {
	if there := s.kind(k.GroupKind()).objects[k.name()]; there != nil {
		return there.object
	}
	return nil
}

// List returns the objects of a kind, sorted by name; they must not be changed. namespace may be empty for all.
func (s *Server) List(gk schema.GroupKind, namespace string) []Object {
	k := s.kind(gk)
	keys := make([]types.NamespacedName, 0, len(k.objects))
	for key := range k.objects {
		if namespace == "" || key.Namespace == namespace {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	out := make([]Object, len(keys))
	for i, key := range keys {
		out[i] = k.objects[key].object
	}
	return out
}

// Kinds returns the kinds that have ever had an object, sorted.
func (s *Server) Kinds() []schema.GroupKind {
	var out []schema.GroupKind
	for gk := range s.kinds {
		out = append(out, gk)
	}
	slices.SortFunc(out, func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// Events returns what happened to a kind from a position on.
func (s *Server) Events(gk schema.GroupKind, from int) []Event { return s.kind(gk).log[from:] }

// Position returns how much has happened to a kind.
func (s *Server) Position(gk schema.GroupKind) int { return len(s.kind(gk).log) }

// withStatus are the kinds without a generation: those that have no status subresource.
func withoutGeneration(k Key) bool { return k.Group == "" || k.Kind == "ControllerRevision" }

// startStatus are the kinds whose CRDs default the status (kubebuilder:default), as Flux's do.
var startStatus = map[string]bool{
	"AddonSet": true, "AddonDelivery": true, "ClusterRegistration": true, "HelmRelease": true, "Kustomization": true, "Team": true,
}

// put stores an object in place of the present one, with everything that the API server fills in. owner is nil if the
// owners do not change.
func (s *Server) put(k Key, actor, verb string, next Object, o owners) Object {
	kd := s.kind(k.GroupKind())
	there := kd.objects[k.name()]
	m := metadata(next)
	var old Object
	if there == nil {
		s.uids++
		m["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", s.uids)
		m["creationTimestamp"] = s.Clock.Now().UTC().Format(time.RFC3339)
		if !withoutGeneration(k) {
			m["generation"] = int64(1)
		}
		if _, has := next["status"]; !has && startStatus[k.Kind] {
			next["status"] = Object{"observedGeneration": int64(-1)}
		}
		there = &stored{}
		kd.objects[k.name()] = there
	} else {
		old = there.object
		keepSystemFields(old, next)
		if !withoutGeneration(k) && (specChanged(old, next) || deletedNow(old, next)) {
			m["generation"] = generation(old) + 1
		}
		there.owners = o
		if equal(old, next) {
			s.tell(Write{Key: k, Actor: actor, Verb: verb, Old: old, New: old})
			return old
		}
	}
	there.owners = o
	s.version++
	m["resourceVersion"] = fmt.Sprint(s.version)
	if deleted(next) && len(finalizers(next)) == 0 {
		delete(kd.objects, k.name())
		kd.log = append(kd.log, Event{Old: next})
		s.tell(Write{Key: k, Actor: actor, Verb: verb, Old: old, Changed: true})
		return next
	}
	there.object = next
	kd.log = append(kd.log, Event{Old: old, New: next})
	s.tell(Write{Key: k, Actor: actor, Verb: verb, Old: old, New: next, Changed: true})
	return next
}

func (s *Server) admit(a Attempt) error {
	if s.Admit == nil {
		return nil
	}
	return s.Admit(a)
}

func (s *Server) tell(w Write) {
	w.At = s.Clock.Now()
	if s.OnWrite != nil {
		s.OnWrite(w)
	}
}

// Create makes an object that does not exist.
func (s *Server) Create(actor string, k Key, obj Object) (Object, error) {
	if s.Get(k) != nil {
		return nil, apierrors.NewAlreadyExists(k.resource(), k.Name)
	}
	if err := s.takes(k); err != nil {
		return nil, err
	}
	next := Clone(obj)
	for _, f := range []string{"uid", "resourceVersion", "deletionTimestamp", "generation", "managedFields"} {
		delete(metadata(next), f)
	}
	drop(next)
	if err := s.admit(Attempt{Key: k, Actor: actor, Verb: "CREATE", New: next}); err != nil {
		return nil, err
	}
	o := owners{}
	o.update(actor, nil, next)
	return s.put(k, actor, "create", next, o), nil
}

// takes returns an error if nothing new may be made in a namespace.
func (s *Server) takes(k Key) error {
	if k.Namespace == "" {
		return nil
	}
	if ns := s.Get(Key{Kind: "Namespace", Name: k.Namespace}); ns == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, k.Namespace)
	} else if deleted(ns) {
		err := apierrors.NewForbidden(k.resource(), k.Name,
			fmt.Errorf("unable to create new content in namespace %s because it is being terminated", k.Namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
		return err
	}
	return nil
}

// Update puts next in the place of an object. With status, only its status changes; without, all but the status.
func (s *Server) Update(actor, verb string, k Key, next Object, status bool) (Object, error) {
	next = Clone(next)
	drop(next)
	return s.update(actor, verb, k, next, status)
}

// update is Update of an object that may be changed. It may share parts with what is stored.
func (s *Server) update(actor, verb string, k Key, next Object, status bool) (Object, error) {
	there := s.kind(k.GroupKind()).objects[k.name()]
	if there == nil {
		return nil, apierrors.NewNotFound(k.resource(), k.Name)
	}
	old := there.object
	m := metadata(next)
	if v, _ := m["resourceVersion"].(string); v != "" && v != metadata(old)["resourceVersion"] {
		return nil, apierrors.NewConflict(k.resource(), k.Name,
			fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if v, _ := m["uid"].(string); v != "" && v != metadata(old)["uid"] {
		return nil, apierrors.NewConflict(k.resource(), k.Name,
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", v, metadata(old)["uid"]))
	}
	if status {
		changed := edited(old)
		changed["status"] = next["status"]
		if next["status"] == nil {
			delete(changed, "status")
		}
		next = changed
	} else if old["status"] == nil {
		if !withoutGeneration(k) {
			delete(next, "status")
		}
	} else {
		next["status"] = old["status"]
	}
	if deleted(old) {
		// Finalizers may be removed, and none may be added.
		for _, f := range finalizers(next) {
			if !slices.Contains(finalizers(old), f) {
				return nil, apierrors.NewInvalid(schema.GroupKind{Group: k.Group, Kind: k.Kind}, k.Name, nil)
			}
		}
	}
	keepSystemFields(old, next)
	attempt := Attempt{Key: k, Actor: actor, Verb: "UPDATE", Old: old, New: next}
	if status {
		attempt.Subresource = "status"
	}
	if err := s.admit(attempt); err != nil {
		return nil, err
	}
	if status { // of which no owners are kept
		return s.put(k, actor, verb, next, there.owners), nil
	}
	o := there.owners.clone()
	o.update(actor, old, next)
	return s.put(k, actor, verb, next, o), nil
}

// Patch applies a JSON merge patch.
func (s *Server) Patch(actor string, k Key, patch []byte, status bool) (Object, error) {
	old := s.Get(k)
	if old == nil {
		return nil, apierrors.NewNotFound(k.resource(), k.Name)
	}
	var p Object
	if err := unmarshal(patch, &p); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	next := edited(old)
	delete(metadata(next), "resourceVersion") // whoever wants a precondition says so
	merge(next, p)
	return s.update(actor, "patch", k, next, status)
}

// Preconditions of a deletion; an empty field requires nothing.
type Preconditions struct{ UID, ResourceVersion string }

// Delete marks an object, which goes at once if it has no finalizer.
func (s *Server) Delete(actor string, k Key, p Preconditions) error {
	there := s.kind(k.GroupKind()).objects[k.name()]
	if there == nil {
		return apierrors.NewNotFound(k.resource(), k.Name)
	}
	m := metadata(there.object)
	if p.UID != "" && p.UID != m["uid"] || p.ResourceVersion != "" && p.ResourceVersion != m["resourceVersion"] {
		return apierrors.NewConflict(k.resource(), k.Name,
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", p.UID, m["uid"]))
	}
	if err := s.admit(Attempt{Key: k, Actor: actor, Verb: "DELETE", Old: there.object}); err != nil {
		return err
	}
	if deleted(there.object) {
		return nil
	}
	next := edited(there.object)
	metadata(next)["deletionTimestamp"] = s.Clock.Now().UTC().Format(time.RFC3339)
	s.put(k, actor, "delete", next, there.owners)
	return nil
}

// Apply is server-side apply. obj holds what the actor wants to own.
func (s *Server) Apply(actor string, k Key, obj Object, force bool) (Object, error) {
	config := Clone(obj)
	m := metadata(config)
	uid, _ := m["uid"].(string)
	version, _ := m["resourceVersion"].(string)
	for _, f := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		delete(m, f)
	}
	drop(config)
	there := s.kind(k.GroupKind()).objects[k.name()]
	if there == nil {
		if uid != "" || version != "" {
			return nil, apierrors.NewConflict(k.resource(), k.Name,
				fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
		}
		if err := s.takes(k); err != nil {
			return nil, err
		}
		o := owners{}
		next := Object{}
		if _, err := o.apply(actor, next, config, true); err != nil {
			return nil, err
		}
		if err := s.admit(Attempt{Key: k, Actor: actor, Verb: "CREATE", New: next}); err != nil {
			return nil, err
		}
		return s.put(k, actor, "apply", next, o), nil
	}
	was := metadata(there.object)
	if uid != "" && uid != was["uid"] || version != "" && version != was["resourceVersion"] {
		return nil, apierrors.NewConflict(k.resource(), k.Name,
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, was["uid"]))
	}
	next := Clone(there.object)
	o := there.owners.clone()
	conflicts, err := o.apply(actor, next, config, force)
	if err != nil {
		return nil, err
	}
	if len(conflicts) > 0 {
		return nil, conflictError(k, conflicts)
	}
	if deleted(there.object) {
		for _, f := range finalizers(next) {
			if !slices.Contains(finalizers(there.object), f) {
				return nil, apierrors.NewInvalid(schema.GroupKind{Group: k.Group, Kind: k.Kind}, k.Name, nil)
			}
		}
	}
	keepSystemFields(there.object, next)
	if err := s.admit(Attempt{Key: k, Actor: actor, Verb: "UPDATE", Old: there.object, New: next}); err != nil {
		return nil, err
	}
	return s.put(k, actor, "apply", next, o), nil
}
