// SPDX-License-Identifier: Apache-2.0

package clitest

import _ "embed"

// Fleet is a file of clusters, and of a set that goes there with a folder of Git.
//
//go:embed testdata/policies.yaml
var Fleet string
