// SPDX-License-Identifier: Apache-2.0

package kamaji

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/node"
)

// onNode runs the tests in a place for a node, or says in one line why it does not.
func onNode(m tests) int {
	if err := node.Missing(); err != nil && !node.Entering() {
		fmt.Println("SKIP:", err)
		return 0
	}
	return node.Main(m, func(ctx context.Context, dir string) error {
		defer say("the programs are built", time.Now())
		return errors.Join(node.Build(ctx, "./cmd/hub", filepath.Join(dir, "hub")), node.Build(ctx, "./test/node/hello", filepath.Join(dir, "hello")))
	})
}

// realNode is all as pods on a real node: Kamaji's operator, its store and the control planes of its tenants, Flux, and the hub, with
// the rights of their ServiceAccounts. The one tenant's own node is another real one.
type realNode struct {
	*node.Node
	charts *localfleet.ChartServer
	git    *localfleet.GitServer
	worker *node.Worker
}

func say(what string, since time.Time) {
	fmt.Printf("%s after %s\n", what, time.Since(since).Round(time.Second))
}

func startNode(ctx context.Context, scheme *runtime.Scheme) (Platform, error) {
	defer say("Kamaji, Flux and the hub run as pods", time.Now())
	n, err := node.Start(ctx, localfleet.ClusterOptions{Name: "management", Scheme: scheme, Audit: true})
	if err != nil {
		return nil, err
	}
	r := &realNode{Node: n}
	if err := r.install(ctx); err != nil {
		n.Dump(os.Stderr)
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *realNode) install(ctx context.Context) error {
	older, newest := r.Versions()
	if err := localfleet.SideBySide(
		func() error { return r.InstallKamaji(ctx, older, newest) },
		func() error { return r.InstallFlux(ctx) },
		func() error {
			return r.Load(ctx, node.HubImage("chandler-hub:dev", filepath.Join(node.Dir(), "hub")))
		},
	); err != nil {
		return err
	}
	var err error
	if r.charts, err = localfleet.NewChartServerAt(node.Address); err != nil {
		return err
	}
	if r.git, err = localfleet.NewGitServerAt(node.Address); err != nil {
		return err
	}
	return r.Helm(ctx, "install", "chandler", "../../charts/chandler", "--namespace", "chandler-system", "--create-namespace",
		"--set", "image.tag=dev,extraArgs={--deselection-delay=1s,--removal-delay=1s,--chart-retention=1s,--probe-interval=5s}",
		"--wait", "--timeout", expect.Patience.String())
}

func (r *realNode) Client() client.Client { return r.Node.Client }

func (r *realNode) Kubeconfig() string { return r.KubeconfigFile() }

func (r *realNode) CreateTenant(ctx context.Context, key client.ObjectKey, t Tenant) error {
	port, err := nodePort(ctx, r.Client())
	if err != nil {
		return err
	}
	return r.Client().Create(ctx, localfleet.NewTenant(key.Namespace, key.Name, localfleet.TenantOptions{
		Labels: t.Labels, Version: t.Version, PodCIDR: t.PodCIDR, Address: node.Address, Port: port, ServiceType: corev1.ServiceTypeNodePort,
	}))
}

func (r *realNode) TenantConfig(ctx context.Context, key client.ObjectKey) (*rest.Config, error) {
	return superAdmin(ctx, r.Client(), key)
}

// JoinNode joins a real one, which there is one of.
func (r *realNode) JoinNode(ctx context.Context, key client.ObjectKey) (bool, error) {
	config, err := r.TenantConfig(ctx, key)
	if err != nil {
		return false, err
	}
	older, newest := r.Versions()
	r.worker, err = r.Join(ctx, key.Name+"-node", config, older, newest)
	return err == nil, err
}

func (r *realNode) Hello(ctx context.Context, image string) (bool, error) {
	return true, r.worker.Load(ctx, node.HelloImage(image, filepath.Join(node.Dir(), "hello")))
}

func (r *realNode) Versions() (older, newest string) { return "v1.30.0", localfleet.NewestTenant }

func (r *realNode) Patience() time.Duration { return expect.Patience }

func (r *realNode) PublishChart(fsys fs.FS, dir string) error { return r.charts.Publish(fsys, dir) }

func (r *realNode) ChartsURL() string { return r.charts.URL() }

func (r *realNode) Commit(files map[string]string) error {
	_, err := r.git.Commit("fleet", files)
	return err
}

func (r *realNode) GitURL() string { return r.git.URL("fleet") }

// Dump prints how the logs of the node's parts and of its pods end.
func (r *realNode) Dump(t *testing.T) {
	r.Node.Dump(t.Output())
	if r.worker != nil {
		r.worker.Dump(t.Output())
	}
}

func (r *realNode) Denied() ([]string, error) { return denied(r.Cluster) }

func (r *realNode) Close() error {
	errs := []error{r.Stop()}
	if r.charts != nil {
		errs = append(errs, r.charts.Close())
	}
	if r.git != nil {
		errs = append(errs, r.git.Close())
	}
	return errors.Join(errs...)
}
