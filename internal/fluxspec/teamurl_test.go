// SPDX-License-Identifier: Apache-2.0

package fluxspec_test

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// TestAllows: a URL is allowed if every program that reads it ends up at the place that the pattern names.
func TestAllows(t *testing.T) {
	const team = "https://git.example.org/dev-team/*"
	cases := []struct {
		pattern, url string
		want         bool
	}{
		{team, "https://git.example.org/dev-team/app", true},
		{team, "https://git.example.org/dev-team/app.git", true},
		{team, "https://git.example.org/dev-team/a/b/~c_d+e.git", true},
		{team, "https://git.example.org/dev-team/", true},
		{team, "https://git.example.org/dev-team", false},
		{team, "https://git.example.org/dev-team-2/app", false},
		{team, "https://git.example.org/other/app", false},
		{team, "https://git.example.org", false},
		{team, "", false},
		{team, team, false}, // a pattern is no URL
		// steps up, in every spelling
		{team, "https://git.example.org/dev-team/../other/app", false},
		{team, "https://git.example.org/dev-team/..", false},
		{team, "https://git.example.org/dev-team/./../other", false},
		{team, "https://git.example.org/dev-team/%2e%2e/other/app", false},
		{team, "https://git.example.org/dev-team/..%2fother/app", false},
		{team, "https://git.example.org/dev-team/%252e%252e/other", false},
		{team, `https://git.example.org/dev-team/..\other`, false},
		{team, `https://git.example.org/dev-team\..\other`, false},
		{team, "https://git.example.org/dev-team/..;/other", false},
		{team, "https://git.example.org/dev-team//other/app", false},
		{team, "https://git.example.org//dev-team/app", false},
		// other hosts
		{team, "https://git.example.org.evil.example/dev-team/app", false},
		{team, "https://git.example.org@evil.example/dev-team/app", false},
		{team, "https://git.example.org:443@evil.example/dev-team/app", false},
		{team, `https://git.example.org\@evil.example/dev-team/app`, false},
		{team, `https://evil.example\git.example.org/dev-team/app`, false},
		{team, "https://evil.example#@git.example.org/dev-team/app", false},
		{team, "https://evil.example?@git.example.org/dev-team/app", false},
		{team, "https://evil.example/https://git.example.org/dev-team/app", false},
		{team, "https://git.example.org./dev-team/app", false},
		{team, "https://GIT.example.org/dev-team/app", false},
		{team, "https://git%2eexample.org/dev-team/app", false},
		{team, "https://gıt.example.org/dev-team/app", false},
		{team, "https://xgit.example.org/dev-team/app", false},
		// users, ports, schemes
		{team, "https://me:secret@git.example.org/dev-team/app", false},
		{team, "https://@git.example.org/dev-team/app", false},
		{team, "https://git.example.org:443/dev-team/app", false},
		{team, "https://git.example.org:/dev-team/app", false},
		{team, "https://git.example.org:8443/dev-team/app", false},
		{team, "http://git.example.org/dev-team/app", false},
		{team, "HTTPS://git.example.org/dev-team/app", false},
		{team, "oci://git.example.org/dev-team/app", false},
		{team, "ssh://git.example.org/dev-team/app", false},
		{team, "git@git.example.org:dev-team/app", false},
		{team, "//git.example.org/dev-team/app", false},
		{team, "https:/git.example.org/dev-team/app", false},
		{team, "https:git.example.org/dev-team/app", false},
		{team, "https:///git.example.org/dev-team/app", false},
		// what is not text, and what follows a path
		{team, "https://git.example.org/dev-team/app\n", false},
		{team, "https://git.example.org/dev-team/app\x00", false},
		{team, "\thttps://git.example.org/dev-team/app", false},
		{team, " https://git.example.org/dev-team/app", false},
		{team, "https://git.example.org/dev-team/app?ref=x", false},
		{team, "https://git.example.org/dev-team/app#x", false},
		{team, "https://git.example.org/dev-team/über", false},

		{"ssh://git@git.example.org/dev-team/*", "ssh://git@git.example.org/dev-team/app", true},
		{"ssh://git@git.example.org/dev-team/*", "ssh://git.example.org/dev-team/app", false},
		{"ssh://git@git.example.org/dev-team/*", "ssh://root@git.example.org/dev-team/app", false},
		{"ssh://git@git.example.org/dev-team/*", "ssh://git@git.example.org@evil.example/dev-team/app", false},
		{"https://git.example.org:8443/*", "https://git.example.org:8443/a", true},
		{"https://git.example.org:8443/*", "https://git.example.org/a", false},
		{"oci://registry.example.org/dev-team/*", "oci://registry.example.org/dev-team/charts", true},
		{"oci://registry.example.org/dev-team/*", "https://registry.example.org/dev-team/charts", false},
		{"https://git.example.org/dev-team/app", "https://git.example.org/dev-team/app", true},
		{"https://git.example.org/dev-team/app", "https://git.example.org/dev-team/app.git", false},
		{"https://git.example.org/My%20Project/*", "https://git.example.org/My%20Project/_git/app", true},
		{"https://git.example.org/My%20Project/*", "https://git.example.org/My%20Project/%2e%2e/Other", false},
		{"https://git.example.org/team-*", "https://git.example.org/team-a/app", true},
		{"https://git.example.org/.*", "https://git.example.org/../x", false},

		{"https://*.example.org/dev-team/*", "https://git.example.org/dev-team/app", true},
		{"https://*.example.org/dev-team/*", "https://example.org/dev-team/app", false},
		{"https://*.example.org/dev-team/*", "https://.example.org/dev-team/app", false},
		{"https://*.example.org/dev-team/*", "https://a.b.example.org/dev-team/app", false},
		{"https://*.example.org/dev-team/*", "https://evil.example/x.example.org/dev-team/app", false},
		{"https://*.example.org/dev-team/*", "https://evil:x.example.org/dev-team/app", false},
		{"https://*.example.org/dev-team/*", "https://-o.example.org/dev-team/app", false},
		{"https://*.example.org/dev-team/*", "https://*.example.org/dev-team/app", false},
		{"https://git.*.example.org/*", "https://git.eu.example.org/app", true},
		{"https://git.*.example.org/*", "https://git.example.org/app", false},

		// wrong patterns match nothing
		{"*", "https://git.example.org/app", false},
		{"https://*", "https://git.example.org/app", false},
		{"https://*", "https://localhost", false},
		{"https://git.example.org*", "https://git.example.org.evil.example", false},
		{"https://git*.example.org/*", "https://git2.example.org/a", false},
		{"https://git.example.org/*/app", "https://git.example.org/x/app", false},
		{"*://git.example.org/*", "https://git.example.org/app", false},
		{"https://*@git.example.org/*", "https://me@git.example.org/app", false},
		{"git.example.org/*", "git.example.org/app", false},
	}
	for _, tc := range cases {
		if got := (&fluxspec.TeamRules{Allow: []string{"https://nowhere.example.org/*", tc.pattern}}).Allows(tc.url); got != tc.want {
			t.Errorf("pattern %q, URL %q: got %v, want %v", tc.pattern, tc.url, got, tc.want)
		}
	}
	for _, r := range []*fluxspec.TeamRules{nil, {}} {
		if !r.Allows("https://git.example.org/app") {
			t.Error("without patterns a URL is refused")
		}
	}
}

