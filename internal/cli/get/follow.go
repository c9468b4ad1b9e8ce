// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/cli/terminal"
)

// follow lists, and then writes each line that changes. When the API server has forgotten where it was, it lists again.
func (g *getter) follow(ctx context.Context, q question) error {
	for first := true; ctx.Err() == nil; first = false {
		there := map[string]bool{}
		version, err := q.Pages(ctx, func(objects []client.Object) error {
			for _, o := range slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool { return !q.keep(o) }) {
				for _, it := range g.kind.items(g.Options, o) {
					there[it.row.Key] = true
				}
			}
			return g.changes(q, objects)
		})
		if err == nil && first && g.count == 0 {
			err = g.nothing(ctx, q, len(there))
		}
		if err == nil {
			maps.DeleteFunc(g.seen, func(key, _ string) bool { return !there[key] })
			err = q.Follow(ctx, version, func(o client.Object, deleted bool) error {
				if deleted {
					return g.gone(q, o)
				}
				return g.changes(q, []client.Object{o})
			})
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// nothing says that there is nothing to show yet. A name that does not exist is an error.
func (g *getter) nothing(ctx context.Context, q question, there int) error {
	if q.arg != "" && there == 0 {
		if err := g.absent(ctx, q); err != nil {
			return err
		}
	}
	if err := g.absentSet(ctx); err != nil {
		return err
	}
	terminal.Say(g.ErrOut, "%s", g.none())
	return nil
}

// changes writes the rows that say something else than before.
func (g *getter) changes(q question, objects []client.Object) error {
	var items []item
	for _, o := range objects {
		if !q.keep(o) {
			continue
		}
		for _, it := range g.items(o) {
			if told := it.row.Told(); g.seen[it.row.Key] != told {
				g.seen[it.row.Key] = told
				items = append(items, it)
			}
		}
	}
	return g.write(items)
}

// gone writes the rows of an object that does not exist any more.
func (g *getter) gone(q question, o client.Object) error {
	var items []item
	for _, it := range g.kind.items(g.Options, o) {
		if !q.keep(o) || g.seen[it.row.Key] == "" {
			continue
		}
		delete(g.seen, it.row.Key)
		it.row.Gone()
		items = append(items, it)
	}
	return g.write(items)
}
