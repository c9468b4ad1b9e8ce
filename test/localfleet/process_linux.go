// SPDX-License-Identifier: Apache-2.0

package localfleet

import "syscall"

// processAttributes put a part in a group of its own, so that Ctrl-C reaches only us and we stop the parts in order, and have
// the kernel end it should we be killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
