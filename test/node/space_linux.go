// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// enter runs this program as the first process of new namespaces. They end with it.
func enter(ctx context.Context, dir string, args []string) error {
	// Linux sends the death signal when the thread that started the child ends, so this thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), envStage+"="+stageSetUp, envDir+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // Ctrl-C is for the process outside, which removes the place
	}
	return cmd.Run()
}

// setUp makes the place around this process, and then runs the program in it. A cgroup namespace is of one thread, which
// becomes the whole process by that.
func setUp() error {
	runtime.LockOSThread()
	for _, step := range []func() error{setUpMounts, protectSysctls, setUpNetwork, closeResolver} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := syscall.Sethostname([]byte(Name)); err != nil {
		return err
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	if err := os.Setenv(envStage, stageInside); err != nil {
		return err
	}
	return syscall.Exec(program, os.Args, os.Environ())
}

// mount mounts something over a folder or a file that is there.
func mount(source, target, kind string, flags uintptr, options string) error {
	if err := syscall.Mount(source, target, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}

func setUpMounts() error {
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	hierarchies, err := joinCgroups(filepath.Base(Dir()))
	if err != nil {
		return err
	}
	if err := syscall.Unshare(syscall.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("a cgroup namespace: %w", err)
	}
	if err := mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	if err := mountOwn(hierarchies); err != nil {
		return err
	}
	return handOut(hierarchies)
}

// mountOwn mounts what is of this network namespace, or of these machines' parts.
func mountOwn(hierarchies []hierarchy) error {
	if err := mount("sysfs", "/sys", "sysfs", 0, ""); err != nil { // it shows the interfaces of this network
		return err
	}
	// What the parts write outside their own folders is here: sockets, network namespaces, links to logs, results of CNI.
	for _, dir := range []string{cgroupRoot, "/run", "/var/lib", "/var/log"} {
		if err := mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return err
		}
	}
	for _, h := range hierarchies {
		if err := os.MkdirAll(h.mount, 0o755); err != nil {
			return err
		}
		if err := h.again(); err != nil {
			return err
		}
	}
	return mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, "") // kubelet and containerd pass mounts to each other
}

// setUpMachine makes another machine around this process, which has network, mount and UTS namespaces of its own, and stays
// until somebody ends it.
func setUpMachine(name string) error {
	runtime.LockOSThread()
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	hierarchies, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		if err := makeCgroup(filepath.Join(h.mount, h.own), name); err != nil {
			return err
		}
	}
	if err := mountOwn(hierarchies); err != nil {
		return err
	}
	if err := errors.Join(syscall.Sethostname([]byte(name)), ip("link set lo up"), forward()); err != nil {
		return err
	}
	file := machineFile(name)
	if err := os.WriteFile(file+".new", fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return err
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	<-end
	return errors.New("ended")
}

// sysctls are of the whole machine, and a kubelet writes them. It gets files in their place.
var sysctls = []string{
	"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// protectSysctls makes all sysctls read-only but those of the network, which is this place's own.
func protectSysctls() error {
	const all, network = "/proc/sys", "/proc/sys/net"
	for _, each := range sysctls {
		value, err := os.ReadFile(filepath.Join(all, each))
		if err != nil {
			return err
		}
		file := filepath.Join("/run", strings.ReplaceAll(each, "/", "."))
		if err := os.WriteFile(file, value, 0o600); err != nil {
			return err
		}
		if err := mount(file, filepath.Join(all, each), "", syscall.MS_BIND, ""); err != nil {
			return err
		}
	}
	return errors.Join(
		mount(network, network, "", syscall.MS_BIND, ""),
		mount(all, all, "", syscall.MS_BIND|syscall.MS_REC, ""),
		mount("", all, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""),
	)
}

// setUpNetwork gives the node an address that is not loopback. The default route leads nowhere, but without one the node
// itself would reach no Service.
func setUpNetwork() error {
	for _, line := range []string{
		"link set lo up",
		"link add node0 type veth peer name node1",
		"link set node1 up",
		"address add " + Address + "/24 dev node0",
		"link set node0 up",
		"route add default dev node0",
	} {
		if err := ip(line); err != nil {
			return err
		}
	}
	return forward()
}

func ip(line string) error {
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, out)
	}
	return nil
}

// forward has packets of pods go on.
func forward() error {
	// The second has traffic between pods of one bridge go by the rules of kube-proxy.
	for _, each := range []string{"ipv4/ip_forward", "bridge/bridge-nf-call-iptables"} {
		if err := os.WriteFile(filepath.Join("/proc/sys/net", each), []byte("1"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// closeResolver has the tests ask the cluster's DNS, since the machine's is out of reach.
func closeResolver() error {
	const file = "/run/resolv.conf"
	if err := os.WriteFile(file, []byte("nameserver "+dnsIP+"\noptions timeout:1 attempts:1\n"), 0o600); err != nil {
		return err
	}
	return mount(file, "/etc/resolv.conf", "", syscall.MS_BIND, "")
}
