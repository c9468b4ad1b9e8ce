// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/shard"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// FluxNamespace is where the Flux controllers think they run.
const FluxNamespace = "flux-system"

// FluxCRDs returns the folders of Flux's CRDs, for ClusterOptions.CRDPaths.
func FluxCRDs() ([]string, error) {
	return CRDs(parts.SourceController, parts.KustomizeController, parts.HelmController)
}

// CRDs returns the folders with the CRDs of some parts.
func CRDs(names ...string) ([]string, error) {
	out := make([]string, 0, len(names))
	for _, name := range names {
		dir, err := parts.Files(name)
		if err != nil {
			return nil, err
		}
		out = append(out, dir)
	}
	return out, nil
}

// FluxOptions configure the Flux controllers.
type FluxOptions struct {
	// NoCrossNamespaceRefs is Flux's multi-tenancy lockdown.
	NoCrossNamespaceRefs bool
	// Shards has a kustomize-controller for each of these shards, in place of one for all.
	Shards []string
	// Args are more arguments, by the name of the part.
	Args map[string][]string
}

// StartFlux starts source-, kustomize- and helm-controller on a cluster that has their CRDs. They end with the cluster.
func (c *Cluster) StartFlux(ctx context.Context, o FluxOptions) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: FluxNamespace}}
	if err := client.IgnoreAlreadyExists(c.Client.Create(ctx, ns)); err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	// Tests wait for retries, and these are short beside Flux's own.
	retry, dependency := "--min-retry-delay=500ms", "--requeue-dependency=1s"
	lockdown := fmt.Sprintf("--no-cross-namespace-refs=%t", o.NoCrossNamespaceRefs)
	controllers := map[string][]string{
		parts.SourceController: {
			retry, dependency, "--storage-path=" + filepath.Join(c.dir, parts.SourceController), "--storage-addr=" + address,
			"--storage-adv-addr=" + address,
		},
		parts.KustomizeController: {retry, dependency, lockdown},
		parts.HelmController:      {retry, dependency, lockdown},
	}
	var starts []func() error
	for part, args := range controllers {
		args = append(args, o.Args[part]...)
		if part != parts.KustomizeController || len(o.Shards) == 0 {
			starts = append(starts, func() error { return c.startFluxController(ctx, part, part, args) })
			continue
		}
		for _, s := range o.Shards {
			selector := "--watch-label-selector=" + shard.Label + "=" + s
			starts = append(starts, func() error {
				return c.startFluxController(ctx, part, fluxShard(s), append(slices.Clone(args), selector))
			})
		}
	}
	return SideBySide(starts...)
}

// RestartFlux ends one of Flux's controllers, and starts it again with these arguments and Flux's own delays. It returns the new process.
func (c *Cluster) RestartFlux(ctx context.Context, part string, args ...string) (*Process, error) {
	if p := c.process(part); p != nil {
		p.Stop()
	}
	err := c.startFluxController(ctx, part, part, args)
	return c.process(part), err
}

func fluxShard(name string) string { return parts.KustomizeController + "-" + name }

// StopFluxShard ends the kustomize-controller of a shard.
func (c *Cluster) StopFluxShard(name string) {
	if p := c.process(fluxShard(name)); p != nil {
		p.Stop()
	}
}

// startFluxController starts a part under a name of its own. It has the identity that it has in production, by which
// policies tell it from people, and the rights of an administrator.
func (c *Cluster) startFluxController(ctx context.Context, part, name string, args []string) error {
	path, err := parts.Path(part)
	if err != nil {
		return err
	}
	kubeconfig, err := c.Kubeconfig("system:serviceaccount:"+FluxNamespace+":"+part, "system:serviceaccounts",
		"system:serviceaccounts:"+FluxNamespace, "system:masters")
	if err != nil {
		return err
	}
	file := filepath.Join(c.dir, name+".conf")
	if err := writeFiles(map[string][]byte{file: kubeconfig}); err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	// Temporary files go where everything of this fleet is removed.
	tmp := filepath.Join(c.dir, name)
	if err := os.MkdirAll(tmp, 0o700); err != nil { // it is there if the controller is started again
		return err
	}
	health := fmt.Sprintf("127.0.0.1:%d", port)
	return c.run(ctx, command{
		name: name, path: path,
		args: append([]string{"--events-addr=", "--metrics-addr=127.0.0.1:0", "--health-addr=" + health,
			"--enable-leader-election=false", "--log-level=info"}, args...),
		// Proxies of the machine are not for loopback.
		env: []string{"KUBECONFIG=" + file, "RUNTIME_NAMESPACE=" + FluxNamespace, "TMPDIR=" + tmp, "HOME=" + tmp,
			"NO_PROXY=127.0.0.1,localhost"},
		ready: answers(c.probe, "http://"+health+"/readyz"),
	})
}
