// SPDX-License-Identifier: Apache-2.0

// Package kindfleet sets up a management cluster with kind, for people who have Docker and the internet:
// cert-manager, Kamaji from its own chart, the Flux controllers, and the hub from its image and its chart. It first
// makes a plan, a list of commands that people can read, and then runs it. The versions are those of `make tools`.
package kindfleet
