// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
)

// maxExpression is how much of an expression a message shows.
const maxExpression = 120

// unknown reports the values of a set that rest on facts about the cluster that the files do not say.
func (r *renderer) unknown(m *member, d *delivery, out *Cluster) {
	type wants struct{ addon, why string }
	var order []wants
	values := map[wants][]string{}
	for _, u := range d.result.Unknown {
		value := fmt.Sprintf("%s (%s)", u.Path, excerpt.Of(u.Text, maxExpression))
		out.Unknown = append(out.Unknown, Note{d.String(), u.Addon, oneLine(value + ": " + u.Why)})
		w := wants{u.Addon, u.Why}
		if values[w] == nil {
			order = append(order, w)
		}
		values[w] = append(values[w], value)
	}
	for _, w := range order {
		what := "rest on it"
		if len(values[w]) == 1 {
			what = "rests on it"
		}
		r.warnings.add(m.String(), fmt.Sprintf("%s: add-on %q: %s. %s %s", d.about(), w.addon, w.why, status.List(values[w], 3), what))
	}
}

// about is what follows the cluster's name in a message.
func (d *delivery) about() string { return ", AddonSet " + d.String() }

// waits reports what is not rendered, since the files do not say whether or how it is.
func (r *renderer) waits(m *member, d *delivery, addon string, err error, out *Cluster) {
	r.warnings.add(m.String(), d.about()+": "+err.Error())
	if one, ok := err.(compile.Error); ok { //nolint:errorlint // made by render, never wrapped
		one.Addon = ""
		err = one
	}
	out.waiting = append(out.waiting, Note{d.String(), addon, oneLine(err.Error())})
	out.Unknown = append(out.Unknown, Note{d.String(), addon, oneLine(err.Error() + "; it is not shown")})
}

// failed reports why an add-on is not rendered.
func (r *renderer) failed(m *member, d *delivery, addon string, result *render.Result, out *Cluster) {
	errs := result.Failed[addon]
	if errs.Waits() {
		for _, e := range errs {
			r.waits(m, d, addon, e, out)
		}
		return
	}
	r.refuseOn(m.String(), d.about(), errorOf(errs))
	for _, e := range errs {
		e.Addon = ""
		out.Failed = append(out.Failed, Note{d.String(), addon, oneLine(e.Error())})
	}
}

// strictly makes an error of every warning.
func (r *Report) strictly() {
	r.Errors, r.Warnings = slices.Concat(r.Errors, r.Warnings), nil
}
