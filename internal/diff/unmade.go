// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"

	"github.com/chandler-hub/chandler/internal/inflate"
	"github.com/chandler-hub/chandler/internal/preview"
)

// trouble is why a side cannot be made.
type trouble struct {
	side string
	item *preview.Item
	err  error
}

func troubled(i int, item *preview.Item, err error) trouble {
	return trouble{[]string{"Old", "New"}[i], item, err}
}

// unmade notes why the objects of a change cannot be compared. A Flux object that stays as it is, with everything that is known of what it
// refers to, is not touched: it is only counted.
func (c *computing) unmade(one *Change, same bool, troubles []trouble, name string, labels map[string]string) {
	content := one.Kind == Content
	if content && same {
		c.unseen[troubles[0].err.Error()]++
		return
	}
	reason := "its objects are not known: "
	if content {
		reason = "what it refers to is not as before, and " + reason
	}
	text := func(t trouble) string {
		addon := t.item.Addon
		if t.item.CRDs {
			addon = "the CustomResourceDefinitions of " + addon
		}
		return preview.Note{Set: t.item.Set, Addon: addon, Reason: reason + t.err.Error()}.String()
	}
	if len(troubles) == 2 && text(troubles[0]) == text(troubles[1]) {
		troubles = []trouble{{"Both", troubles[1].item, troubles[1].err}}
	}
	for _, t := range troubles {
		c.problems.add(t.side, text(t), name, labels)
	}
}

// secrets notes that a Secret is not as before whose content decides what a Flux object that stays as it is puts on its cluster.
func (c *computing) secrets(item *preview.Item, name string, labels map[string]string) {
	for _, secret := range inflate.Secrets(item.Manifest) {
		if c.cmp.SecretChanged(item.Key.Namespace, secret) {
			note := preview.Note{Set: item.Set, Addon: item.Addon, Reason: fmt.Sprintf("Secret %s/%s is not as before, and what it holds is not "+
				"read: its objects are not known", item.Key.Namespace, secret)}
			c.problems.add("New", note.String(), name, labels)
		}
	}
}
