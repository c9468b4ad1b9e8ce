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

const (
	cgroupRoot = "/sys/fs/cgroup"

	// Files of v2: the controllers that a cgroup may use, and those that it hands out.
	controllersFile = "cgroup.controllers"
	subtreeFile     = "cgroup.subtree_control"
)

// controllers are those that a kubelet needs.
var controllers = []string{"cpu", "cpuset", "memory", "pids"}

// hierarchy is one of cgroup v1, or the one of v2.
type hierarchy struct {
	mount string // where it is
	names string // its controllers, or name=…, as in /proc/self/cgroup; empty for v2
	own   string // the cgroup below which a place is, below mount
}

// again mounts the hierarchy over a folder, as the cgroup namespace of this process shows it.
func (h hierarchy) again() error {
	switch {
	case h.names == "":
		return mount("cgroup2", h.mount, "cgroup2", 0, "")
	case strings.HasPrefix(h.names, "name="):
		return mount("cgroup", h.mount, "cgroup", 0, "none,"+h.names)
	}
	return mount("cgroup", h.mount, "cgroup", 0, h.names)
}

// hierarchies returns those of this machine that are mounted as usual.
func hierarchies() ([]hierarchy, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, controllersFile)); err == nil {
		// A cgroup with processes has none below it that is limited, but for the root.
		return []hierarchy{{mount: cgroupRoot, own: "/"}}, nil
	}
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

// hasCgroups says whether the machine gives a place the controllers that a kubelet needs.
func hasCgroups() bool {
	all, err := hierarchies()
	var given []string
	for _, h := range all {
		if h.names != "" {
			given = append(given, strings.Split(h.names, ",")...)
			continue
		}
		content, err := os.ReadFile(filepath.Join(h.mount, subtreeFile))
		if err != nil {
			return false
		}
		given = append(given, strings.Fields(string(content))...)
	}
	for _, controller := range controllers {
		if err != nil || !slices.Contains(given, controller) {
			return false
		}
	}
	return true
}

// joinCgroups moves this process into a new cgroup in every hierarchy: with v1 below its own, so that what limits it still does.
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
		if err := enterCgroup(filepath.Join(parent, name)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func enterCgroup(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0o600); err != nil {
		return fmt.Errorf("enter %s: %w", dir, err)
	}
	return nil
}

// handOut has the root of a cgroup namespace limit those below it. With v2 it has no process of its own then.
func handOut(all []hierarchy) error {
	for _, h := range all {
		if h.names != "" {
			continue
		}
		if err := makeCgroup(h.mount, "init"); err != nil {
			return err
		}
		if err := enterCgroup(filepath.Join(h.mount, "init")); err != nil {
			return err
		}
		added := []byte("+" + strings.Join(controllers, " +"))
		if err := os.WriteFile(filepath.Join(h.mount, subtreeFile), added, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// makeCgroup makes one in another.
func makeCgroup(parent, name string) error {
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // a new cpuset of v1 is empty, and takes nobody
		content, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) || len(strings.TrimSpace(string(content))) == 0 {
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
