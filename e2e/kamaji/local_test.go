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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// local is all as processes of this machine: Kamaji's own operator, and a runner in place of the kubelet.
type local struct {
	dir    string
	hub    *localfleet.Cluster
	kamaji *localfleet.Kamaji
	charts *localfleet.ChartServer
	git    *localfleet.GitServer
	// process is the hub's.
	process *localfleet.Process
	// nodes are what was started on tenants.
	nodes []*localfleet.Cluster
}

func startLocal(ctx context.Context, scheme *runtime.Scheme) (Platform, error) {
	dir, err := os.MkdirTemp("", "chandler-e2e-kamaji-")
	if err != nil {
		return nil, err
	}
	l := &local{dir: dir}
	if err := l.start(ctx, scheme); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *local) start(ctx context.Context, scheme *runtime.Scheme) error {
	crds, err := localfleet.CRDs(parts.SourceController, parts.KustomizeController, parts.HelmController, parts.Kamaji)
	if err != nil {
		return err
	}
	l.hub, err = localfleet.StartCluster(ctx, localfleet.ClusterOptions{
		Name: "management", Dir: l.dir, CRDPaths: append(crds, filepath.Join("..", "..", "config", "crd", "bases")), Scheme: scheme, Audit: true,
		ControllerManager: true, NoWorkloads: true,
	})
	if err != nil {
		return err
	}
	if l.kamaji, err = l.hub.StartKamaji(ctx, func(holder string) {
		fmt.Fprintf(os.Stderr, "Kamaji runs for %s, and can run once on a machine: waiting for that to end\n", holder)
	}); err != nil {
		return err
	}
	if err := l.hub.StartFlux(ctx, localfleet.FluxOptions{}); err != nil {
		return err
	}
	if l.charts, err = localfleet.NewChartServer(); err != nil {
		return err
	}
	if l.git, err = localfleet.NewGitServer(); err != nil {
		return err
	}
	binary, err := localfleet.BuildHub(ctx, l.dir)
	if err != nil {
		return err
	}
	l.process, err = l.hub.StartHub(ctx, binary, "--allow-target-cidrs=127.0.0.0/8", "--deselection-delay=1s", "--removal-delay=1s", "--chart-retention=1s", "--probe-interval=5s")
	return err
}

func (l *local) Client() client.Client { return l.hub.Client }

func (l *local) Kubeconfig() string { return l.hub.KubeconfigFile() }

func (l *local) CreateTenant(ctx context.Context, key client.ObjectKey, t Tenant) error {
	return l.kamaji.CreateTenant(ctx, key.Namespace, key.Name, localfleet.TenantOptions{Labels: t.Labels, Version: t.Version, PodCIDR: t.PodCIDR})
}

func (l *local) TenantConfig(ctx context.Context, key client.ObjectKey) (*rest.Config, error) {
	return superAdmin(ctx, l.hub.Client, key)
}

func (l *local) JoinNode(ctx context.Context, key client.ObjectKey) (bool, error) {
	tenant, err := l.kamaji.Tenant(ctx, key.Namespace, key.Name)
	if err != nil {
		return false, err
	}
	l.nodes = append(l.nodes, tenant)
	return true, tenant.JoinNode(ctx)
}

// Hello does nothing: kwok says that pods run, whatever their image.
func (l *local) Hello(context.Context, string) (bool, error) { return false, nil }

// superAdmin reads the credential that works as soon as a tenant is Ready; admin.conf does a moment later.
func superAdmin(ctx context.Context, c client.Client, key client.ObjectKey) (*rest.Config, error) {
	return configOf(ctx, c, key, "super-admin.conf")
}

// configOf reads one of the kubeconfigs that Kamaji keeps of a tenant.
func configOf(ctx context.Context, c client.Client, key client.ObjectKey, name string) (*rest.Config, error) {
	s := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name + "-admin-kubeconfig"}, s); err != nil {
		return nil, err
	}
	return clientcmd.RESTConfigFromKubeConfig(s.Data[name])
}

func (l *local) Versions() (older, newest string) { return "v1.30.0", localfleet.NewestTenant }

func (l *local) Patience() time.Duration { return expect.Patience }

func (l *local) PublishChart(fsys fs.FS, dir string) error { return l.charts.Publish(fsys, dir) }

func (l *local) ChartsURL() string { return l.charts.URL() }

func (l *local) Commit(files map[string]string) error {
	_, err := l.git.Commit("fleet", files)
	return err
}

func (l *local) GitURL() string { return l.git.URL("fleet") }

// Dump prints how the logs end, those of the tenants' processes too.
func (l *local) Dump(t *testing.T) {
	_ = filepath.WalkDir(l.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".log" || entry.Name() == "audit.log" {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		t.Logf("%s ends with\n%s", path, raw[max(0, len(raw)-4000):])
		return nil
	})
}

func (l *local) Denied() ([]string, error) { return denied(l.hub) }

// denied returns what RBAC did not let the hub of a cluster do, by the audit log.
func denied(c *localfleet.Cluster) ([]string, error) {
	requests, err := c.HubRequests()
	var denied []string
	for i := range requests {
		if r := &requests[i]; localfleet.DeniedByRBAC(r) {
			denied = append(denied, r.Verb+" "+r.ObjectRef.Resource+" "+r.ObjectRef.Namespace+"/"+r.ObjectRef.Name)
		}
	}
	return denied, err
}

func (l *local) Close() error {
	if l.process != nil {
		l.process.Stop()
	}
	var errs []error
	for _, tenant := range l.nodes { // their folders are in the hub's
		errs = append(errs, tenant.Stop())
	}
	if l.hub != nil {
		errs = append(errs, l.hub.Stop())
	}
	if l.charts != nil {
		errs = append(errs, l.charts.Close())
	}
	if l.git != nil {
		errs = append(errs, l.git.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
}
