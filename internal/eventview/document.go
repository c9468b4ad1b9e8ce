// SPDX-License-Identifier: Apache-2.0

package eventview

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Document is what `chandler events -o json` writes.
type Document struct {
	Items []Happened `json:"items" about:"the newest last"`
}

// Happened is an event; of an add-on it may be a condition that changed, or a Helm release too.
type Happened struct {
	Time    time.Time `json:"time" about:"when it happened last"`
	Object  string    `json:"object" about:"kind and namespace/name"`
	What    string    `json:"what" about:"reason of the event, or what changed"`
	Message string    `json:"message"`
	Warning bool      `json:"warning,omitempty"`
	Count   int32     `json:"count,omitempty" about:"how often it happened, if more than once"`
}

// Of returns an event for a program.
func Of(e *corev1.Event) Happened {
	of := e.InvolvedObject
	h := Happened{Time: At(e).UTC(), Object: called(of.Kind, of.Namespace, of.Name), What: e.Reason, Message: e.Message,
		Warning: e.Type == corev1.EventTypeWarning}
	if n := Count(e); n > 1 {
		h.Count = n
	}
	return h
}

// Happened returns an entry for a program.
func (e *Entry) Happened() Happened {
	return Happened{Time: e.At.UTC(), Object: e.Object, What: e.What, Message: e.Text, Warning: e.Bad}
}
