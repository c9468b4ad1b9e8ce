// SPDX-License-Identifier: Apache-2.0

// Package faultproxy stands before a real API server and fails in the ways in which clusters fail: it is refused, swallows
// what is sent to it, accepts and says nothing, answers with errors, or shows a certificate that has expired. It is for tests.
package faultproxy
