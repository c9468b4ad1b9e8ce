// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package localfleet

import "syscall"

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
