// SPDX-License-Identifier: Apache-2.0

package merge

import _ "github.com/evanphx/json-patch/v5"
