// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

func unmarshal(raw []byte, into any) error { return json.Unmarshal(raw, into) }

// owners says who has set which fields: by manager, separately for apply and update. A field is a leaf: a value that
// is no object, a list as a whole, an empty object, or one finalizer.
type owners map[manager]map[string]bool

type manager struct {
	name    string
	applied bool
}

func (o owners) clone() owners {
	out := make(owners, len(o))
	for m, fields := range o {
		copied := make(map[string]bool, len(fields))
		for f := range fields {
			copied[f] = true
		}
		out[m] = copied
	}
	return out
}

const separator = "\x00"

// finalizerField is the list that is a set.
const finalizerField = "metadata" + separator + "finalizers"

// leaves returns the fields of an object by path. What names the object, and what the API server writes, is nobody's.
func leaves(o Object) map[string]any {
	out := map[string]any{}
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		if m, ok := v.(Object); ok && len(m) > 0 {
			for f, x := range m {
				walk(prefix+separator+f, x)
			}
			return
		}
		if list, ok := v.([]any); ok && prefix == finalizerField {
			for _, x := range list {
				out[prefix+separator+fmt.Sprint(x)] = true
			}
			return
		}
		out[prefix] = v
	}
	for f, v := range o {
		switch f {
		case "apiVersion", "kind", "status":
		case "metadata":
			for f, v := range v.(Object) {
				switch f {
				case "labels", "annotations", "finalizers", "ownerReferences":
					walk("metadata"+separator+f, v)
				}
			}
		default:
			walk(f, v)
		}
	}
	return out
}

// update notes what an actor has changed in another way than by apply.
func (o owners) update(actor string, old, next Object) {
	before, after := map[string]any{}, leaves(next)
	if old != nil {
		before = leaves(old)
	}
	mine := manager{actor, false}
	for path, v := range after {
		was, had := before[path]
		if had && equal(was, v) {
			continue
		}
		for m := range o {
			delete(o[m], path)
		}
		if o[mine] == nil {
			o[mine] = map[string]bool{}
		}
		o[mine][path] = true
	}
	for path := range before {
		if _, has := after[path]; !has {
			for m := range o {
				delete(o[m], path)
			}
		}
	}
	o.tidy()
}

// Adopt makes what an actor has written of an object's spec what it has applied, as kustomize-controller does with
// what kubectl has created.
func (s *Server) Adopt(actor string, k Key) {
	there := s.kind(k.GroupKind()).objects[k.name()]
	if there == nil {
		return
	}
	o := there.owners.clone()
	wrote, applied := o[manager{actor, false}], o[manager{actor, true}]
	if applied == nil {
		applied = map[string]bool{}
	}
	for path := range wrote {
		if strings.HasPrefix(path, "spec"+separator) {
			applied[path] = true
			delete(wrote, path)
		}
	}
	o[manager{actor, true}] = applied
	o.tidy()
	there.owners = o
}

func (o owners) tidy() {
	for m, fields := range o {
		if len(fields) == 0 {
			delete(o, m)
		}
	}
}

// conflict is a field that another manager has set to another value.
type conflict struct{ manager, field string }

// apply merges a configuration into an object, and removes what the actor applied before and does not apply any more.
func (o owners) apply(actor string, into, config Object, force bool) ([]conflict, error) {
	for _, f := range []string{"apiVersion", "kind"} {
		into[f] = config[f]
	}
	name := metadata(config)
	m := metadata(into)
	for _, f := range []string{"name", "namespace"} {
		if name[f] != nil {
			m[f] = name[f]
		}
	}
	mine := manager{actor, true}
	live, want := leaves(into), leaves(config)
	for path, v := range want {
		if m, ok := v.(Object); ok && len(m) == 0 {
			if _, object := at(into, strings.Split(path, separator)).(Object); object {
				live[path] = v // to own an object says nothing of what is in it
			}
		}
	}
	var conflicts []conflict
	for path, v := range want {
		is, there := live[path]
		if there && equal(is, v) {
			continue
		}
		for owner := range o {
			if owner != mine && o[owner][path] {
				conflicts = append(conflicts, conflict{owner.name, path})
			}
		}
	}
	if len(conflicts) > 0 && !force {
		slices.SortFunc(conflicts, func(a, b conflict) int { return strings.Compare(a.field, b.field) })
		return conflicts, nil
	}
	for path, v := range want {
		is, there := live[path]
		if there && equal(is, v) {
			continue
		}
		for owner := range o {
			if owner != mine {
				delete(o[owner], path)
			}
		}
		set(into, strings.Split(path, separator), v)
	}
	for path := range o[mine] {
		if _, keeps := want[path]; keeps {
			continue
		}
		shared := false
		for owner := range o {
			shared = shared || owner != mine && o[owner][path]
		}
		if !shared {
			unset(into, strings.Split(path, separator))
		}
	}
	o[mine] = map[string]bool{}
	for path := range want {
		o[mine][path] = true
	}
	o.tidy()
	return nil, nil
}

func at(o any, path []string) any {
	for _, f := range path {
		m, ok := o.(Object)
		if !ok {
			return nil
		}
		o = m[f]
	}
	return o
}

func set(into Object, path []string, v any) {
	if len(path) == 3 && path[0] == "metadata" && path[1] == "finalizers" {
		m := metadata(into)
		list := slices.Clone(finalizers(into))
		if !slices.Contains(list, any(path[2])) {
			list = append(list, path[2])
		}
		m["finalizers"] = list
		return
	}
	for _, f := range path[:len(path)-1] {
		next, ok := into[f].(Object)
		if !ok {
			next = Object{}
			into[f] = next
		}
		into = next
	}
	into[path[len(path)-1]] = v
}

// unset removes a field, and the objects around it that are empty then.
func unset(from Object, path []string) {
	if len(path) == 3 && path[0] == "metadata" && path[1] == "finalizers" {
		list := slices.DeleteFunc(slices.Clone(finalizers(from)), func(f any) bool { return f == path[2] })
		if len(list) == 0 {
			delete(metadata(from), "finalizers")
			return
		}
		metadata(from)["finalizers"] = list
		return
	}
	if len(path) == 1 {
		if m, ok := from[path[0]].(Object); !ok || len(m) == 0 {
			delete(from, path[0])
		}
		return
	}
	next, ok := from[path[0]].(Object)
	if !ok {
		return
	}
	unset(next, path[1:])
	if len(next) == 0 && path[0] != "metadata" {
		delete(from, path[0])
	}
}

// conflictError is the API server's (structured-merge-diff's text of it).
func conflictError(k Key, conflicts []conflict) error {
	var causes []metav1.StatusCause
	text := fmt.Sprintf("Apply failed with %d conflicts:", len(conflicts))
	for _, c := range conflicts {
		field := "." + strings.ReplaceAll(c.field, separator, ".")
		text += fmt.Sprintf("\n- conflict with %q: %s", c.manager, field)
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict,
			Message: fmt.Sprintf("conflict with %q", c.manager), Field: field})
	}
	err := apierrors.NewApplyConflict(causes, text)
	err.ErrStatus.Details = &metav1.StatusDetails{Name: k.Name, Group: k.Group, Kind: k.Kind, Causes: causes}
	return err
}
