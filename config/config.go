// SPDX-License-Identifier: Apache-2.0

// Package config has the manifests of this folder that `chandler doctor` holds an installed hub to.
package config

import "embed"

// Files are our CRDs, the rights of the hub, and the admission policies.
//
//go:embed crd/bases/*.yaml rbac/role.yaml policies/*.yaml
var Files embed.FS
