// SPDX-License-Identifier: Apache-2.0

package expression

import (
	_ "github.com/google/cel-go/cel"
	_ "github.com/google/cel-go/common/types"
	_ "github.com/google/cel-go/ext"
	_ "k8s.io/apiserver/pkg/cel/library"
)
