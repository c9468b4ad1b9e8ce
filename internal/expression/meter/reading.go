// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"maps"
	"slices"
)

// reading are the functions whose cost is at most that of reading their arguments once, grouped by the reason. A
// function that is neither here nor in rules has no price, and no expression may call it: a new version of cel-go may
// bring any.
var reading = [][]string{
	// Operators, and what the planner makes of them; of lists and maps all is read, which is more than an index takes.
	{
		"!_", "-_", "@key", "@not_strictly_false", "_!=_", "_%_", "_&&_", "_*_", "_+_", "_-_", "_/_", "_<=_", "_<_", "_==_", "_>=_",
		"_>_", "_?._", "_?_:_", "_[?_]", "_[_]", "__not_strictly_false__", "_||_", "cel.@block", "or", "orValue", "optional.none",
	},
	// Conversions, which read a text once.
	{
		"bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint", "base64.decode", "base64.encode",
	},
	// Texts, from one end to the other.
	{
		"charAt", "contains", "endsWith", "startsWith", "lowerAscii", "upperAscii", "strings.quote", "substring", "trim",
	},
	// Lists, whose items are all read.
	{
		"flatten", "math.@max", "math.@min",
	},
	// Arithmetic on one or two numbers.
	{
		"math.abs", "math.bitAnd", "math.bitNot", "math.bitOr", "math.bitShiftLeft", "math.bitShiftRight", "math.bitXor", "math.ceil",
		"math.floor", "math.isFinite", "math.isInf", "math.isNaN", "math.round", "math.sign", "math.sqrt", "math.trunc",
	},
	// Addresses, URLs, versions and quantities: a text of them is read once, and quantity bounds how many digits one has.
	{
		"add", "asApproximateFloat", "asInteger", "cidr", "compareTo", "containsCIDR", "containsIP", "family", "getEscapedPath",
		"getHost", "getHostname", "getPort", "getQuery", "getScheme", "ip", "ip.isCanonical", "isCIDR", "isGlobalUnicast",
		"isGreaterThan", "isIP", "isInteger", "isLessThan", "isLinkLocalMulticast", "isLinkLocalUnicast", "isLoopback", "isSemver",
		"isURL", "isUnspecified", "major", "masked", "minor", "patch", "prefixLength", "semver", "sign", "sub", "url",
	},
}

// isReading are the names in reading.
var isReading = func() map[string]bool {
	out := map[string]bool{}
	for _, names := range reading {
		for _, name := range names {
			out[name] = true
		}
	}
	return out
}()

// Priced returns whether it is known what a function costs.
func Priced(name string) bool { return rules[name] != nil || isReading[name] }

// Functions returns the names of the functions whose cost is known, in the order of the alphabet.
func Functions() []string {
	return slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(rules)), slices.Collect(maps.Keys(isReading)))))
}
