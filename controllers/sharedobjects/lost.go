// SPDX-License-Identifier: Apache-2.0

package sharedobjects

import (
	"encoding/json"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxLost is how many bytes of deleted objects are remembered for one namespace, about: some thousands of charts and sources. Whoever may
// write the hub's label there can make and delete objects as fast as the API server lets him.
const maxLost = 4 << 20

// lost is an object that was deleted, as it was, and when that was seen.
type lost struct {
	client.Object
	at    time.Time
	bytes int
}

// lostObjects are those that may have to be made again. Of each namespace the oldest are forgotten first. The zero value is ready for use.
type lostObjects struct {
	objects map[id]lost
	bytes   map[string]int // by namespace
}

// note remembers an object that was deleted.
func (l *lostObjects) note(key id, obj client.Object, now time.Time) {
	if l.objects == nil {
		l.objects, l.bytes = map[id]lost{}, map[string]int{}
	}
	l.forget(key)
	raw, err := json.Marshal(obj)
	if err != nil || len(raw) > maxLost { // it could not be made again
		return
	}
	for l.bytes[key.Namespace]+len(raw) > maxLost {
		l.forget(l.oldest(key.Namespace))
	}
	l.objects[key] = lost{obj, now, len(raw)}
	l.bytes[key.Namespace] += len(raw)
}

// oldest returns which object of a namespace was deleted first.
func (l *lostObjects) oldest(namespace string) (first id) {
	var at time.Time
	for key, was := range l.objects {
		if key.Namespace == namespace && (at.IsZero() || was.at.Before(at)) {
			first, at = key, was.at
		}
	}
	return first
}

// forget drops what is remembered of an object.
func (l *lostObjects) forget(key id) {
	was, ok := l.objects[key]
	if !ok {
		return
	}
	delete(l.objects, key)
	if l.bytes[key.Namespace] -= was.bytes; l.bytes[key.Namespace] == 0 {
		delete(l.bytes, key.Namespace)
	}
}
