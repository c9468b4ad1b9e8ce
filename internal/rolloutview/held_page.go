// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"errors"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/status"
)

// errInexact says that a list of held removals is not what the hub's hash is of.
var errInexact = errors.New("this is not exactly what the hub holds: it knows more, or is reckoning anew. Look again; if it stays so, " +
	"approve by --hash what the set says")

// HeldPage shows exactly what the removal guard of a set holds.
func HeldPage(in *Input) *page.Page {
	p, held := &page.Page{}, in.Set.Status.HeldRemovals
	fields := []page.Field{{Name: "AddonSet", Text: in.key()}}
	if held == nil {
		p.Fields(append(fields, page.Field{Name: "Held", Text: "nothing"}))
		return p
	}
	text := status.Count(held.Count, "cluster")
	if held.Since != nil {
		text += ", since " + ago(held.Since.Time, in.Now)
	}
	p.Fields(append(fields, page.Field{Name: "Held", Text: text}, page.Field{Name: "Hash", Text: held.Hash}))
	list, exact := Held(in)
	if !exact {
		p.Notes(append(append([]string{}, in.Notes...), errInexact.Error()))
	}
	var rows [][]string
	for _, h := range list {
		for i := range h.Losses {
			a := &h.Losses[i]
			rows = append(rows, []string{h.Delivery.Spec.RegistrationRef.Key().String(), excerpt.Line(a.Name), page.Dash(excerpt.Line(a.Version)),
				fate(&h, a)})
		}
	}
	p.Table("", []string{"CLUSTER", "ADDON", "VERSION", "WOULD BE"}, rows)
	return p
}

// fate says what becomes of an add-on.
func fate(h *HeldRemoval, a *hubv1.AddonStatus) string {
	switch {
	case h.Whole:
		return "uninstalled: the whole set leaves the cluster"
	case a.Reason == hubv1.ReinstallReason:
		return "uninstalled, and installed again: " + excerpt.Line(a.Message)
	}
	return "uninstalled: the set does not deliver it there any more"
}

// ApproveRemovals approves what the removal guard of a set holds. hash is that of what somebody has seen.
func ApproveRemovals(in *Input, hash string) (*Order, error) {
	held := in.Set.Status.HeldRemovals
	switch {
	case held == nil:
		return nil, in.refuse("its removal guard holds nothing; nothing is approved")
	case held.Hash != hash:
		return nil, in.refuse("what is held has changed meanwhile, to %s; nothing is approved. Look again: chandler removals list %s/%s",
			held.Hash, in.Set.Namespace, in.Set.Name)
	case in.Set.Annotations[hubv1.ApproveRemovalAnnotation] == hash:
		return &Order{Says: in.says("it is approved already")}, nil
	}
	return in.annotate(hubv1.ApproveRemovalAnnotation, hash, "what is held on %s is approved, and happens now",
		status.Count(held.Count, "cluster")), nil
}

// MayApprove returns the hash of what is held, if that is exactly what a page has shown.
func MayApprove(in *Input) (hash string, err error) {
	if in.Set.Status.HeldRemovals == nil {
		return "", in.refuse("its removal guard holds nothing")
	}
	if _, exact := Held(in); !exact {
		return "", in.refuse("%s", errInexact)
	}
	return in.Set.Status.HeldRemovals.Hash, nil
}
