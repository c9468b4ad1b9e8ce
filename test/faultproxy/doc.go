// SPDX-License-Identifier: Apache-2.0

// Package faultproxy is a proxy before a real API server that fails in the ways in which clusters fail: it refuses
// connections, swallows requests, accepts and never answers, answers with errors, or shows an expired certificate. It
// is for tests.
package faultproxy
