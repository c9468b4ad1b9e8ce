// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-hub/chandler/internal/localfleet/parts"
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
		dir, err := parts.CRDs(name)
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
}

// StartFlux starts source-, kustomize- and helm-controller on a cluster that has their CRDs. They end with the cluster.
func (c *Cluster) StartFlux(ctx context.Context, o FluxOptions) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: FluxNamespace}}
	if err := c.Client.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	kubeconfig, err := c.kubeconfigFile()
	if err != nil {
		return err
	}
	storage := filepath.Join(c.dir, "source-storage")
	if err := os.MkdirAll(storage, 0o700); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	var lockdown []string
	if o.NoCrossNamespaceRefs {
		lockdown = []string{"--no-cross-namespace-refs=true"}
	}
	controllers := map[string][]string{
		parts.SourceController:    {"--storage-path=" + storage, "--storage-addr=" + address, "--storage-adv-addr=" + address, "--min-retry-delay=500ms"},
		parts.KustomizeController: append([]string{"--requeue-dependency=1s", "--min-retry-delay=500ms"}, lockdown...),
		parts.HelmController:      append([]string{"--requeue-dependency=1s", "--min-retry-delay=500ms"}, lockdown...),
	}
	var wg sync.WaitGroup
	errs := make(chan error, len(controllers))
	var mu sync.Mutex
	for name, args := range controllers {
		wg.Go(func() {
			p, err := c.startFluxController(ctx, name, kubeconfig, args)
			if err == nil {
				mu.Lock()
				c.processes = append(c.processes, p)
				mu.Unlock()
			}
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

func (c *Cluster) startFluxController(ctx context.Context, name, kubeconfig string, args []string) (*Process, error) {
	path, err := parts.Path(name)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	health := fmt.Sprintf("127.0.0.1:%d", port)
	tmp := filepath.Join(c.dir, name+"-tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, err
	}
	return start(ctx, command{
		name: name, path: path, dir: c.dir,
		args: append([]string{"--events-addr=", "--metrics-addr=127.0.0.1:0", "--health-addr=" + health, "--enable-leader-election=false", "--log-level=info"}, args...),
		// Proxies of the machine are not meant for loopback, and temporary files go where all of ours are removed.
		env:   []string{"KUBECONFIG=" + kubeconfig, "RUNTIME_NAMESPACE=" + FluxNamespace, "TMPDIR=" + tmp, "HOME=" + tmp, "NO_PROXY=127.0.0.1,localhost"},
		ready: answers("http://" + health + "/healthz"),
	})
}
