// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// hierarchy is one of cgroup v1.
type hierarchy struct {
	mount string // where it is
	names string // its controllers, or name=…, as in /proc/self/cgroup
	own   string // the cgroup of this process, below mount
}

// option is by what the hierarchy is mounted again.
func (h hierarchy) option() string {
	if strings.HasPrefix(h.names, "name=") {
		return "none," + h.names
	}
	return h.names
}

// hierarchies returns those of this machine that are mounted as usual.
func hierarchies() ([]hierarchy, error) {
	file, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []hierarchy
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// 4:memory:/some/cgroup
		fields := strings.SplitN(lines.Text(), ":", 3)
		if len(fields) < 3 || fields[1] == "" {
			continue
		}
		mount := filepath.Join(cgroupRoot, strings.TrimPrefix(fields[1], "name="))
		if strings.Contains(string(mounts), " "+mount+" ") {
			found = append(found, hierarchy{mount: mount, names: fields[1], own: fields[2]})
		}
	}
	return found, lines.Err()
}

// hasCgroups says whether the machine has the controllers that a kubelet needs.
func hasCgroups() bool {
	found, err := hierarchies()
	for _, controller := range []string{"cpu", "cpuset", "memory", "pids"} {
		has := func(h hierarchy) bool { return slices.Contains(strings.Split(h.names, ","), controller) }
		if err != nil || !slices.ContainsFunc(found, has) {
			return false
		}
	}
	return true
}

// joinCgroups moves this process into a new cgroup below its own in every hierarchy, so that what limits it still does.
func joinCgroups(name string) ([]hierarchy, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	for _, h := range all {
		parent := filepath.Join(h.mount, h.own)
		if err := makeCgroup(parent, name); err != nil {
			return nil, err
		}
		dir := filepath.Join(parent, name)
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0o600); err != nil {
			return nil, fmt.Errorf("enter %s: %w", dir, err)
		}
	}
	return all, nil
}

// makeCgroup makes one in another.
func makeCgroup(parent, name string) error {
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // a new cpuset is empty, and takes nobody
		content, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), content, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeCgroups removes the cgroups of a place, from the innermost.
func removeCgroups(name string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	var problems []error
	for _, h := range all {
		problems = append(problems, removeCgroup(filepath.Join(h.mount, h.own, name)))
	}
	return errors.Join(problems...)
}

func removeCgroup(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	slices.Reverse(dirs)
	for _, dir := range dirs {
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			err := os.Remove(dir) // the kernel is done with the processes a moment after they have ended
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return err
			}
		}
	}
	return nil
}
