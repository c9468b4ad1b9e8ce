// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package node

import (
	"context"
	"errors"
)

var errLinux = errors.New("a real node needs Linux")

func hasCgroups() bool                              { return false }
func removeCgroups(string) error                    { return nil }
func setUp() error                                  { return errLinux }
func setUpMachine(string) error                     { return errLinux }
func enter(context.Context, string, []string) error { return errLinux }
