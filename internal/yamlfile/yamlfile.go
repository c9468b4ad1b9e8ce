// SPDX-License-Identifier: Apache-2.0

// Package yamlfile cuts a file of YAML into its documents.
package yamlfile

import "bytes"

// Document is a part of a file, with the line of --- before it, and the number of its first line, counted from 0.
type Document struct {
	Raw  []byte
	Line int
}

// Split cuts a file where a line begins with --- and ends, or goes on with a blank.
func Split(raw []byte) []Document {
	var out []Document
	begin, line, end, lines := 0, 0, 0, 0
	for text := range bytes.Lines(raw) {
		if rest, ok := bytes.CutPrefix(text, []byte("---")); ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n")) {
			out = append(out, Document{raw[begin:end], line})
			begin, line = end, lines
		}
		end, lines = end+len(text), lines+1
	}
	return append(out, Document{raw[begin:], line})
}
