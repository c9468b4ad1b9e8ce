// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// An add-on may read a Secret that lies beside its cluster (from: Cluster). Its owner shares the Secret with flux-system, or not.

// besideVerbs are the steps about that.
func besideVerbs() map[string]verb {
	return map[string]verb{
		"reads": ofAddon("true|false", 1, func(s *set, a *addon, f []string) { a.reads = f[0] == "true" && s.home == "" }),
		"values": named("VALUE|- [shared]", 1, func(w *World, c *cluster, f []string) {
			if f[0] == "-" {
				w.remove(c.values())
				return
			}
			annotations := apiserver.Object{}
			if len(f) > 1 {
				annotations[hubv1.ShareAnnotation] = "flux-system"
			}
			_, err := w.server.Apply("user", c.values(), apiserver.Object{"apiVersion": "v1", "kind": "Secret",
				"metadata": apiserver.Object{"namespace": c.namespace, "name": c.values().Name, "annotations": annotations},
				"data":     apiserver.Object{"token": c.value(f[0]), "host": c.value(f[0] + " host"), "unused": c.value("unused")},
			}, true)
			w.refused(err)
		}),
	}
}

// values is the Secret with a cluster's values.
func (c *cluster) values() apiserver.Key { return keyOf("Secret", c.namespace, c.name+"-values") }

// value returns a value of a cluster's, as a Secret has it. No two clusters have the same.
func (c *cluster) value(text string) string {
	return base64.StdEncoding.EncodeToString([]byte("beside " + c.name + ": " + text))
}

// readsValues are the entries of valuesFrom of an add-on that reads them: add-ons of one set read different keys. Without them the chart
// has its own.
func (a *addon) readsValues() []any {
	key := "host"
	if a.name == "hello" {
		key = "token"
	}
	return []any{apiserver.Object{"kind": "Secret", "name": "<< cluster.name >>-values", "valuesKey": key, "targetPath": key,
		"optional": true, "from": "Cluster"}}
}

// noteShared is called after every write, and notes until when a cluster's values are shared: what the hub has just read may yet be
// written.
func (w *World) noteShared(write apiserver.Write) {
	if write.Key.Kind != "Secret" || write.Old == nil || !slices.Contains(sharedWith(write.Old), "flux-system") {
		return
	}
	w.sharedUntil[write.Key] = w.clock.Now()
}

func sharedWith(o apiserver.Object) []string {
	text, _ := nested(o, "metadata", "annotations", hubv1.ShareAnnotation).(string)
	return strings.Split(text, ",")
}

// checkBeside: what lies beside a cluster comes to no namespace with which it is not shared, and nothing that is not used comes anywhere.
func (w *World) checkBeside(write apiserver.Write) {
	data, _ := nested(write.New, "data").(map[string]any)
	for key, v := range data {
		text, _ := v.(string)
		raw, _ := base64.StdEncoding.DecodeString(text)
		name, is := strings.CutPrefix(string(raw), "beside ")
		if !is {
			continue
		}
		name, _, _ = strings.Cut(name, ":")
		c := w.cluster(name)
		late := w.clock.Since(w.sharedUntil[c.values()]) < time.Minute
		if ns := write.Key.Namespace; ns != "flux-system" || !late && !slices.Contains(sharedWith(w.server.Get(c.values())), ns) {
			w.violated("secrets", "a value beside %s comes to namespace %s, with which it is not shared", c.name, ns)
		}
		if key == "unused" {
			w.violated("secrets", "key %s of what lies beside %s is copied, and nothing uses it", key, c.name)
		}
	}
}

// checkCopies: a copy of what lies beside a cluster is as new as the original, and is there exactly as long as something reads it and it is
// shared.
func (w *World) checkCopies() {
	copies := map[string]apiserver.Object{}
	for _, o := range w.server.List(kinds["Secret"].GroupKind(), "") {
		if apiserver.Label(o, hubv1.CopyLabel) != identity.ValuesCopy {
			continue
		}
		name := fmt.Sprint(nested(o, "metadata", "namespace"), "/", nested(o, "metadata", "name"))
		copies[name] = o
		if !w.isRead(o) {
			w.violated("copies", "nothing reads %s, and it stays", name)
		}
	}
	for k := range w.flux.due {
		o := w.server.Get(k)
		for name, key := range readBy(o) {
			c := w.registrationOf(o)
			if c == nil || !w.serves(c) || k.Namespace == c.namespace {
				continue
			}
			there, original := copies[k.Namespace+"/"+name], w.server.Get(c.values())
			shared := slices.Contains(sharedWith(original), k.Namespace)
			switch {
			case there != nil && !shared && original != nil:
				w.violated("copies", "%s/%s stays, and its original is not shared", k.Namespace, name)
			case shared && there == nil && nested(o, "metadata", "deletionTimestamp") == nil && !w.unrendered(c, o):
				w.violated("copies", "%s/%s is read by %s, and is not there", k.Namespace, name, k.Name)
			case shared && there != nil && nested(there, "data", key) != nested(original, "data", key):
				w.violated("copies", "%s/%s is not as its original", k.Namespace, name)
			}
		}
	}
}

// unrendered returns whether nothing renders a Flux object any more: its add-on does not render, or has gone from its set, be it under
// another name that cannot take the object. The object stays as it is, and what has been shared since is not copied for it.
func (w *World) unrendered(c *cluster, o apiserver.Object) bool {
	s, addon := w.sets[apiserver.Label(o, hubv1.AddonSetLabel)], apiserver.Label(o, hubv1.AddonLabel)
	return s != nil && (s.addon(addon) == nil || w.failsHere(c, s, addon))
}

// isRead returns whether a Flux object reads a copy.
func (w *World) isRead(o apiserver.Object) bool {
	for k := range w.flux.due {
		_, reads := readBy(w.server.Get(k))[nested(o, "metadata", "name").(string)]
		if reads && k.Namespace == nested(o, "metadata", "namespace") {
			return true
		}
	}
	return false
}

// readBy returns the names of the Secrets with values of a HelmRelease, and which key of each it reads.
func readBy(o apiserver.Object) map[string]string {
	out := map[string]string{}
	list, _ := nested(o, "spec", "valuesFrom").([]any)
	for _, from := range list {
		name, _ := nested(from, "name").(string)
		out[name], _ = nested(from, "valuesKey").(string)
	}
	return out
}
