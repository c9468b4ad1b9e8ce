// SPDX-License-Identifier: Apache-2.0

// Package excerpt shortens texts that other people wrote, so that they fit a status, a table or a line. It cuts
// between characters, never within one. It also makes such texts safe for a terminal, and writes durations as people do.
package excerpt

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Of returns the beginning of s in at most n characters, with a note of how much was left out. n must be at least 40,
// so that the note fits.
func Of(s string, n int) string {
	total, long := length(s, n)
	if !long {
		return s
	}
	keep := max(0, n-utf8.RuneCountInString(more(total))) // what is left out is never more than all
	return first(s, keep) + more(total-keep)
}

// more notes how many characters were left out.
func more(left int) string { return fmt.Sprintf("… (and %s more characters)", Thousands(left)) }

// Words is Of, and cuts between words if there are any near the end.
func Words(s string, n int) string {
	total, long := length(s, n)
	if !long {
		return s
	}
	kept := first(s, max(0, n-utf8.RuneCountInString(more(total))))
	if at := strings.LastIndexByte(kept, ' '); at > len(kept)/2 {
		kept = kept[:at]
	}
	return kept + more(total-utf8.RuneCountInString(kept))
}

// Cut returns the beginning of s in at most n characters. If something was left out, the last character is ….
func Cut(s string, n int) string {
	if _, long := length(s, n); long {
		return first(s, max(0, n-1)) + "…"
	}
	return s
}

// length counts the characters of s, and returns whether there are more than n.
func length(s string, n int) (total int, long bool) {
	if len(s) <= n {
		return 0, false
	}
	total = utf8.RuneCountInString(s)
	return total, total > n
}

// first returns the first n characters of s.
func first(s string, n int) string {
	for at := range s {
		if n == 0 {
			return s[:at]
		}
		n--
	}
	return s
}

// Thousands writes 41900 as 41,900.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// Visible makes a text that other people wrote safe for a terminal: what would move the cursor, or turn the text round, becomes
// a blank.
func Visible(s string) string { return visible(s, "") }

// VisibleLines is Visible, and keeps the ends of lines.
func VisibleLines(s string) string { return visible(s, "\n") }

// Line is Visible, and makes one blank of many, so that the text fits one line.
func Line(s string) string { return strings.Join(strings.Fields(Visible(s)), " ") }

// Duration writes a duration as people do: 10m and 720h, not 10m0s and 720h0m0s.
func Duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func visible(s, kept string) string {
	return strings.Map(func(r rune) rune {
		hidden := unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) || r == '\u2028' || r == '\u2029' || r == '\ufeff'
		if hidden && !strings.ContainsRune(kept, r) {
			return ' '
		}
		return r
	}, s)
}
