// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// programs of the system that a node needs. Debian has them in the packages of the same names, nft and ip in nftables and iproute2, and the
// last ones everywhere.
var programs = []string{"containerd", "ctr", "containerd-shim-runc-v2", "runc", "nft", "iptables", "ip", "unshare", "nsenter", "ldd"}

// Missing returns nil if this machine can run a node, and otherwise one line that says what it lacks.
func Missing() error {
	if runtime.GOOS != "linux" {
		return errors.New("a real node needs Linux")
	}
	var missing []string
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	var absent []string
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			absent = append(absent, program)
		}
	}
	if len(absent) > 0 {
		missing = append(missing, strings.Join(absent, ", ")+" (apt-get install containerd runc nftables iptables iproute2)")
	}
	if !hasCgroups() {
		missing = append(missing, "cgroups at /sys/fs/cgroup, with cpu, cpuset, memory and pids")
	}
	if _, err := os.Stat("/proc/sys/net/bridge"); err != nil {
		missing = append(missing, "the kernel's br_netfilter (modprobe br_netfilter)")
	}
	for _, part := range append(parts.Node(), parts.All()...) {
		if _, err := parts.Path(part.Name); err != nil {
			missing = append(missing, "`make tools-node`")
			break
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("a real node needs %s", strings.Join(missing, "; "))
}

// Require skips a test that does not run in a place for a node; see Main.
func Require(t *testing.T) {
	t.Helper()
	if Inside() {
		return
	}
	if err := Missing(); err != nil {
		t.Skip(err)
	}
	t.Skip("not started by node.Main")
}
