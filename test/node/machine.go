// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// machine is what the parts of one node run on: this place, or namespaces of its own in it.
type machine struct {
	name, address string
	// dir is the folder of its parts.
	dir string
	// cgroup is that below which its pods are.
	cgroup string
	// enter is the command that runs a program there; empty for this place.
	enter []string
	// owner is the cluster that its parts end with.
	owner *localfleet.Cluster
}

// in is a path in the machine's folder.
func (m *machine) in(name string) string { return filepath.Join(m.dir, name) }

// fill puts what is known of the machine into a file of configuration, and more, in pairs.
func (m *machine) fill(text string, more ...string) string {
	pairs := []string{"{name}", m.name, "{address}", m.address, "{dir}", m.dir, "{cgroup}", m.cgroup}
	return strings.NewReplacer(append(pairs, more...)...).Replace(text)
}

// write writes files into the machine's folder.
func (m *machine) write(files map[string]string) error {
	for name, content := range files {
		if err := os.WriteFile(m.in(name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// run starts a program on the machine, and waits until it is ready.
func (m *machine) run(ctx context.Context, p localfleet.Program) error {
	if len(m.enter) > 0 {
		p.Name += "-" + m.name
		p.Path, p.Args = m.enter[0], slices.Concat(m.enter[1:], []string{p.Path}, p.Args)
	}
	return m.owner.Run(ctx, p)
}

// output runs a program on the machine to its end.
func (m *machine) output(ctx context.Context, program string, args ...string) error {
	line := slices.Concat(m.enter, []string{program}, args)
	if out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return nil
}

// writeConfig writes what the runtime needs, but for the network of pods.
func (m *machine) writeConfig() error {
	for _, dir := range []string{"cni", "cni-bin", "kubelet"} {
		if err := os.MkdirAll(m.in(dir), 0o755); err != nil {
			return err
		}
	}
	for _, plugin := range []string{parts.Bridge, parts.HostLocal, parts.Loopback} {
		path, err := parts.Path(plugin)
		if err != nil {
			return err
		}
		if err := os.Symlink(path, m.in("cni-bin/"+plugin)); err != nil {
			return err
		}
	}
	return m.write(map[string]string{"containerd.toml": m.fill(containerdConfig)})
}

// connect gives the pods of the machine addresses. Until then the node is not Ready.
func (m *machine) connect(pods string) error {
	return m.write(map[string]string{"cni/pods.conflist": m.fill(cniConfig, "{pods}", pods)})
}

func (m *machine) startRuntime(ctx context.Context) error {
	path, err := exec.LookPath("containerd")
	if err != nil {
		return err
	}
	err = m.run(ctx, localfleet.Program{
		Name: "containerd", Path: path, Args: []string{"--config", m.in("containerd.toml")},
		Ready: func(ctx context.Context) error { return m.ctr(ctx, "version") },
	})
	if err != nil {
		return err
	}
	return m.Load(ctx,
		Image{Ref: pauseImage, Files: map[string]string{"/pause": filepath.Join(Dir(), "pause")}, Entrypoint: []string{"/pause"}, User: "65535"})
}

// Load gives images to the machine, as if it had pulled them.
func (m *machine) Load(ctx context.Context, images ...Image) error {
	for _, image := range images {
		if err := m.load(ctx, image); err != nil {
			return fmt.Errorf("load %v: %w", image.names(), err)
		}
	}
	return nil
}

func (m *machine) load(ctx context.Context, image Image) error {
	file, err := os.CreateTemp(m.dir, "image")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(image.Write(file), file.Close()); err != nil {
		return err
	}
	return m.ctr(ctx, "images", "import", file.Name())
}

// ctr talks to containerd, about what the kubelet sees of it.
func (m *machine) ctr(ctx context.Context, args ...string) error {
	return m.output(ctx, "ctr", append([]string{"--address", containerdSocket, "--namespace", "k8s.io"}, args...)...)
}

// startKubelet starts one that trusts an authority, with flags that say who it is.
func (m *machine) startKubelet(ctx context.Context, authority string, ready func(context.Context) error, flags ...string) error {
	path, err := parts.Path(parts.Kubelet)
	if err != nil {
		return err
	}
	if err := m.write(map[string]string{"kubelet.yaml": m.fill(kubeletConfig, "{ca}", authority)}); err != nil {
		return err
	}
	return m.run(ctx, localfleet.Program{
		Name: parts.Kubelet, Path: path, Ready: ready,
		Args: append([]string{"--config=" + m.in("kubelet.yaml"), "--hostname-override=" + m.name, "--node-ip=" + m.address,
			"--root-dir=" + m.in("kubelet"), "--cert-dir=" + m.in("kubelet")}, flags...),
	})
}

func (m *machine) startProxy(ctx context.Context, pods string, kubeconfig []byte) error {
	path, err := parts.Path(parts.KubeProxy)
	if err != nil {
		return err
	}
	if err := m.write(map[string]string{
		"kube-proxy.conf": string(kubeconfig), "kube-proxy.yaml": m.fill(proxyConfig, "{pods}", pods),
	}); err != nil {
		return err
	}
	return m.run(ctx, localfleet.Program{
		Name: parts.KubeProxy, Path: path, Args: []string{"--config=" + m.in("kube-proxy.yaml")},
		Ready: m.owner.Answers("http://" + net.JoinHostPort(m.address, "10256") + "/livez"),
	})
}
