// SPDX-License-Identifier: Apache-2.0

package planned

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/memory"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// Memory holds which deliveries of a cluster were looked at last, and the result of each, without the bodies: most events change nothing
// that is rendered.
type Memory struct {
	of memory.Map[types.NamespacedName, results]
}

// results are those of a cluster, by delivery; nil for one that is to be rendered again. They are read and changed in an Update alone: to
// copy them for each result of a cluster with a hundred deliveries costs more than to render some.
type results map[types.NamespacedName]*remembered

type remembered struct {
	*render.Result
	fingerprint string
	// versions are the resourceVersions of the documents that the result depends on.
	versions []string
}

// change changes what is remembered of a cluster.
func (m *Memory) change(cluster types.NamespacedName, do func(results)) {
	m.of.Update(cluster, func(was results, _ bool) (results, bool) {
		if was == nil {
			was = results{}
		}
		do(was)
		return was, len(was) > 0
	})
}

func (m *Memory) get(cluster, delivery types.NamespacedName, fingerprint string, now time.Time) *remembered {
	var e *remembered
	m.of.Update(cluster, func(all results, known bool) (results, bool) {
		e = all[delivery]
		return all, known
	})
	if e == nil || e.fingerprint != fingerprint || !e.Until.IsZero() && !now.Before(e.Until) {
		return nil
	}
	return e
}

func (m *Memory) put(cluster, delivery types.NamespacedName, fingerprint string, result *render.Result, versions []string) {
	slim := *result
	slim.Objects = make([]flux.Object, len(result.Objects))
	for i := range result.Objects {
		slim.Objects[i] = result.Objects[i].Skeleton()
	}
	m.change(cluster, func(all results) { all[delivery] = &remembered{&slim, fingerprint, versions} })
}

// Kept returns how many deliveries' renderings are remembered.
func (m *Memory) Kept() (kept int) {
	m.of.DeleteFunc(func(_ types.NamespacedName, all results) bool {
		for _, e := range all {
			if e != nil {
				kept++
			}
		}
		return false
	})
	return kept
}

// Look notes which deliveries of a cluster are looked at now, and returns those that are not any more, of which it forgets all.
func (m *Memory) Look(cluster types.NamespacedName, now []types.NamespacedName) (gone []types.NamespacedName) {
	m.of.Update(cluster, func(was results, _ bool) (results, bool) {
		is := results{}
		for _, delivery := range now {
			is[delivery] = was[delivery] // nil if there is no result
		}
		for delivery := range was {
			if _, looked := is[delivery]; !looked {
				gone = append(gone, delivery)
			}
		}
		return is, len(is) > 0
	})
	return gone
}

// Drop has a delivery rendered again.
func (m *Memory) Drop(cluster, delivery types.NamespacedName) {
	m.change(cluster, func(all results) {
		if _, looked := all[delivery]; looked {
			all[delivery] = nil
		}
	})
}

// Forget has a cluster rendered again, so that everything that it needs is made again.
func (m *Memory) Forget(cluster types.NamespacedName) { m.ForgetFrom("", cluster) }

// ForgetFrom has what a namespace delivers to a cluster rendered again; "" for all namespaces.
func (m *Memory) ForgetFrom(namespace string, cluster types.NamespacedName) {
	m.change(cluster, func(all results) {
		for delivery := range all {
			if namespace == "" || delivery.Namespace == namespace {
				all[delivery] = nil
			}
		}
	})
}
