// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package sandbox

import "syscall"

// limit bounds what the kernel gives this process. What it writes are charts and folders, which are bounded too.
func limit() {
	for what, most := range map[int]uint64{syscall.RLIMIT_CORE: 0, syscall.RLIMIT_FSIZE: 1 << 30} {
		var now syscall.Rlimit
		if syscall.Getrlimit(what, &now) == nil && uint64(now.Max) > most {
			now.Cur, now.Max = most, most
			_ = syscall.Setrlimit(what, &now) // the watch over the memory is there in any case
		}
	}
}
