// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chandler-hub/chandler/internal/localfleet/parts"
)

// HubUserAgent is how the hub calls itself to API servers.
const HubUserAgent = "chandler-hub"

// BuildHub builds the hub from this checkout into a folder and returns the binary.
func BuildHub(ctx context.Context, dir string) (string, error) {
	root, err := parts.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "hub")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/hub")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the hub: %w\n%s", err, out)
	}
	return path, nil
}

// StartHub runs a hub binary against a cluster until it is ready. It is the caller's to stop. Flux reaches the chart that the
// hub serves at the same address after a restart, as it would through a Service.
func (c *Cluster) StartHub(ctx context.Context, binary string, args ...string) (*Process, error) {
	return c.StartHubThrough(ctx, c.KubeconfigFile(), binary, args...)
}

// StartHubThrough is StartHub with another way to the API server.
func (c *Cluster) StartHubThrough(ctx context.Context, kubeconfig, binary string, args ...string) (*Process, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	if c.charts == 0 {
		if c.charts, err = FreePort(); err != nil {
			return nil, err
		}
	}
	charts := fmt.Sprintf("127.0.0.1:%d", c.charts)
	health := fmt.Sprintf("127.0.0.1:%d", port)
	return start(ctx, command{
		name: fmt.Sprintf("hub-%d", time.Now().UnixNano()), path: binary, dir: c.dir,
		args: append([]string{
			"--metrics-bind-address=0", "--health-probe-bind-address=" + health, "--chart-bind-address=" + charts, "--chart-url=http://" + charts,
		}, args...),
		env:   []string{"KUBECONFIG=" + kubeconfig},
		ready: answers(c.probe, "http://"+health+"/readyz"),
	})
}
