// SPDX-License-Identifier: Apache-2.0

// Package expression evaluates the `<< CEL >>` expressions in the strings of people's YAML. An expression computes a
// value that differs from cluster to cluster, from the cluster's facts, its origin and its variables.
//
// A string is a template. `<<` opens an expression, the first `>>` outside of the expression's own strings ends it,
// and `<<<` is a literal `<<`. A string that is one expression and nothing else keeps the type of the result. In any
// other string, the results are inserted as text. All other text stays as it is, so Flux's ${var} and Helm's {{ }}
// pass through.
//
// Expressions read cluster, whose fields are known when they are compiled, and the maps origin and vars. They have
// the functions of CEL and its extensions for strings, lists, maths, sets, encodings, regular expressions, optionals,
// cel.bind and loops with two variables, and those of Kubernetes for IPs, CIDRs, URLs, quantities and versions.
//
// Tenants write expressions. So expressions have no access to files, the environment, the network, the clock or
// random numbers, and no names of time zones. Loops over maps go in the order of the keys. The same input always
// gives the same result. Each evaluation has a budget, and pays for each step before it takes the step (see package meter).
// So no expression can hold up or exhaust the hub, however large its data is.
package expression
