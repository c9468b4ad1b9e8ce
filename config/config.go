// SPDX-License-Identifier: Apache-2.0

// Package config has the manifests of this folder, which `chandler install` applies, and to which `chandler doctor` holds an installed
// hub. There is no second copy of them.
package config

import "embed"

// Files are what config/default builds: our CRDs, the rights of the hub, the admission policies and the hub itself.
//
//go:embed crd/*.yaml crd/bases/*.yaml rbac/*.yaml policies/*.yaml manager/*.yaml default/*.yaml
var Files embed.FS
