// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package faultproxy

import (
	"errors"
	"io"
)

func fillBacklog(string) (io.Closer, error) {
	return nil, errors.New("only Linux drops the SYNs that a full queue has no place for")
}
