// SPDX-License-Identifier: Apache-2.0

// Package expression evaluates the `<< CEL >>` expressions that people write in the strings of their YAML: what differs
// from cluster to cluster is computed from the cluster's facts, the set's origin and its variables.
//
// A string is a template. `<<` opens an expression, the first `>>` outside of the expression's own strings ends it, and
// `<<<` is a literal `<<`. A string that is one expression and nothing else keeps the type of the result; in any other,
// the results are inserted as text. Everything else is left alone, so Flux's ${var} and Helm's {{ }} pass through.
//
// Expressions read cluster, whose fields are known when they are compiled, and the maps origin and vars. They have the
// functions of CEL and its extensions for strings, lists, maths, sets, encodings, regular expressions, optionals,
// cel.bind and loops with two variables, and those of Kubernetes for IPs, CIDRs, URLs, quantities and versions.
//
// They come from tenants. So there is nothing for files, the environment, the network, the clock or chance, no names of
// time zones, and loops over maps go in the order of the keys: the same input gives the same result, always. And each
// evaluation has a budget, which pays for each step before it is taken (see meter), so that no expression can hold up
// or exhaust the hub, whatever the sizes of its data.
package expression
