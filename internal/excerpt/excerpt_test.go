// SPDX-License-Identifier: Apache-2.0

package excerpt_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

func TestOf(t *testing.T) {
	cases := map[string]struct {
		in   string
		n    int
		want string
	}{
		"Short":     {"abc", 3, "abc"},
		"Empty":     {"", 10, ""},
		"Umlauts":   {"äöü", 3, "äöü"},
		"Long":      {strings.Repeat("a", 100), 40, strings.Repeat("a", 13) + "… (and 87 more characters)"},
		"Wide":      {strings.Repeat("語", 100), 40, strings.Repeat("語", 13) + "… (and 87 more characters)"},
		"Thousands": {strings.Repeat("x", 43_000), 1000, strings.Repeat("x", 970) + "… (and 42,030 more characters)"},
		"NoRoom":    {strings.Repeat("x", 100), 5, "… (and 100 more characters)"},
		"NotUTF8":   {strings.Repeat("\xff", 100), 40, strings.Repeat("\xff", 13) + "… (and 87 more characters)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.Of(tc.in, tc.n); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestOfIsBounded: the result has at most n characters, and shortening it again changes nothing: a status that is written twice is
// the same.
func TestOfIsBounded(t *testing.T) {
	for _, total := range []int{60, 99, 100, 126, 127, 128, 999, 1000, 1027, 1031, 10_000, 100_000} {
		for _, n := range []int{40, 41, 99, 100, 101, 1000, 1001, 1026, 1027} {
			got := excerpt.Of(strings.Repeat("é", total), n)
			if c := utf8.RuneCountInString(got); c > n {
				t.Errorf("Of(%d characters, %d) has %d", total, n, c)
			}
			if again := excerpt.Of(got, n); again != got {
				t.Errorf("Of(%d characters, %d), shortened again: %q, %q", total, n, got, again)
			}
		}
	}
}

// TestWords: what is kept ends with a word, if there is one near the end, and says how much was left out.
func TestWords(t *testing.T) {
	for in, want := range map[string]string{
		"they keep them":                            "they keep them",
		strings.Repeat("a", 100):                    strings.Repeat("a", 13) + "… (and 87 more characters)",
		"if this is intended, approve it, or else":  "if this is intended, approve it, or else",
		"if this is intended, approve it, or else ": "if this is… (and 31 more characters)",
		"of all " + strings.Repeat("ü", 50):         "of all üüüüüüü… (and 43 more characters)",
	} {
		if got := excerpt.Words(in, 40); got != want || utf8.RuneCountInString(got) > 40 {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	cases := map[string]struct {
		in, want string
	}{
		"Short":    {"abcde", "abcde"},
		"Wide":     {"äöüäö", "äöüäö"},
		"Long":     {"abcdef", "abcd…"},
		"WideLong": {"äöüäöü", "äöüä…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.Cut(tc.in, 5); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"a b": "a b", " a\n\tb  ": "a b", "a\u202eb": "a b", "a\x1b[2Jb": "a [2Jb", "\ufeff": "",
	} {
		if got := excerpt.Line(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 30 * time.Second: "30s", 10 * time.Minute: "10m", 90 * time.Minute: "1h30m", 601 * time.Second: "10m1s",
		720 * time.Hour: "720h", time.Hour + 10*time.Second: "1h0m10s", -10 * time.Minute: "-10m",
	} {
		got := excerpt.Duration(d)
		if back, err := time.ParseDuration(got); got != want || err != nil || back != d {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}
