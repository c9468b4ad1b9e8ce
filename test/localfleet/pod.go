// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// pod is a tenant's control plane on this machine: a process for each container.
type pod struct {
	dir   string
	probe *http.Client

	mu        sync.Mutex
	template  string // what runs, as templateKey has it
	processes []*Process
	ended     bool // for good
}

func newPod(dir string) *pod {
	return &pod{dir: dir, probe: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // a kubelet does not verify what it probes
	}}}
}

// templateKey is equal for equal pods.
func templateKey(t corev1.PodTemplateSpec) string {
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // it came as JSON
	}
	return string(raw)
}

// runs reports whether just this pod runs, with all of its processes.
func (p *pod) runs(template corev1.PodTemplateSpec) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.template == "" || p.template != templateKey(template) {
		return false
	}
	return !slices.ContainsFunc(p.processes, func(each *Process) bool {
		select {
		case <-each.Done():
			return true
		default:
			return false
		}
	})
}

// lay lays out the pod's volumes, or changes them under its processes.
func (p *pod) lay(volumes map[string]files) error {
	for name, content := range volumes {
		if err := layVolume(p.volume(name), content); err != nil {
			return err
		}
	}
	return nil
}

func (p *pod) volume(name string) string { return filepath.Join(p.dir, "volumes", name) }

// start starts every container and waits for its probes. Kamaji lists the API server first. The other containers end
// if there is none, so they start after it. start gives up when the pod is no longer wanted.
func (p *pod) start(ctx context.Context, template corev1.PodTemplateSpec, wanted func(context.Context) error) error {
	containers := template.Spec.Containers
	if len(containers) == 0 {
		return errors.New("the pod has no containers")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := wanted(ctx); errors.Is(err, errOutdated) {
					cancel(err)
				}
			}
		}
	}()
	if err := p.startContainer(ctx, containers[0]); err != nil {
		return err
	}
	var others []func() error
	for _, c := range containers[1:] {
		others = append(others, func() error { return p.startContainer(ctx, c) })
	}
	if err := SideBySide(others...); err != nil {
		return err
	}
	p.mu.Lock()
	p.template = templateKey(template)
	p.mu.Unlock()
	return nil
}

func (p *pod) startContainer(ctx context.Context, container corev1.Container) error {
	cmd, err := p.command(container)
	if err != nil {
		return fmt.Errorf("container %s: %w", container.Name, err)
	}
	started, err := start(ctx, cmd)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended { // while it started
		started.Kill()
		return errOutdated
	}
	p.processes = append(p.processes, started)
	return nil
}

// command turns a container into a process: its program is a part of the same name, its mounts are folders, and it listens on
// loopback, on a port of its own if all of its kind would listen on the same.
func (p *pod) command(container corev1.Container) (command, error) {
	line := slices.Concat(container.Command, container.Args)
	if len(line) == 0 || len(container.Env)+len(container.EnvFrom) > 0 {
		return command{}, errors.New("the runner needs its command line, and knows no environment")
	}
	program := path.Base(line[0])
	binary, err := parts.Path(program)
	if err != nil {
		return command{}, err
	}
	probe := container.ReadinessProbe
	if probe == nil {
		probe = container.StartupProbe
	}
	if probe == nil || probe.HTTPGet == nil {
		return command{}, errors.New("the runner knows no probe but httpGet")
	}
	port := probe.HTTPGet.Port.IntValue()
	args := append(hostPaths(line[1:], container.VolumeMounts, p.volume), "--bind-address=127.0.0.1")
	if program == parts.KubeAPIServer {
		// An EndpointSlice cannot have a loopback address. And a tenant of Kamaji's, which has at most v1.30, streams
		// no lists. Our API server would, if the store told users other than root its version. Since it does not, the
		// API server breaks off every watch from resource version 0.
		args = append(args, "--endpoint-reconciler-type=none", "--feature-gates=WatchList=false")
	} else {
		if port, err = FreePort(); err != nil {
			return command{}, err
		}
		args = append(args, fmt.Sprintf("--secure-port=%d", port), "--leader-elect=false") // it is the only one
	}
	return command{
		name: container.Name, path: binary, dir: p.dir, args: args,
		ready: answers(p.probe, fmt.Sprintf("https://127.0.0.1:%d%s", port, probe.HTTPGet.Path)),
	}, nil
}

// hostPaths replaces paths below the mounts of a container by their paths on this machine. If an argument occurs
// twice, the last one counts.
func hostPaths(args []string, mounts []corev1.VolumeMount, volume func(string) string) []string {
	// the deepest first
	mounts = slices.SortedFunc(slices.Values(mounts), func(a, b corev1.VolumeMount) int { return len(b.MountPath) - len(a.MountPath) })
	out := make([]string, len(args))
	for i, arg := range args {
		flag, value, ok := strings.Cut(arg, "=")
		for _, m := range mounts {
			if below, found := strings.CutPrefix(value, strings.TrimSuffix(m.MountPath, "/")+"/"); ok && found {
				value = filepath.Join(volume(m.Name), filepath.FromSlash(below))
				break
			}
		}
		out[i] = flag
		if ok {
			out[i] += "=" + value
		}
	}
	return out
}

// stop has all processes end in an orderly way.
func (p *pod) stop() { p.end(false, (*Process).Stop) }

// kill ends all processes at once and for good.
func (p *pod) kill() { p.end(true, (*Process).Kill) }

func (p *pod) end(forGood bool, how func(*Process)) {
	p.mu.Lock()
	processes := p.processes
	p.processes, p.template, p.ended = nil, "", p.ended || forGood
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, each := range processes {
		wg.Go(func() { how(each) })
	}
	wg.Wait()
}

// remove stops the pod of a tenant that has gone, and removes its secrets. The logs stay until the cluster is stopped.
func (p *pod) remove() error {
	p.stop()
	return os.RemoveAll(filepath.Join(p.dir, "volumes"))
}

// note keeps why the pod did not start, beside the logs of its containers.
func (p *pod) note(err error) error {
	f, openErr := os.OpenFile(filepath.Join(p.dir, "runner.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if openErr != nil {
		return openErr
	}
	_, writeErr := fmt.Fprintf(f, "%s %v\n", time.Now().UTC().Format(time.RFC3339), err)
	return errors.Join(writeErr, f.Close())
}
