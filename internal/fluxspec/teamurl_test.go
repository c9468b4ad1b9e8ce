// SPDX-License-Identifier: Apache-2.0

package fluxspec_test

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
)

// TestAllows: a URL is allowed if every program that reads it ends up at the place that the pattern names. The cases are in
// a file, since the end-to-end tests ask the admission policy the same.
func TestAllows(t *testing.T) {
	raw := must.Read(t, "testdata/team-urls.yaml")
	var cases []struct {
		Pattern, URL string
		Allowed      bool
	}
	if err := yaml.UnmarshalStrict(raw, &cases); err != nil || len(cases) < 80 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	for _, tc := range cases {
		if got := (&fluxspec.TeamRules{Allow: []string{"https://nowhere.example.org/*", tc.Pattern}}).Allows(tc.URL); got != tc.Allowed {
			t.Errorf("pattern %q, URL %q: got %v, want %v", tc.Pattern, tc.URL, got, tc.Allowed)
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
