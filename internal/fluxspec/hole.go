// SPDX-License-Identifier: Apache-2.0

package fluxspec

import "encoding/json"

// Hole stands in a body for a value that an expression will give: what is known before is its type.
type Hole struct {
	// Sample is a value of that type, or nil if the type is not known. For texts it is one that every field takes which
	// is written as a text, durations and quantities too: TextSample.
	Sample any
}

// TextSample is a text, a duration and a quantity.
const TextSample = "1m"

// MarshalJSON writes the sample. A null fits every field of a Go type, so that an unknown type is checked for nothing but
// the name of its field.
func (h Hole) MarshalJSON() ([]byte, error) { return json.Marshal(h.Sample) }
