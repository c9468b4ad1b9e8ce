// SPDX-License-Identifier: Apache-2.0

// Package kindfleet sets a management cluster up with kind, for those who have Docker and the internet: cert-manager, Kamaji from
// its own chart, the Flux controllers, and the hub from its image and its chart. What is run is decided first, as a plan of
// commands that can be read, and carried out then. The versions are those of `make tools`.
package kindfleet
