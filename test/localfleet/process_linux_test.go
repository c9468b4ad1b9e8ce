// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// envDies makes the test binary one that starts a part and is then killed.
const envDies = "LOCALFLEET_TEST_DIES"

func TestNothingOutlivesUs(t *testing.T) {
	if dir := os.Getenv(envDies); dir != "" {
		_, err := start(t.Context(), command{name: "part", path: "/bin/sh", args: []string{"-c", "echo $$ > " + dir + "/pid; exec sleep 60"}, dir: dir, ready: hasPID(dir)})
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), envDies+"="+dir)
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("it was not killed: %v\n%s", err, out)
	}
	pid, err := readPID(dir)
	if err != nil {
		t.Fatal(err)
	}
	waitGone(t, pid)
}
