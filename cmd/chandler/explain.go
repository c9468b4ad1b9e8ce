// SPDX-License-Identifier: Apache-2.0

package main

import _ "k8s.io/cli-runtime/pkg/genericclioptions"
