// SPDX-License-Identifier: Apache-2.0

package localfleet

import "syscall"

// processAttributes puts a part into a process group of its own, so that Ctrl-C reaches only this process, which
// stops the parts in order. If this process is killed, the kernel ends the part.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
