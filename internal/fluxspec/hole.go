// SPDX-License-Identifier: Apache-2.0

package fluxspec

import "encoding/json"

// Hole stands in a body for the future value of an expression. Only its type is known.
type Hole struct {
	// Sample is a value of that type, or nil if the type is not known. For texts it is TextSample, which every field
	// accepts that is written as a text, also a duration or quantity.
	Sample any
}

// TextSample is valid as a text, a duration and a quantity.
const TextSample = "1m"

// MarshalJSON writes the sample.
func (h Hole) MarshalJSON() ([]byte, error) { return json.Marshal(h.Sample) }