func TestCheckPattern(t *testing.T) {
	cases := map[string]string{
		"https://git.example.org/dev-team/*": "",
		"https://*.example.org":              "",
		"ssh://git@git.example.org:22/a":     "",
		"oci://[::1]:5000/*":                 "",
		"*":                                  "is not a URL",
		"https:///x":                         "is not a URL",
		"https://git.example.org/a b":        "is not a URL",
		`https://git.example.org\x/*`:        "is not a URL",
		"https://a@git.example.org@b/*":      "is not a URL",
		"https://git.example.org/../*":       "is not a URL",
		"https://*":                          "names no host",
		"https://*/team/*":                   "names no host",
		"https://git.example.org*":           "only a part of a label",
		"https://git.example.org/*/x":        "within its path",
		"https://git.example.org/**":         "within its path",
		"http*://git.example.org/":           "scheme or user",
	}
	for pattern, want := range cases {
		got := fluxspec.CheckPattern(pattern)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", pattern, got, want)
		}
	}
}

// FuzzAllows looks for a URL that is allowed and that Go reads as another place.
func FuzzAllows(f *testing.F) {
	for _, s := range []string{"https://git.example.org/dev-team/app", "https://git.example.org/dev-team/../x", "https://a@b/c", "ssh://git@git.example.org/dev-team/x"} {
		f.Add(s)
	}
	r := &fluxspec.TeamRules{Allow: []string{"https://git.example.org/dev-team/*"}}
	f.Fuzz(func(t *testing.T, text string) {
		if !r.Allows(text) {
			return
		}
		u, err := url.Parse(text)
		switch {
		case err != nil:
			t.Errorf("%q is allowed and is no URL: %v", text, err)
		case u.Scheme != "https" || u.Host != "git.example.org" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
			t.Errorf("%q is allowed, and leads to %q", text, u)
		case !strings.HasPrefix(path.Clean(u.Path)+"/", "/dev-team/"):
			t.Errorf("%q is allowed, and its path is %q", text, path.Clean(u.Path))
		}
	})
}
