// SPDX-License-Identifier: Apache-2.0

package fluxspec

import (
	"slices"
	"strings"
)

// Allows returns whether a URL matches one of the patterns of the Team. All URLs do if there are none.
//
// In a pattern, a * at the end of the path stands for any text, and a * that is a whole label of the host for one label.
// Everything else is compared byte for byte: scheme, user, host, port, path. A URL has many spellings and Flux, Git and
// the server each read it in their own way, so what * stands for may hold only characters that all of them read alike, and
// a path with a step up or an empty step matches nothing.
func (r *TeamRules) Allows(url string) bool {
	return r == nil || len(r.Allow) == 0 || slices.ContainsFunc(r.Allow, func(p string) bool { return matches(p, url) })
}

// CheckPattern returns what is wrong with a pattern of URLs; "" if nothing. A wrong pattern matches nothing.
func CheckPattern(pattern string) string {
	u, ok := cutURL(pattern)
	switch {
	case !ok:
		return "is not a URL with scheme and host, such as https://git.example.org/team/*"
	case strings.Contains(u.scheme, "*") || strings.Contains(u.user, "*"):
		return "has a * in its scheme or user; it may stand in the host and at the end"
	case strings.Contains(strings.TrimSuffix(u.path, "*"), "*"):
		return "has a * within its path; it may stand at the end"
	}
	labels := strings.Split(u.host, ".")
	literal := false
	for _, l := range labels {
		if l != "*" && strings.Contains(l, "*") {
			return "has a * that is only a part of a label of the host; it stands for a whole label, or after a / for the rest of the URL"
		}
		literal = literal || l != "*"
	}
	if !literal {
		return "names no host; for any URL, leave out the list"
	}
	return ""
}

// parts of a URL as they are written. user is all before an @ of the authority, with it; host has the port.
type parts struct{ scheme, user, host, path string }

// cutURL cuts a URL into its parts. It returns false if the text is not a URL, or one that some program may cut in another
// way.
func cutURL(s string) (parts, bool) {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '\\' {
			return parts{}, false
		}
	}
	var out parts
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme == "" {
		return parts{}, false
	}
	out.scheme, out.host = scheme, rest
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		out.host, out.path = rest[:i], rest[i:]
	}
	if user, host, found := strings.Cut(out.host, "@"); found {
		out.user, out.host = user+"@", host
	}
	if out.host == "" || strings.ContainsAny(out.host, "@?#%") {
		return parts{}, false
	}
	if out.path == "" {
		return out, true
	}
	for i, step := range strings.Split(out.path[1:], "/") {
		if step == "." || step == ".." || step == "" && i < strings.Count(out.path, "/")-1 {
			return parts{}, false
		}
	}
	return out, true
}

func matches(pattern, url string) bool {
	p, _ := cutURL(pattern)
	u, ok := cutURL(url)
	if !ok || CheckPattern(pattern) != "" || p.scheme != u.scheme || p.user != u.user || !matchesHost(p.host, u.host) {
		return false
	}
	before, any := strings.CutSuffix(p.path, "*")
	if !any {
		return p.path == u.path
	}
	rest, ok := strings.CutPrefix(u.path, before)
	return ok && strings.Trim(rest, plainText+"/.~+@:,=_") == ""
}

const plainText = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

func matchesHost(pattern, host string) bool {
	want, labels := strings.Split(pattern, "."), strings.Split(host, ".")
	return slices.EqualFunc(want, labels, func(w, l string) bool {
		if w != "*" {
			return w == l
		}
		return l != "" && strings.Trim(l, plainText) == "" && l[0] != '-' && l[len(l)-1] != '-'
	})
}
